"""OpGraph: what it refuses, and that nothing is lost on the way through JSON and networkx."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import msgspec
import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msched.errors import GraphError
from msched.graph import Matmul, Op, OpGraph, Tensor

LARGEST = 2**62


@st.composite
def graphs(draw: st.DrawFn) -> OpGraph:
    n = draw(st.integers(0, 6))
    size, count = st.integers(0, LARGEST), st.integers(1, LARGEST)
    ops = [
        Op(
            name=f"op{index}",
            kind=draw(st.text(max_size=5)),
            flops=draw(size),
            bytes_read=draw(size),
            bytes_written=draw(size),
            workspace_bytes=draw(size),
            duration_ns=draw(st.none() | size),
            matmul=draw(st.none() | st.builds(Matmul, count, count, count, count)),
            participants=draw(size),
            payload_bytes=draw(size),
            communicator=draw(st.none() | st.text(max_size=3)),
            engine=draw(st.none() | st.text(max_size=3)),
            stream=draw(st.none() | st.integers(-1, 9)),
            label=draw(st.none() | st.text(max_size=3)),
        )
        for index in range(n)
    ]
    rank = draw(st.permutations(range(n)))  # edges rise in rank, so that no cycle arises
    later = {u: [v for v in range(n) if rank[v] > rank[u]] for u in range(n)}
    tensors = []
    for number in range(draw(st.integers(0, 4))):
        producer = draw(st.none() | st.sampled_from(range(n))) if n else None
        choice = list(range(n)) if producer is None else later[producer]
        consumers = draw(st.lists(st.sampled_from(choice), unique=True)) if choice else []
        persistent = producer is None or draw(st.booleans())
        tensors.append(
            Tensor(
                name=f"t{number}",
                bytes=draw(size),
                producer=producer,
                consumers=tuple(consumers),
                persistent=persistent,
                output=draw(st.booleans()),
            )
        )
    arcs = [(u, v) for u in range(n) for v in later[u]]
    control = draw(st.lists(st.sampled_from(arcs), unique=True)) if arcs else []
    warnings = draw(st.lists(st.text(max_size=5), max_size=2))
    return OpGraph(draw(st.text(max_size=5)), tuple(ops), tuple(tensors), tuple(control), tuple(warnings))


@given(graphs())
def test_json_gives_back_an_equal_graph(graph: OpGraph) -> None:
    again = OpGraph.from_json(graph.to_json())
    assert again == graph
    assert again.content_hash() == graph.content_hash()


@given(graphs())
def test_networkx_gives_back_an_equal_graph(graph: OpGraph) -> None:
    assert OpGraph.from_networkx(graph.to_networkx()) == graph


@given(graphs())
def test_edges_are_those_of_networkx_and_the_order_keeps_them(graph: OpGraph) -> None:
    assert sorted(graph.to_networkx().edges) == list(map(tuple, graph.edges.tolist()))
    position = np.empty(len(graph.ops), np.int64)
    position[graph.order] = np.arange(len(graph.ops))
    assert (position[graph.edges[:, 0]] < position[graph.edges[:, 1]]).all()


def test_a_dependency_given_twice_counts_once() -> None:
    tensors = [
        Tensor(name="t", bytes=1, producer=0, consumers=(1, 1)),
        Tensor(name="u", bytes=1, producer=0, consumers=(1,)),
    ]
    assert _graph(2, tensors=tensors, control=[(0, 1)]).edges.tolist() == [[0, 1]]


def test_the_hash_tells_graphs_apart() -> None:
    assert _graph(2).content_hash() != _graph(2, control=[(0, 1)]).content_hash()


def test_a_graph_made_by_hand_needs_only_kinds() -> None:
    drawing: networkx.DiGraph[str] = networkx.DiGraph()
    drawing.add_node("first", kind="MatMul", flops=8)
    drawing.add_node("second", kind="Add")
    drawing.add_edge("first", "second")
    graph = OpGraph.from_networkx(drawing)
    assert graph.ops == (Op(name="first", kind="MatMul", flops=8), Op(name="second", kind="Add"))
    assert graph.control == ((0, 1),)


def test_an_edge_added_in_networkx_becomes_a_control_dependency() -> None:
    drawing = _graph(3, tensors=[Tensor(name="t", bytes=1, producer=0, consumers=(1,))]).to_networkx()
    drawing.add_edge(0, 2)
    assert OpGraph.from_networkx(drawing).edges.tolist() == [[0, 1], [0, 2]]


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"kind": "Add", "colour": "red"}, r"node 'a': .*colour"),
        ({}, "node 'a': .*kind"),
        ({"kind": "Add", "flops": "many"}, r"node 'a': .*flops"),
    ],
)
def test_networkx_attributes_that_an_op_does_not_have(attributes: dict[str, Any], message: str) -> None:
    drawing: networkx.DiGraph[str] = networkx.DiGraph()
    drawing.add_node("a", **attributes)
    with pytest.raises(GraphError, match=message):
        OpGraph.from_networkx(drawing)


@pytest.mark.parametrize("key", ["tensors", "control", "warnings"])
def test_networkx_graphs_with_strange_tensors(key: str) -> None:
    with pytest.raises(GraphError, match="tensors, control or warnings"):
        OpGraph.from_networkx(networkx.DiGraph(**{key: [None]}))


@pytest.mark.parametrize(
    "figure", ["flops", "bytes_read", "bytes_written", "workspace_bytes", "participants", "payload_bytes"]
)
@pytest.mark.parametrize("value", [-1, LARGEST + 1])
def test_figures_out_of_range(figure: str, value: int) -> None:
    with pytest.raises(GraphError, match="op 'x': flops, bytes and participants must lie between 0 and 2\\^62"):
        OpGraph("g", (Op(name="x", kind="Add", **{figure: value}),))


@pytest.mark.parametrize("value", [-1, LARGEST + 1])
def test_durations_out_of_range(value: int) -> None:
    with pytest.raises(GraphError, match=f"op 'x': duration_ns is {value}; it must lie between 0 and 2\\^62"):
        OpGraph("g", (Op(name="x", kind="Add", duration_ns=value),))


@pytest.mark.parametrize("position", range(4))
def test_matrix_products_of_nothing(position: int) -> None:
    sizes = [1, 1, 1, 1]
    sizes[position] = 0
    with pytest.raises(GraphError, match="op 'x': a matrix product needs batch, m, n and k of at least 1"):
        OpGraph("g", (Op(name="x", kind="MatMul", matmul=Matmul(*sizes)),))


def test_two_ops_of_one_name() -> None:
    with pytest.raises(GraphError, match="op name 'x' is given to 3 ops; names must be unique"):
        OpGraph("g", tuple(Op(name="x", kind="Add") for _ in range(3)))


@pytest.mark.parametrize("value", [-1, LARGEST + 1])
def test_tensor_sizes_out_of_range(value: int) -> None:
    with pytest.raises(GraphError, match=f"tensor 't': {value} bytes; it must lie between 0 and 2\\^62"):
        _graph(1, tensors=[Tensor(name="t", bytes=value, producer=0)])


@pytest.mark.parametrize("ends", [{"producer": 2}, {"producer": -1}, {"producer": 0, "consumers": (1, 2)}])
def test_tensors_of_ops_that_do_not_exist(ends: dict[str, Any]) -> None:
    with pytest.raises(GraphError, match=r"tensor 't' is tied to op (2|-1), but the graph has ops 0 to 1"):
        _graph(2, tensors=[Tensor(name="t", bytes=1, **ends)])


def test_a_tensor_that_comes_from_nowhere() -> None:
    with pytest.raises(GraphError, match="tensor 't' has no producer; weights and network inputs are persistent"):
        _graph(1, tensors=[Tensor(name="t", bytes=1, consumers=(0,))])


@pytest.mark.parametrize("pair", [(0, 2), (-1, 0)])
def test_control_dependencies_of_ops_that_do_not_exist(pair: tuple[int, int]) -> None:
    with pytest.raises(GraphError, match=rf"control dependency \({pair[0]}, {pair[1]}\): the graph has ops 0 to 1"):
        _graph(2, control=[pair])


def test_a_cycle_is_named_from_its_first_op_back_to_it() -> None:
    with pytest.raises(GraphError) as caught:
        _graph(5, control=[(0, 1), (1, 2), (2, 3), (3, 1), (3, 4)])
    names = str(caught.value).removeprefix("the graph has a cycle: ").split(" -> ")
    assert names[0] == names[-1]
    assert sorted(names[1:]) == ["op1", "op2", "op3"]
    steps = {"op1": "op2", "op2": "op3", "op3": "op1"}
    assert all(steps[u] == v for u, v in pairwise(names))


def test_an_op_that_waits_for_itself() -> None:
    with pytest.raises(GraphError, match="the graph has a cycle: op0 -> op0"):
        _graph(1, control=[(0, 0)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"schema": "msched.graph/9"},
            "schema 'msched.graph/9' is not known here; this version reads 'msched.graph/1'",
        ),
        ({"colour": "red"}, "colour"),
        ({"ops": [{"name": "x"}]}, r"kind.*\$\.ops\[0\]"),
        ({"ops": [{"name": "x", "kind": "Add", "flops": 1.5}]}, r"\$\.ops\[0\]\.flops"),
        ({"tensors": [{"name": "t", "bytes": "4"}]}, r"\$\.tensors\[0\]\.bytes"),
        ({"control": [[0, 1, 2]]}, r"\$\.control\[0\]"),
        ({"control": [[0, 10**30]]}, "control dependency"),
    ],
)
def test_json_that_breaks_the_schema(change: dict[str, Any], message: str) -> None:
    document = msgspec.json.decode(_graph(2).to_json()) | change
    with pytest.raises(GraphError, match=message):
        OpGraph.from_json(json.dumps(document))


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff\xfe", b"null", b"[" * 100_000, "{"])
def test_what_is_no_graph_json(data: bytes | str) -> None:
    with pytest.raises(GraphError, match=r"not a graph of schema msched\.graph/1"):
        OpGraph.from_json(data)


def _graph(n: int, **parts: Any) -> OpGraph:
    return OpGraph("g", tuple(Op(name=f"op{index}", kind="Add") for index in range(n)), **parts)
