"""What can be cut in a graph that says nothing of its rows, as one that was read from a file."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from msched.errors import OptionError
from msched.graph import Matmul, OpGraph, Rows
from msched.lowering.slicing import slice_graph
from msched.networks.assembly import Assembly
from tests.lowering.layers import named_edges, short_edges

TOKENS, NARROW, WIDE = 6, 4, 8  # 2 bytes an element: 48 and 96 bytes of data, 64 of each weight


def perceptron(graph: Assembly, x: int, *, reduce: str = "AllReduce") -> int:
    """One chip's share of a feed-forward layer: norm -> up -> gelu -> down -> bias -> all-reduce -> add."""
    scale, bias = graph.source("scale", 8), graph.source("bias", 8)
    up, down = graph.source("up.weight", 64), graph.source("down.weight", 64)
    normed = graph.op("norm", "LayerNormalization", [x, scale], 48)
    h = graph.op("up", "MatMul", [normed, up], 96, matmul=Matmul(1, TOKENS, WIDE, NARROW))
    h = graph.op("gelu", "com.microsoft.Gelu", [h], 96)
    h = graph.op("down", "Gemm", [h, down], 48, matmul=Matmul(1, TOKENS, NARROW, WIDE))
    h = graph.op("bias_add", "Add", [h, bias], 48)
    h = graph.op("reduce", reduce, [h], 48, participants=2, payload_bytes=48)
    return graph.op("residual", "Add", [x, h], 48)


def foreign() -> OpGraph:
    graph = Assembly("foreign")
    numbers, table = graph.source("numbers", 48), graph.source("table", 400)
    x = graph.op("gather", "Gather", [table, numbers], 48, bytes_read=96)
    out = perceptron(graph, x)
    small = graph.op("mean", "ReduceMean", [out], 12)
    centred = graph.op("centre", "Sub", [out, small], 48)
    return graph.graph({graph.op("softmax", "Softmax", [centred], 48)})


def cut_names(graph: OpGraph) -> set[str]:
    return {op.name.split(".slice")[0] for op in graph.ops if ".slice" in op.name}


def test_row_wise_ops_around_an_all_reduce_are_cut() -> None:
    cut = slice_graph(foreign(), 2)
    assert cut_names(cut) == {"norm", "up", "gelu", "down", "bias_add", "reduce", "residual"}


def test_slices_of_a_foreign_graph_by_hand() -> None:
    cut = slice_graph(foreign(), 2)
    chain = ["norm", "up", "gelu", "down", "bias_add", "reduce", "residual"]
    straight = {f"{a}{i} {b}{i}" for a, b in pairwise(chain) for i in (0, 1)}
    around = {"gather norm0", "gather norm1", "gather residual0", "gather residual1"}
    behind = {"residual0 mean", "residual1 mean", "residual0 centre", "residual1 centre", "mean centre"}
    assert short_edges(cut) == straight | around | behind | {"centre softmax"}
    ops = {op.name: op for op in cut.ops}
    up = ops["up.slice1"]
    # 3 of 6 rows of 8 bytes, the weight of 64 again, and 3 rows of 16 bytes of output
    assert (up.matmul, up.flops, up.bytes_read, up.bytes_written) == (Matmul(1, 3, 8, 4), 192, 24 + 64, 48)
    assert ops["down.slice0"].bytes_read == 48 + 64  # though the weight is as large as no output
    assert ops["bias_add.slice0"].bytes_read == 24 + 8
    assert ops["residual.slice0"].bytes_read == 48
    assert ops["reduce.slice0"].payload_bytes == 24


def test_a_weight_as_large_as_the_output_is_a_weight_all_the_same() -> None:
    # (8, 8) by (8, 4): 128 bytes of data, 64 of weight, 64 of output
    graph = Assembly("product")
    x = graph.op("data", "Gather", [graph.source("x", 64)], 128)
    graph.op("product", "MatMul", [x, graph.source("w", 64)], 64, matmul=Matmul(1, 8, 4, 8))
    cut = slice_graph(graph.graph(()), 2, around="any")
    assert [op.bytes_read for op in cut.ops if op.kind == "MatMul"] == [64 + 64] * 2


