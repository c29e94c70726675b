"""What one slice of an op does, for the ops that are no plain rows of data times a weight."""

from __future__ import annotations

from msched.graph import Matmul, Op, OpGraph, Rows
from msched.lowering.slicing import slice_graph
from msched.networks.assembly import Assembly


def ops(graph: OpGraph) -> dict[str, Op]:
    return {op.name: op for op in graph.ops}


def test_measured_durations_are_shared_out_by_rows() -> None:
    rows = Rows(1, 3)
    graph = OpGraph("m", (Op(name="a", kind="AllReduce", duration_ns=10, payload_bytes=3, participants=2, rows=rows),))
    cut = slice_graph(graph, 2)
    # 1 and 2 of 3 rows of 10 ns, rounded up
    assert [op.duration_ns for op in cut.ops] == [4, 7]
    assert "1 measured durations are divided among slices by their rows: assumed" in cut.warnings


def test_products_for_each_head_keep_their_heads() -> None:
    # a weight a head: the rows of all requests meet it; without a weight, each request has its own products
    rows, graph = Rows(2, 3), Assembly("heads")
    x, weight = graph.source("x", 96, token_wise=True), graph.source("w", 64)
    up = graph.op("up", "BatchMatMul", [x, weight], 96, matmul=Matmul(4, 6, 2, 4), rows=rows)
    graph.op("dots", "BatchMatMul", [up], 96, matmul=Matmul(2, 3, 3, 4), rows=rows)
    cut = ops(slice_graph(graph.graph(()), 2, along="batch", around="any"))
    assert cut["up.slice0"].matmul == Matmul(4, 3, 2, 4)
    assert cut["dots.slice0"].matmul == Matmul(1, 3, 3, 4)


def test_few_tokens_meet_few_experts() -> None:
    # 4 copies of tokens for 4 of 8 experts with weights of 100 bytes: 40 bytes of copies and 400 of 800 of weights
    rows, graph = Rows(2, 1), Assembly("experts")
    x, weight = graph.source("x", 40, token_wise=True), graph.source("w", 800)
    shape = Matmul(4, 1, 5, 10)
    graph.op("up", "GroupedMatMul", [x, weight], 40, matmul=shape, bytes_read=440, rows=rows)
    cut = slice_graph(graph.graph(()), 2, around="any")
    assert [op.matmul for op in cut.ops] == [Matmul(2, 1, 5, 10)] * 2
    assert [op.bytes_read for op in cut.ops] == [220, 220]


def test_many_tokens_meet_all_experts_in_every_slice() -> None:
    rows, graph = Rows(2, 8), Assembly("experts")
    x, weight = graph.source("x", 160, token_wise=True), graph.source("w", 400)
    graph.op("up", "GroupedMatMul", [x, weight], 160, matmul=Matmul(4, 4, 5, 10), rows=rows)
    cut = slice_graph(graph.graph(()), 2, around="any")
    assert [op.matmul for op in cut.ops] == [Matmul(4, 2, 5, 10)] * 2
    assert [op.bytes_read for op in cut.ops] == [80 + 400, 80 + 400]


def test_an_op_that_reads_a_part_of_its_data_reads_all_of_its_weight_again() -> None:
    # 60 of the 100 bytes of data, and a weight of 20
    rows, graph = Rows(1, 2), Assembly("part")
    x, weight = graph.source("x", 100, token_wise=True), graph.source("w", 20)
    graph.op("norm", "RMSNorm", [x, weight], 60, bytes_read=80, rows=rows)
    cut = slice_graph(graph.graph(()), 2, around="any")
    assert [op.bytes_read for op in cut.ops] == [30 + 20, 30 + 20]


def test_a_look_up_reads_its_own_rows_of_the_table() -> None:
    rows, graph = Rows(1, 2), Assembly("look_up")
    x, table = graph.source("x", 16, token_wise=True), graph.source("table", 1000)
    graph.op("embedding", "Embedding", [x, table], 20, bytes_read=36, rows=rows)
    cut = slice_graph(graph.graph(()), 2, around="any")
    assert [op.bytes_read for op in cut.ops] == [18, 18]


