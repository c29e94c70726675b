"""Folding: views and constants leave, and what hung on them hangs together as before."""

from typing import Any

import networkx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from msched.graph import Op, OpGraph, Tensor
from msched.lowering.folding import Folded, fold
from msched.lowering.placement import work_of


def graph(kinds: str, tensors: list[Tensor], control: Any = (), **durations: int) -> OpGraph:
    """Ops `a:Kind b:Kind ...`, with measured durations by name."""
    pairs = (word.split(":") for word in kinds.split())
    ops = tuple(Op(name=name, kind=kind, duration_ns=durations.get(name)) for name, kind in pairs)
    return OpGraph("g", ops, tuple(tensors), tuple(control))


def tensor(name: str, producer: int | None, *consumers: int, size: int = 8, output: bool = False) -> Tensor:
    return Tensor(
        name=name, bytes=size, producer=producer, consumers=consumers, persistent=producer is None, output=output
    )


def folded(g: OpGraph) -> Folded:
    return fold(g, [work_of(op.kind) or "vector" for op in g.ops])


def test_nothing_free_changes_nothing() -> None:
    g = graph("a:Relu b:Relu", [tensor("x", 0, 1)])
    assert folded(g).kept == [0, 1]
    assert folded(g).tensors == g.tensors


def test_consumers_of_a_chain_of_views_consume_the_first_buffer() -> None:
    # relu -> reshape -> squeeze -> {add, mul}; mul also reads relu's output itself
    g = graph(
        "relu:Relu reshape:Reshape squeeze:Squeeze add:Add mul:Mul",
        [tensor("x", 0, 1, 4), tensor("y", 1, 2), tensor("z", 2, 3, 4)],
    )
    result = folded(g)
    assert result.kept == [0, 3, 4]
    (x,) = result.tensors
    assert (x.name, x.producer, sorted(x.consumers)) == ("x", 0, [1, 2])
    assert result.edges.tolist() == [[0, 1], [0, 2]]


def test_a_view_that_is_a_graph_output_makes_its_buffer_one() -> None:
    result = folded(graph("relu:Relu flat:Flatten", [tensor("x", 0, 1), tensor("y", 1, output=True)]))
    assert [(t.name, t.output) for t in result.tensors] == [("x", True)]


def test_what_an_output_node_reads_lives_to_the_end() -> None:
    result = folded(graph("relu:Relu out:NetOutput", [tensor("x", 0, 1)]))
    assert [(t.name, t.output, t.consumers) for t in result.tensors] == [("x", True, ())]


def test_a_view_of_a_weight_is_that_weight() -> None:
    result = folded(graph("turn:Unsqueeze mul:Mul", [tensor("w", None, 0), tensor("y", 0, 1)]))
    assert [(t.name, t.producer, t.consumers, t.persistent) for t in result.tensors] == [("w", None, (0,), True)]
    assert len(result.edges) == 0


def test_a_view_with_a_shape_input_views_the_other_one_and_waits_for_both() -> None:
    # The shape comes from an op and stands first; it has fewer bytes than the view.
    g = graph(
        "dims:Range relu:Relu reshape:Reshape add:Add",
        [tensor("s", 0, 2, size=2), tensor("x", 1, 2), tensor("y", 2, 3)],
    )
    result = folded(g)
    assert {t.name: t.consumers for t in result.tensors} == {"s": (), "x": (2,)}
    assert result.edges.tolist() == [[0, 2], [1, 2]]


def test_constants_become_persistent_and_what_only_they_read_goes() -> None:
    # As in the light ONNX models: shape initializer -> ConstantOfShape -> Unsqueeze -> Mul
    g = graph(
        "fill:ConstantOfShape wide:Unsqueeze mul:Mul",
        [tensor("shape", None, 0), tensor("c", 0, 1), tensor("d", 1, 2), tensor("x", None, 2)],
    )
    result = folded(g)
    assert result.kept == [2]
    assert {t.name: (t.producer, t.consumers, t.persistent) for t in result.tensors} == {
        "c": (None, (0,), True),
        "x": (None, (0,), True),
    }


def test_work_on_constants_alone_is_constant() -> None:
    # (1 + 2) * x: the sum folds, the product stays
    g = graph(
        "one:Constant two:Constant add:Add mul:Mul",
        [tensor("1", 0, 2), tensor("2", 1, 2), tensor("3", 2, 3), tensor("x", None, 3)],
    )
    result = folded(g)
    assert result.kept == [3]
    assert [t.name for t in result.tensors] == ["3", "x"]