@pytest.mark.parametrize(
    ("inputs", "output", "shape"),
    [
        # the weight stands on the left, so that every row of the output needs all of the data: (10, 6) by (6, 4)
        ([("w", 120)], 80, Matmul(1, 10, 4, 6)),
        # a square output does not tell which side the data is on: (4, 6) by (6, 4)
        ([("w", 48)], 32, Matmul(1, 4, 4, 6)),
        # no weight
        ([], 96, Matmul(1, 6, 8, 4)),
        # data of another precision
        ([("w", 32)], 48, Matmul(1, 6, 8, 4)),
    ],
)
def test_products_that_may_need_all_rows_stay_whole(inputs: Any, output: int, shape: Matmul) -> None:
    graph = Assembly("product")
    x = graph.op("data", "Gather", [graph.source("x", 48)], 48)
    weights = [graph.source(name, size) for name, size in inputs]
    graph.op("product", "MatMul", [x, *weights], output, matmul=shape)
    assert cut_names(slice_graph(graph.graph(()), 2, around="any")) == set()


def test_a_product_of_two_data_tensors_stays_whole() -> None:
    graph = Assembly("product")
    x, y = (graph.op(name, "Gather", [graph.source(name, 64)], 64) for name in ("x", "y"))
    graph.op("product", "MatMul", [x, y], 96, matmul=Matmul(1, 6, 8, 4))
    assert cut_names(slice_graph(graph.graph(()), 2, around="any")) == set()


def test_a_broadcast_stays_whole_though_its_kind_works_element_by_element() -> None:
    assert "centre" not in cut_names(slice_graph(foreign(), 2, around="any"))


@pytest.mark.parametrize("kind", ["AllGather", "ReduceScatter", "AllToAll"])
def test_of_collectives_only_all_reduces_are_known_to_keep_rows(kind: str) -> None:
    graph = Assembly("foreign")
    x = graph.op("gather", "Gather", [graph.source("numbers", 48)], 48)
    perceptron(graph, x, reduce=kind)
    cut = slice_graph(graph.graph(()), 2)
    assert cut.warnings == ("nothing is sliced: no op that can be cut is tied to a collective",)
    assert "up" in cut_names(slice_graph(graph.graph(()), 2, around="any"))


@pytest.mark.parametrize(
    ("kind", "cut"),
    [
        ("Relu", True),
        ("com.microsoft.Gelu", True),
        ("aten.add.Tensor", True),
        ("c10d.allreduce_.default", True),
        ("Softmax", False),
    ],
)
def test_kinds_are_known_in_the_spelling_of_every_framework(kind: str, cut: bool) -> None:
    graph = Assembly("one")
    graph.op("op", kind, [graph.op("gather", "Gather", [graph.source("x", 48)], 48)], 48)
    assert cut_names(slice_graph(graph.graph(()), 2, around="any")) == ({"op"} if cut else set())


def test_an_op_that_says_its_rows_speaks_for_the_whole_graph() -> None:
    graph = Assembly("mixed")
    x = graph.op("gather", "Gather", [graph.source("numbers", 48)], 48)
    perceptron(graph, x)
    graph.op("said", "Softmax", [x], 48, rows=Rows(1, 6))
    cut = slice_graph(graph.graph(()), 2, around="any")
    assert cut_names(cut) == {"said"}
    assert ("gather", "said.slice1") in named_edges(cut)


def tail(tokens: int, *, kinds: tuple[str, ...], scale: int = 8) -> OpGraph:
    """A product of (tokens, 4) by (4, 6), 2 bytes an element, and ops of its 12 bytes a token behind it."""
    graph = Assembly("tail")
    x = graph.op("gather", "Gather", [graph.source("x", 8 * tokens)], 8 * tokens)
    x = graph.op("down", "MatMul", [x, graph.source("w", 48)], 12 * tokens, matmul=Matmul(1, tokens, 6, 4))
    for index, kind in enumerate(kinds):
        inputs = [x, graph.source("scale", scale)] if "Norm" in kind else [x]
        talks = {"participants": 2, "payload_bytes": 12 * tokens} if kind == "AllReduce" else {}
        x = graph.op(f"{kind}{index}", kind, inputs, 12 * tokens, **talks)
    return graph.graph({x})


