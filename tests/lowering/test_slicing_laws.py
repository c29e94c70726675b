"""What holds for slices of any graph, checked row by row on drawn graphs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from msched.graph import Matmul, Op, OpGraph, Rows
from msched.lowering.slicing import slice_graph
from msched.networks.assembly import Assembly

KINDS = ("Relu", "MatMul", "HcomAllReduce", "causal", "all")
Row = tuple[int, int]  # a request and a token of it


@dataclass(frozen=True)
class Drawn:
    """A graph in which every op has one output of the same rows."""

    graph: OpGraph
    requests: int
    tokens: int


@st.composite
def drawn(draw: st.DrawFn, most_ops: int = 6) -> Drawn:
    requests, tokens = draw(st.integers(1, 3)), draw(st.integers(1, 7))
    graph, width = Assembly("drawn"), draw(st.integers(1, 3))
    data = requests * tokens * width
    made = [graph.source("input", data, token_wise=True)]
    for index in range(draw(st.integers(1, most_ops))):
        kind = draw(st.sampled_from(KINDS))
        inputs = draw(st.lists(st.sampled_from(made), min_size=1, max_size=3, unique=True))
        pairs = tokens * (tokens + 1) // 2 if kind == "causal" else tokens * tokens
        fields: dict[str, Any] = {"flops": data * draw(st.integers(0, 3)), "workspace_bytes": draw(st.integers(0, 9))}
        attends: tuple[str, ...] = ()
        if kind == "MatMul":
            weight = graph.source(f"weight{index}", draw(st.integers(1, 40)))
            inputs, fields["matmul"] = [*inputs, weight], Matmul(1, requests * tokens, width, 2)
        elif kind == "HcomAllReduce":
            fields |= {"participants": 2, "payload_bytes": data, "communicator": "world"}
        elif kind in ("causal", "all"):
            attends = tuple(map(graph.name_of, draw(st.lists(st.sampled_from(inputs), unique=True))))
            fields["flops"] = requests * pairs * draw(st.integers(0, 3))
        if not attends and kind in ("causal", "all"):
            kind = "Relu"
        rows = Rows(requests, tokens, attends, kind == "causal")
        name = "FlashAttention" if attends else kind
        made.append(graph.op(f"op{index}", name, inputs, data, rows=rows, **fields))
    return Drawn(graph.graph({made[-1]}), requests, tokens)


def counts(graph: OpGraph) -> st.SearchStrategy[dict[str, int]]:
    return st.fixed_dictionaries({op.name: st.integers(1, 4) for op in graph.ops})


def rows_of(name: str, count: dict[str, int], axis: str, case: Drawn) -> set[Row]:
    """The rows of an op of a graph cut by `count`, by name: `op3.slice1`, or `op3.slice1.slice0` if cut in 2 again."""
    stem, *slices = re.split(r"\.slice", name)
    begin, end = 0, case.requests if axis == "batch" else case.tokens
    for i, k in zip(map(int, slices), [count[stem], 2] if count[stem] > 1 else [2], strict=False):
        begin, end = begin + i * (end - begin) // k, begin + (i + 1) * (end - begin) // k
    cut = range(begin, end)
    return set(product(cut, range(case.tokens)) if axis == "batch" else product(range(case.requests), cut))


def needs(op: Op, tensor: str, row: Row, case: Drawn) -> set[Row]:
    """The rows of `tensor` that one row of `op` needs, from the definition of `Rows`."""
    assert op.rows is not None
    request, token = row
    if tensor not in op.rows.attends:
        return {row}
    return {(request, t) for t in range(token + 1 if op.rows.causal else case.tokens)}


def check_edges(case: Drawn, cut: OpGraph, count: dict[str, int], axis: str, *, exactly: bool) -> None:
    """Every slice depends on the slices that hold rows which it needs, and `exactly` on no other."""
    whole = {op.name: op for op in case.graph.ops}
    made = {t.name: {case.graph.ops[c].name for c in t.consumers} for t in case.graph.tensors}
    stem = [op.name.split(".")[0] for op in cut.ops]
    rows = [rows_of(op.name, count, axis, case) for op in cut.ops]
    found = set(map(tuple, cut.edges.tolist()))
    for u, v in product(range(len(cut.ops)), repeat=2):
        if stem[v] not in made[stem[u]]:
            assert (u, v) not in found
            continue
        shared = any(rows[u] & needs(whole[stem[v]], stem[u], row, case) for row in rows[v])
        assert (u, v) in found or not shared
        assert shared or not exactly or (u, v) not in found


@settings(max_examples=30)
@given(drawn(), st.integers(1, 4), st.sampled_from(["sequence", "batch"]))
def test_a_slice_depends_on_exactly_the_slices_whose_rows_it_needs(case: Drawn, k: int, axis: Any) -> None:
    k = min(k, case.requests if axis == "batch" else case.tokens)
    cut = slice_graph(case.graph, k, along=axis, around="any")
    assert len(cut.ops) == k * len(case.graph.ops)
    check_edges(case, cut, dict.fromkeys((op.name for op in case.graph.ops), k), axis, exactly=True)


def fitting(case: Drawn, data: st.DataObject, axis: str) -> dict[str, int]:
    most = case.requests if axis == "batch" else case.tokens
    return {name: min(k, most) for name, k in data.draw(counts(case.graph)).items()}


@settings(max_examples=30)
@given(drawn(), st.data(), st.sampled_from(["sequence", "batch"]))
def test_regions_meet_exactly_where_they_share_rows(case: Drawn, data: st.DataObject, axis: Any) -> None:
    count = fitting(case, data, axis)
    check_edges(case, slice_graph(case.graph, count, along=axis, around="any"), count, axis, exactly=True)


@settings(max_examples=30)
@given(drawn(), st.data(), st.sampled_from(["sequence", "batch"]))
def test_a_graph_that_is_cut_twice_misses_no_row(case: Drawn, data: st.DataObject, axis: Any) -> None:
    count = fitting(case, data, axis)
    if data.draw(st.booleans()):  # mostly one number for all, so that much is left to be cut again
        count = dict.fromkeys(count, min(count.values()))
    once = slice_graph(case.graph, count, along=axis, around="any")
    most = max((op.rows.batch if axis == "batch" else op.rows.sequence for op in once.ops if op.rows), default=0)
    if most >= 2:
        check_edges(case, slice_graph(once, 2, along=axis, around="any"), count, axis, exactly=False)


@settings(max_examples=30)
@given(drawn(), st.data(), st.sampled_from(["sequence", "batch"]))
def test_slices_put_together_are_the_graph(case: Drawn, data: st.DataObject, axis: Any) -> None:
    count = fitting(case, data, axis)
    whole, cut = case.graph, slice_graph(case.graph, count, along=axis, around="any")
    index = {op.name: v for v, op in enumerate(whole.ops)}
    home = [index[op.name.split(".")[0]] for op in cut.ops]
    assert {(home[u], home[v]) for u, v in cut.edges.tolist()} == set(map(tuple, whole.edges.tolist()))
    for v, op in enumerate(whole.ops):
        parts = [part for part, u in zip(cut.ops, home, strict=True) if u == v]
        assert len(parts) == count[op.name]
        for figure in ("flops", "bytes_written", "workspace_bytes", "payload_bytes"):
            assert sum(getattr(part, figure) for part in parts) == getattr(op, figure)
        assert {(p.kind, p.participants, p.communicator) for p in parts} == {
            (op.kind, op.participants, op.communicator)
        }
        assert sum(part.bytes_read for part in parts) == op.bytes_read + read_again(case, op, count[op.name], axis)
    size: dict[str, int] = {}
    for tensor in cut.tensors:
        name = tensor.name.split(".")[0]
        size[name] = size.get(name, 0) + tensor.bytes
    assert size == {tensor.name: tensor.bytes for tensor in whole.tensors}
    outputs = {tensor.name.split(".")[0] for tensor in cut.tensors if tensor.output}
    assert outputs == {tensor.name for tensor in whole.tensors if tensor.output}


def read_again(case: Drawn, op: Op, k: int, axis: str) -> int:
    """Weights of all slices but one, and of what is attended to the rows that a slice does not hold itself."""
    assert op.rows is not None
    total = 0
    for tensor in case.graph.tensors:
        if op.name not in (case.graph.ops[c].name for c in tensor.consumers):
            continue
        if tensor.name.startswith("weight"):
            total += (k - 1) * tensor.bytes
        elif tensor.name in op.rows.attends and axis == "sequence":
            row_bytes = tensor.bytes // case.tokens
            ends = [(i + 1) * case.tokens // k for i in range(k)]
            seen = ends if op.rows.causal else [case.tokens] * k
            total += (sum(seen) - case.tokens) * row_bytes
    return total


@settings(max_examples=30)
@given(drawn(), st.integers(2, 4))
def test_ops_beside_no_collective_stay_as_they_are(case: Drawn, k: int) -> None:
    """Tied to a collective are the ops that any chain of ops, up or down, joins to one: by a search from each."""
    graph = case.graph
    near: dict[int, set[int]] = {v: set() for v in range(len(graph.ops))}
    for u, v in graph.edges.tolist():
        near[u].add(v)
        near[v].add(u)
    tied = reach = {v for v, op in enumerate(graph.ops) if op.kind == "HcomAllReduce"}
    while reach := {w for v in reach for w in near[v]} - tied:
        tied = tied | reach
    k = min(k, case.tokens)
    cut = slice_graph(graph, k, along="sequence")
    whole = {op.name for op in cut.ops if op.name in {o.name for o in graph.ops}}
    assert whole == {op.name for v, op in enumerate(graph.ops) if v not in tied or k == 1}