def test_slices_of_an_op_that_says_nothing_of_its_bytes_move_their_parts_of_its_tensors() -> None:
    # 64 bytes from before and a mask of 64, of which a quarter each; a weight of 8 again and again; 64 written
    rows, graph = Rows(1, 4), Assembly("silent")
    before = graph.op("before", "Softmax", [graph.source("in", 64)], 64)
    inputs = [before, graph.source("mask", 64, token_wise=True), graph.source("w", 8)]
    graph.op("a", "Add", inputs, 64, bytes_read=0, bytes_written=0, rows=rows)
    cut = slice_graph(graph.graph(()), 4, around="any")
    assert [(op.bytes_read, op.bytes_written) for op in cut.ops[1:]] == [(16 + 16 + 8, 16)] * 4
    assert cut.warnings == (
        "1 of 2 ops are cut into up to 4 slices, which read 24 bytes more than the whole (weights once a slice, keys "
        "and values of rows before it)",
        "1 of the ops that are cut say nothing of the bytes that they move: taken to read and write each of their "
        "tensors once; the first is 'a'",
    )


def test_values_that_scores_meet_stand_along_the_depth() -> None:
    # 2 heads of 8 tokens: scores (8, 8) by values (8, 3); under the mask, half of the rows sees half of the values
    graph = Assembly("unfused")
    v = graph.op("v", "Relu", [graph.source("x", 96, token_wise=True)], 96, rows=Rows(1, 8))
    p = graph.op("p", "Softmax", [graph.source("y", 256, token_wise=True)], 256, rows=Rows(1, 8))
    shape, rows = Matmul(2, 8, 3, 8), Rows(1, 8, ("v",), True)
    graph.op("mix", "BatchMatMul", [p, v], 96, matmul=shape, flops=72, rows=rows)
    cut = ops(slice_graph(graph.graph(()), 2, around="any"))
    assert [cut[f"mix.slice{i}"].matmul for i in (0, 1)] == [Matmul(2, 4, 3, 4), Matmul(2, 4, 3, 8)]
    # 36 pairs, of which 10 in the first half
    assert [cut[f"mix.slice{i}"].flops for i in (0, 1)] == [20, 52]
    assert [cut[f"mix.slice{i}"].bytes_read for i in (0, 1)] == [128 + 48, 128 + 96]


def test_keys_that_queries_meet_stand_in_the_columns() -> None:
    # 8 tokens of 3 channels and 4 cached keys: (8, 3) by (3, 12)
    graph = Assembly("unfused")
    k = graph.op("k", "Relu", [graph.source("x", 72, token_wise=True)], 72, rows=Rows(1, 8))
    graph.op("scores", "MatMul", [k], 96, matmul=Matmul(1, 8, 12, 3), rows=Rows(1, 8, ("k",), True))
    cut = ops(slice_graph(graph.graph(()), 2, around="any"))
    assert [cut[f"scores.slice{i}"].matmul for i in (0, 1)] == [Matmul(1, 4, 8, 3), Matmul(1, 4, 12, 3)]


def test_a_product_with_fewer_rows_than_slices_is_charged_a_row_in_each_and_says_so() -> None:
    # one of several experts, to which 2 of 4 tokens go: a weight of 40 bytes
    graph = Assembly("expert")
    x, weight = graph.source("x", 8, token_wise=True), graph.source("w", 40)
    graph.op("expert", "MatMul", [x, weight], 8, matmul=Matmul(1, 2, 5, 4), rows=Rows(4, 1))
    cut = slice_graph(graph.graph(()), 4, around="any")
    assert [(op.matmul, op.bytes_read) for op in cut.ops] == [(Matmul(1, 1, 5, 4), 2 + 40)] * 4
    assert cut.warnings[-1] == (
        "1 products have fewer rows than slices, as those of single experts: every slice is charged a row and the "
        "whole weight, though some have none; the first is 'expert'"
    )


def test_a_causal_op_with_fewer_keys_than_tokens_is_taken_to_have_as_many() -> None:
    # 6 pairs of 3 tokens, of which slices of 1 and 2 have 1 and 5
    graph = Assembly("few_keys")
    k = graph.op("k", "Relu", [graph.source("x", 6, token_wise=True)], 6, rows=Rows(1, 3))
    shape, rows = Matmul(1, 3, 1, 1), Rows(1, 3, ("k",), True)
    graph.op("flash", "FlashAttention", [k], 6, flops=60, matmul=shape, rows=rows)
    cut = ops(slice_graph(graph.graph(()), 2, around="any"))
    assert [cut[f"flash.slice{i}"].flops for i in (0, 1)] == [10, 50]