def test_work_on_weights_stays_because_nothing_tells_them_from_inputs() -> None:
    assert folded(graph("t:Transpose m:Mul", [tensor("w", None, 0), tensor("y", 0, 1)])).kept == [0, 1]


def test_the_shape_of_an_input_is_constant_and_of_an_activation_is_not() -> None:
    chain = [tensor("x", None, 0, 2), tensor("s", 0, 1), tensor("c", 1, 2)]
    assert folded(graph("shape:Shape fill:ConstantOfShape mul:Mul", chain)).kept == [2]
    chain = [tensor("x", 0, 1, 3), tensor("s", 1, 2), tensor("c", 2, 3)]
    result = folded(graph("relu:Relu shape:Shape fill:ConstantOfShape mul:Mul", chain))
    assert result.kept == [0, 1, 3]
    assert result.edges.tolist() == [[0, 1], [0, 2], [1, 2]]


def test_random_numbers_from_constants_are_not_constant() -> None:
    g = graph("c:Constant r:RandomUniformLike m:Mul", [tensor("a", 0, 1), tensor("b", 1, 2)])
    assert folded(g).kept == [1, 2]


def test_an_input_node_leaves_its_tensor_but_is_no_constant() -> None:
    result = folded(graph("in:Input0 relu:ReLU", [tensor("x", 0, 1)]))
    assert result.kept == [1]
    assert [(t.name, t.producer, t.persistent) for t in result.tensors] == [("x", None, True)]


def test_work_on_constants_that_was_measured_to_take_time_stays() -> None:
    chain = [tensor("1", 0, 1), tensor("2", 1, 2), tensor("x", None, 2)]
    assert folded(graph("c:Constant n:Neg m:Mul", chain, n=5)).kept == [1, 2]
    assert folded(graph("c:Constant n:Neg m:Mul", chain, n=0)).kept == [2]


def test_control_dependencies_pass_through() -> None:
    result = folded(graph("a:Relu n:NoOp b:Relu c:Relu", [], [(0, 1), (1, 2), (1, 3)]))
    assert result.edges.tolist() == [[0, 1], [0, 2]]


def test_a_graph_of_views_alone_folds_to_nothing() -> None:
    result = folded(
        graph("a:Reshape b:Reshape", [tensor("x", None, 0), tensor("y", 0, 1), tensor("z", 1, output=True)])
    )
    assert (result.kept, len(result.edges)) == ([], 0)
    assert [(t.name, t.output) for t in result.tensors] == [("x", True)]


@st.composite
def graphs(draw: st.DrawFn) -> OpGraph:
    n = draw(st.integers(1, 9))
    kinds = [draw(st.sampled_from(["Relu", "Add", "Reshape", "Constant", "NoOp", "RandomNormal"])) for _ in range(n)]
    name = draw(st.permutations(range(n)))  # so that an op's index does not tell its place in the order
    tensors = [Tensor(name="w", bytes=4, consumers=tuple(v for v in range(n) if draw(st.booleans())), persistent=True)]
    for v in range(n):
        later = [w for w in range(v + 1, n) if draw(st.booleans())]
        if draw(st.booleans()):
            size, output = draw(st.sampled_from([4, 8])), draw(st.booleans())
            tensors.append(tensor(f"t{v}", name[v], *(name[w] for w in later), size=size, output=output))
    control = [(name[u], name[v]) for u in range(n) for v in range(u + 1, n) if draw(st.integers(0, 5)) == 0]
    return OpGraph(
        "g", tuple(Op(name=f"o{i}", kind=kind) for i, kind in enumerate(kinds)), tuple(tensors), tuple(control)
    )


@given(graphs())
def test_no_order_is_lost_or_made_up(g: OpGraph) -> None:
    result = folded(g)
    before = networkx.transitive_closure(networkx.DiGraph(map(tuple, g.edges.tolist())))
    after = networkx.transitive_closure(networkx.DiGraph(map(tuple, np.array(result.kept)[result.edges].tolist())))
    kept = set(result.kept)
    assert {(u, v) for u, v in before.edges if u in kept and v in kept} == set(after.edges)


@given(graphs())
def test_what_is_left_is_a_graph_with_every_data_dependency_in_its_edges(g: OpGraph) -> None:
    result = folded(g)
    left = OpGraph("left", tuple(g.ops[v] for v in result.kept), result.tensors)
    assert {tuple(e) for e in left.edges.tolist()} <= {tuple(e) for e in result.edges.tolist()}
    assert all(g.ops[v].kind in ("Relu", "Add", "RandomNormal") for v in result.kept)
    for t in result.tensors:
        assert t.persistent == (t.producer is None)
