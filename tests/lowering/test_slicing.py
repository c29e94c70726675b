"""Slices of graphs small enough to be cut by hand, and what cannot be cut."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from msched.errors import GraphError, OptionError
from msched.graph import Matmul, Op, OpGraph, Rows, Tensor
from msched.lowering import lower
from msched.lowering.slicing import slice_graph
from msched.networks import network
from msched.networks.assembly import Assembly
from msched.simulator import simulate
from msched.solvers import solve
from tests.lowering.devices import toy
from tests.lowering.layers import attention_layer, chained, named_edges, short_edges

CHAIN = (("q", "flash"), ("flash", "o"), ("o", "reduce"), ("reduce", "add"))
STRAIGHT = {f"{a}{i} {b}{i}" for a, b in CHAIN for i in (0, 1)}


def ops(graph: OpGraph) -> dict[str, Op]:
    return {op.name: op for op in graph.ops}


def tensors(graph: OpGraph) -> dict[str, Tensor]:
    return {tensor.name: tensor for tensor in graph.tensors}


def test_a_causal_slice_attends_to_the_slices_up_to_its_own() -> None:
    cut = slice_graph(attention_layer(), 2, along="sequence")
    before = {f"{t}{i} flash{j}" for t in "kv" for i, j in ((0, 0), (0, 1), (1, 1))}
    assert short_edges(cut) == STRAIGHT | before


def test_a_bidirectional_slice_attends_to_all_slices() -> None:
    cut = slice_graph(attention_layer(causal=False), 2, along="sequence")
    assert short_edges(cut) == STRAIGHT | {f"{t}{i} flash{j}" for t in "kv" for i in (0, 1) for j in (0, 1)}


@pytest.mark.parametrize("causal", [True, False])
def test_slices_of_requests_do_not_meet(causal: bool) -> None:
    cut = slice_graph(attention_layer(causal=causal), 2, along="batch")
    assert short_edges(cut) == STRAIGHT | {f"{t}{i} flash{i}" for t in "kv" for i in (0, 1)}


def test_the_causal_halves_by_hand() -> None:
    # Tokens 0 and 1 of a request see 1 + 2 keys, tokens 2 and 3 see 3 + 4: 3 and 7 of 10 pairs, at 32 flops, twice.
    # The first half reads 64 bytes each of queries, keys, values; the second all 128 of keys and of values.
    half = ops(slice_graph(attention_layer(), 2, along="sequence"))
    first, second = half["flash.slice0"], half["flash.slice1"]
    assert (first.flops, second.flops) == (192, 448)
    assert (first.matmul, second.matmul) == (Matmul(4, 2, 2, 4), Matmul(4, 2, 4, 4))
    assert (first.bytes_read, second.bytes_read) == (64 + 64 + 64, 64 + 128 + 128)
    assert (first.bytes_written, second.bytes_written) == (64, 64)


def test_causal_slices_of_unequal_length() -> None:
    # 4 tokens in 3 slices are 1, 1 and 2, with 1, 2 and 3 + 4 keys
    third = ops(slice_graph(attention_layer(), 3, along="sequence"))
    flash = [third[f"flash.slice{i}"] for i in range(3)]
    assert [op.flops for op in flash] == [64, 128, 448]
    assert [op.matmul for op in flash] == [Matmul(4, 1, 1, 4), Matmul(4, 1, 2, 4), Matmul(4, 2, 4, 4)]
    assert [op.bytes_read for op in flash] == [32 * 3, 32 + 2 * 64, 64 + 2 * 128]
    assert [third[f"q.slice{i}"].matmul for i in range(3)] == [Matmul(1, 2, 8, 8)] * 2 + [Matmul(1, 4, 8, 8)]


def test_bidirectional_halves_by_hand() -> None:
    half = ops(slice_graph(attention_layer(causal=False), 2, along="sequence"))
    for flash in (half["flash.slice0"], half["flash.slice1"]):
        assert (flash.flops, flash.matmul) == (512, Matmul(4, 2, 4, 4))
        assert flash.bytes_read == 64 + 128 + 128


def test_attention_of_one_request_by_hand() -> None:
    half = ops(slice_graph(attention_layer(), 2, along="batch"))
    for flash in (half["flash.slice0"], half["flash.slice1"]):
        assert (flash.flops, flash.matmul, flash.bytes_read) == (320, Matmul(2, 4, 4, 4), 3 * 64)


@pytest.mark.parametrize(("along", "rows"), [("sequence", Rows(2, 2)), ("batch", Rows(1, 4))])
def test_the_other_slices_by_hand(along: Any, rows: Rows) -> None:
    # A linear layer reads its 128 bytes of weights once a slice, and its half of the 128 of data, at 128 flops a row.
    half = ops(slice_graph(attention_layer(), 2, along=along))
    assert list(half) == [f"{name}.slice{i}" for name in ["q", "k", "v", "flash", "o", "reduce", "add"] for i in (0, 1)]
    for i in (0, 1):
        q = half[f"q.slice{i}"]
        assert (q.matmul, q.flops, q.bytes_read, q.bytes_written) == (Matmul(1, 4, 8, 8), 512, 64 + 128, 64)
        assert (q.workspace_bytes, q.rows, q.kind) == (4, rows, "MatMul")
        reduce = half[f"reduce.slice{i}"]
        assert (reduce.payload_bytes, reduce.participants, reduce.communicator) == (64, 8, "tp")
        add = half[f"add.slice{i}"]
        assert (add.flops, add.bytes_read, add.bytes_written) == (32, 128, 64)


def test_tensors_of_slices() -> None:
    cut = slice_graph(attention_layer(), 2, along="sequence")
    index, known = {op.name: v for v, op in enumerate(cut.ops)}, tensors(cut)
    keys = known["k.slice0"], known["k.slice1"]
    assert [t.bytes for t in keys] == [64, 64]
    assert [t.producer for t in keys] == [index["k.slice0"], index["k.slice1"]]
    assert [set(t.consumers) for t in keys] == [
        {index["flash.slice0"], index["flash.slice1"]},
        {index["flash.slice1"]},
    ]
    assert {name for name, t in known.items() if t.output} == {"add.slice0", "add.slice1"}
    # weights and inputs stay whole, and every slice reads them
    assert known["q.weight"].consumers == (index["q.slice0"], index["q.slice1"])
    assert (known["q.weight"].bytes, known["q.weight"].persistent) == (128, True)
    assert {cut.ops[v].name[:-7] for v in known["x"].consumers} == {"q", "k", "v", "add"}
    assert (len(known["x"].consumers), known["x"].persistent, known["x"].bytes) == (8, True, 128)


def test_a_warning_says_what_is_read_again() -> None:
    # four weights of 128 bytes, and the first half of keys and values
    whole = attention_layer()
    cut = slice_graph(whole, 2, along="sequence")
    assert sum(op.bytes_read for op in cut.ops) - sum(op.bytes_read for op in whole.ops) == 4 * 128 + 2 * 64
    assert cut.warnings == (
        "7 of 7 ops are cut into up to 2 slices, which read 640 bytes more than the whole (weights once a slice, keys "
        "and values of rows before it)",
    )
    assert cut.name == "layer_2_slices"


def with_cache(new: int, context: int) -> OpGraph:
    """Attention of 2 requests, 8 channels in 2 heads, to cached keys; the new ones are written into the cache."""
    graph, rows = Assembly("cached"), Rows(2, new)
    size, total = 2 * new * 16, 2 * (context + new) * 16
    x = graph.source("x", size, token_wise=True)
    q, k = (graph.op(name, "Relu", [x], size, rows=rows) for name in ("q", "k"))
    cache = graph.source("cache", total, token_wise=True)
    write = graph.op("write", "ScatterUpdate", [k, cache], 0, bytes_read=size, bytes_written=size, rows=rows)
    mixed = graph.op(
        "flash",
        "FlashAttention",
        [q, cache, write],
        size,
        flops=32 * 2 * sum(range(context + 1, context + new + 1)),
        matmul=Matmul(4, new, context + new, 4),
        rows=Rows(2, new, ("cache", "write"), new > 1),
    )
    reduce = graph.op("reduce", "AllReduce", [mixed], size, participants=2, payload_bytes=size, rows=rows)
    return graph.graph({reduce})


def test_chunks_of_a_prompt_behind_a_cached_context() -> None:
    # 2 new tokens behind 3 cached ones see 4 and 5 keys, of 32 bytes for both requests
    cut = slice_graph(with_cache(2, 3), 2, along="sequence")
    first, second = (ops(cut)[f"flash.slice{i}"] for i in (0, 1))
    assert (first.flops, second.flops) == (4 * 64, 5 * 64)
    assert (first.matmul, second.matmul) == (Matmul(4, 1, 4, 4), Matmul(4, 1, 5, 4))
    assert (first.bytes_read, second.bytes_read) == (32 + 4 * 32, 32 + 5 * 32)
    writes = {e for e in short_edges(cut) if e.startswith("write")}
    assert writes == {"write0 flash0", "write0 flash1", "write1 flash1"}


def test_decoding_is_cut_between_requests_and_not_inside_one() -> None:
    cut = slice_graph(with_cache(1, 3), 2)
    for i in (0, 1):
        flash = ops(cut)[f"flash.slice{i}"]
        assert (flash.flops, flash.matmul, flash.bytes_read) == (4 * 32, Matmul(2, 1, 4, 4), 16 + 4 * 16)
    assert {e for e in short_edges(cut) if e.startswith("write")} == {"write0 flash0", "write1 flash1"}
    with pytest.raises(
        OptionError,
        match=r"slices is 2, inside requests, but no op has as many rows: 'q' has 2 requests of 1 token\. G",
    ):
        slice_graph(with_cache(1, 3), 2, along="sequence")


def test_auto_takes_the_batch_if_it_is_a_multiple() -> None:
    layer = attention_layer(requests=4)
    assert slice_graph(layer, 2) == slice_graph(layer, 2, along="batch")
    assert slice_graph(layer, 3) == slice_graph(layer, 3, along="sequence")
    # no request has 5 tokens, but there are 6 requests
    layer = attention_layer(requests=6)
    assert slice_graph(layer, 5) == slice_graph(layer, 5, along="batch")
    # one op with another number of slices decides for all
    layer = attention_layer(requests=4)
    assert slice_graph(layer, {"q": 3, "*": 2}) == slice_graph(layer, {"q": 3, "*": 2}, along="sequence")


def test_one_slice_is_the_graph_itself() -> None:
    layer = attention_layer()
    assert slice_graph(layer, 1) is layer
    assert slice_graph(layer, {"q": 1}) is layer
    assert slice_graph(layer, {}) is layer
    assert slice_graph(OpGraph("empty", ())).ops == ()


@pytest.mark.parametrize("slices", [1, 2, 4])
def test_a_view_behind_slices_keeps_them_all_in_memory(slices: int) -> None:
    # reduce -> view -> read later beside 64 bytes of x and 64 of y: 64 of reduce + 64 of y + 128 of z
    graph = Assembly("view")
    source = graph.op("source", "Conv", [graph.source("in", 0)], 64, flops=1)
    reduced = graph.op("reduce", "HcomAllReduce", [source], 64, participants=2, payload_bytes=64)
    view = graph.op("view", "Reshape", [reduced], 64)
    y = graph.op("y", "Softmax", [graph.op("x", "Softmax", [view], 64)], 64)
    cut = slice_graph(graph.graph({graph.op("z", "Concat", [view, y], 128)}), slices)
    problem = lower(cut, toy(memory={"bytes": 10**6, "bytes_per_ns": 30, "alignment": 1}), streams=1)
    timeline = simulate(problem, solve(problem, "single"))
    assert timeline.peak_bytes == 64 + 64 + 128


def test_a_control_dependency_puts_all_slices_of_one_op_before_all_of_the_other() -> None:
    graph = replace(attention_layer(), control=((0, 1), (2, 6)))
    cut = slice_graph(graph, {"q": 2, "k": 2, "v": 1, "*": 2}, along="sequence")
    names = {(cut.ops[u].name, cut.ops[v].name) for u, v in cut.control}
    assert names == {
        *((f"q.slice{i}", f"k.slice{j}") for i in (0, 1) for j in (0, 1)),
        *(("v", f"add.slice{i}") for i in (0, 1)),
    }


def test_regions_that_do_not_share_a_row_do_not_meet() -> None:
    # of 8 rows, thirds are 0-1, 2-4 and 5-7, quarters 0-1, 2-3, 4-5 and 6-7
    cut = slice_graph(chained(rows=(1, 8)), {"a": 3, "b": 4}, around="any")
    assert short_edges(cut) == {"a0 b0", "a1 b1", "a1 b2", "a2 b2", "a2 b3"}


def test_ops_of_different_numbers_of_rows_meet_in_parts_of_a_tensor() -> None:
    # halves of 3 rows are 1 and 2 of them, a third and two thirds; of 12 rows 6 and 6
    graph = Assembly("parts")
    a = graph.op("a", "Relu", [graph.source("x", 12, token_wise=True)], 12, rows=Rows(1, 3))
    graph.op("b", "Relu", [a], 12, rows=Rows(1, 12))
    assert short_edges(slice_graph(graph.graph(()), 2, around="any")) == {"a0 b0", "a1 b0", "a1 b1"}


def test_an_op_that_has_the_name_of_a_slice_is_refused() -> None:
    ops = tuple(Op(name=name, kind="AllReduce", rows=Rows(1, 8)) for name in ("a", "a.slice0"))
    with pytest.raises(GraphError, match=r"op 'a\.slice0' has the name that a slice of 'a' would get; rename one"):
        slice_graph(OpGraph("clash", ops), {"a": 2})


@pytest.mark.parametrize(
    ("slices", "edges"),
    [
        ({"a": 2, "b": 4}, {"a0 b0", "a0 b1", "a1 b2", "a1 b3"}),
        ({"a": 4, "b": 2}, {"a0 b0", "a1 b0", "a2 b1", "a3 b1"}),
        # of 12 rows, halves are 0-5 and 6-11, thirds 0-3, 4-7 and 8-11
        ({"a": 2, "b": 3}, {"a0 b0", "a0 b1", "a1 b1", "a1 b2"}),
        ({"a": 3, "b": 2}, {"a0 b0", "a1 b0", "a1 b1", "a2 b1"}),
        ({"a": 2}, {"a0 b", "a1 b"}),
        ({"b": 2}, {"a b0", "a b1"}),
    ],
)
def test_regions_of_different_numbers_meet_where_they_share_rows(slices: dict[str, int], edges: set[str]) -> None:
    assert short_edges(slice_graph(chained(), slices, around="any")) == edges


@pytest.mark.parametrize(
    ("causal", "edges"),
    [
        # of 12 tokens, quarter 1 ends with token 5, the last of half 0
        (True, {"a0 b0", "a0 b1", "a0 b2", "a1 b2", "a0 b3", "a1 b3"}),
        (False, {f"a{i} b{j}" for i in range(2) for j in range(4)}),
    ],
)
def test_attention_to_a_region_of_another_number(causal: bool, edges: set[str]) -> None:
    graph = chained(attends=True, causal=causal)
    assert short_edges(slice_graph(graph, {"a": 2, "b": 4}, around="any")) == edges


def test_the_first_pattern_that_fits_counts() -> None:
    cut = slice_graph(attention_layer(), {"[qk]": 4, "*": 2}, along="sequence")
    count = {name: sum(op.name.startswith(f"{name}.") for op in cut.ops) for name in ("q", "k", "v", "flash")}
    assert count == {"q": 4, "k": 4, "v": 2, "flash": 2}
    with pytest.raises(OptionError, match="slices: no op of 'layer' falls to the pattern 'q'"):
        slice_graph(attention_layer(), {"[qk]": 4, "q": 3})


def test_ops_away_from_collectives_are_cut_only_if_asked_for() -> None:
    graph = chained()
    left = slice_graph(graph, 2)
    assert (left.ops, left.tensors) == (graph.ops, graph.tensors)
    assert left.warnings == ("nothing is sliced: no op that can be cut is tied to a collective",)
    assert len(slice_graph(graph, 2, around="any").ops) == 4
    # a collective that stays whole ties nothing to it
    assert len(slice_graph(attention_layer(), {"reduce": 1, "*": 2}).ops) == 7


def test_ops_behind_the_last_token_stay_whole() -> None:
    parameters: dict[str, Any] = {"size": "7b", "layers": 1, "tensor_parallel": 2, "sequence": 64}
    cut = network("llama", **parameters, slices=2)
    whole = {op.name for op in cut.ops if not op.name.endswith(("slice0", "slice1"))}
    assert whole == {"last_token", "norm", "lm_head", "lm_head.all_gather"}
    assert cut.warnings[-1] == "4 ops have fewer rows than slices and stay whole; the first is 'last_token'"


def test_the_last_token_needs_the_last_slice_of_its_request() -> None:
    parameters: dict[str, Any] = {"size": "7b", "layers": 1, "tensor_parallel": 2, "sequence": 64}
    last = "layer0.feed_forward_add.slice"
    cut = network("llama", **parameters, slices=4)
    assert {u for u, v in named_edges(cut) if v == "last_token"} == {f"{last}3"}
    twice = slice_graph(network("llama", **parameters, slices=2), 2)
    assert {u for u, v in named_edges(twice) if v == "last_token"} == {f"{last}1.slice1"}
    # each request has a last token
    cut = network("llama", **parameters, batch=2, slices=2)
    assert all(op.name.endswith(("slice0", "slice1")) for op in cut.ops)
    assert {(u, v) for u, v in named_edges(cut) if "last_token" in v} == {
        (f"{last}{i}", f"last_token.slice{i}") for i in (0, 1)
    }


@pytest.mark.parametrize(
    ("slices", "options", "message"),
    [
        (0, {}, "slices is 0; a whole number of at least 1 is needed"),
        (-2, {}, "slices is -2; a whole number"),
        (True, {}, "slices is True; a whole number"),
        (2.0, {}, r"slices is 2\.0; a whole number"),
        ("2", {}, "slices is '2'; a whole number"),
        ({"q": 0}, {}, "slices of 'q' is 0; a whole number of at least 1 is needed"),
        ({"q": "auto"}, {}, "slices of 'q' is 'auto'; a whole number .* needed .'auto' is a search with a solver"),
        ({3: 2}, {}, "slices: 3 is no pattern of the names of ops; give it as text"),
        ({"w*": 2}, {}, r"slices: no op of 'layer' falls to the pattern 'w\*'"),
        ({"*": 2, "q": 4}, {}, "slices: no op of 'layer' falls to the pattern 'q'"),
        (
            5,
            {},
            "slices is 5, but no op has as many rows: 'q' has 2 requests of 4 tokens. Give fewer",
        ),
        (3, {"along": "batch"}, "slices is 3, between requests, but no op has as many rows"),
        (2, {"along": "heads"}, "along is 'heads'; it must be one of: auto, batch, sequence"),
        (2, {"around": "all"}, "around is 'all'; it must be one of: collectives, any"),
    ],
)
def test_what_cannot_be_cut(slices: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        slice_graph(attention_layer(), slices, **options)