def test_what_is_tied_to_a_product_is_cut_at_its_rows() -> None:
    # halves of 7 tokens are 3 and 4 of them, 36 and 48 bytes, and not 42 each
    cut = slice_graph(tail(7, kinds=("AllReduce", "LayerNorm", "Gelu", "RotaryMul")), 2)
    written = {op.name: op.bytes_written for op in cut.ops if op.name != "gather"}
    names = ("down", "AllReduce0", "LayerNorm1", "Gelu2", "RotaryMul3")
    assert written == {f"{name}.slice{i}": (36, 48)[i] for name in names for i in (0, 1)}
    assert [cut.ops[v].payload_bytes for v, op in enumerate(cut.ops) if "AllReduce" in op.name] == [36, 48]
    straight = {f"{a}.slice{i} {b}.slice{i}" for a, b in pairwise(names) for i in (0, 1)}
    assert {f"{u} {v}" for u, v in named_edges(cut) if u != "gather"} == straight


def test_of_products_that_differ_the_rows_that_they_have_in_common_count() -> None:
    # 72 bytes, 12 rows of the one and 9 of the other: thirds, of 4 and 3 rows
    graph = Assembly("two")
    x = graph.op("gather", "Gather", [graph.source("x", 96)], 96)
    x = graph.op("a", "MatMul", [x, graph.source("w", 24)], 72, matmul=Matmul(1, 12, 3, 4))
    x = graph.op("gelu", "Gelu", [x], 72)
    graph.op("b", "MatMul", [x, graph.source("v", 40)], 90, matmul=Matmul(1, 9, 5, 4))
    cut = slice_graph(graph.graph(()), 3, around="any")
    assert {(op.matmul.m, op.bytes_written) for op in cut.ops if op.matmul is not None} == {(4, 24), (3, 30)}
    assert [op.bytes_written for op in cut.ops if op.kind == "Gelu"] == [24, 24, 24]
    with pytest.raises(OptionError, match="no op has as many rows: 'a' has 1 request of 3 tokens"):
        slice_graph(graph.graph(()), 4, around="any")


def test_a_norm_whose_rows_nothing_tells_stays_whole() -> None:
    # an all-reduce of 48 bytes can be cut anywhere; how many channels the norm mixes is not known
    graph = Assembly("norm")
    x = graph.op("gather", "Gather", [graph.source("x", 48)], 48)
    x = graph.op("reduce", "AllReduce", [x], 48, participants=2, payload_bytes=48)
    for kind in ("LayerNorm", "RotaryEmbedding"):
        graph.op(kind, kind, [x], 48)
    cut = slice_graph(graph.graph(()), 2)
    assert cut_names(cut) == {"reduce"}
    assert {f"reduce.slice{i} {kind}" for i in (0, 1) for kind in ("LayerNorm", "RotaryEmbedding")} <= {
        f"{u} {v}" for u, v in named_edges(cut)
    }


def test_a_norm_over_more_than_a_row_stays_whole() -> None:
    # rows of 12 bytes; a scale of 24 may be one of twice the precision, one of 36 belongs to three rows
    assert "LayerNorm1" in cut_names(slice_graph(tail(8, kinds=("AllReduce", "LayerNorm"), scale=24), 2))
    assert cut_names(slice_graph(tail(8, kinds=("AllReduce", "LayerNorm"), scale=36), 2)) == {"down", "AllReduce0"}


def test_a_single_token_is_not_cut_through_its_channels() -> None:
    with pytest.raises(OptionError, match="slices is 2, but no op has as many rows: 'down' has 1 request of 1 token"):
        slice_graph(tail(1, kinds=("AllReduce", "LayerNorm")), 2)


def test_a_mask_is_shared_out_in_a_second_cut_as_in_the_first() -> None:
    graph = Assembly("mask")
    x = graph.op("gather", "Gather", [graph.source("x", 48)], 48)
    x = graph.op("reduce", "AllReduce", [x], 48, participants=2, payload_bytes=48)
    graph.op("add", "Add", [x, graph.source("mask", 48)], 48)
    once = slice_graph(graph.graph(()), 4)
    twice = slice_graph(slice_graph(graph.graph(()), 2), 2, around="any")
    for cut in (once, twice):
        assert [op.bytes_read for op in cut.ops if op.kind == "Add"] == [24] * 4


def test_a_foreign_graph_that_is_cut_again() -> None:
    cut = slice_graph(slice_graph(foreign(), 2), 3)
    # what reads the whole output of the gather knows no longer where its rows begin
    assert cut_names(cut) >= {"up", "down", "reduce"}
    assert ("up.slice1.slice2", "gelu.slice1.slice2") in named_edges(cut)
    assert ("gather", "norm.slice0") in named_edges(cut)
    assert sum(op.flops for op in cut.ops) == sum(op.flops for op in foreign().ops)
