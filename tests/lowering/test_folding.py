"""Folding: views and constants leave, and what hung on them hangs together as before."""

from typing import Any

import networkx
import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from msched.graph import Op, OpGraph, Tensor
from msched.lowering.folding import MOST_EDGES, Folded, fold, settled
from msched.lowering.placement import Place, work_of


def graph(kinds: str, tensors: list[Tensor], control: Any = (), **durations: int) -> OpGraph:
    """Ops `a:Kind b:Kind ...`, with measured durations by name."""
    pairs = (word.split(":") for word in kinds.split())
    ops = tuple(Op(name=name, kind=kind, duration_ns=durations.get(name)) for name, kind in pairs)
    return OpGraph("g", ops, tuple(tensors), tuple(control))


def tensor(name: str, producer: int | None, *consumers: int, size: int = 8, output: bool = False) -> Tensor:
    return Tensor(
        name=name, bytes=size, producer=producer, consumers=consumers, persistent=producer is None, output=output
    )


def folded(g: OpGraph, most_edges: int | None = None) -> Folded:
    return fold(g, [work_of(op.kind) or "vector" for op in g.ops], most_edges)


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


def part(name: str, producer: int, *consumers: int, size: int = 4) -> Tensor:
    return Tensor(name=name, bytes=size, producer=producer, consumers=consumers, part_of=name[:-1])


def test_consumers_of_a_view_of_slices_consume_them_all() -> None:
    # two halves of x, and a small second input that is no part of them, seen through two views one behind the other
    g = graph(
        "relu0:Relu relu1:Relu other:Relu reshape:Reshape squeeze:Squeeze add:Add",
        [part("x0", 0, 3), part("x1", 1, 3), tensor("s", 2, 3, size=4), tensor("y", 3, 4), tensor("z", 4, 5)],
    )
    result = folded(g)
    assert {t.name: t.consumers for t in result.tensors} == {"x0": (3,), "x1": (3,), "s": ()}
    assert result.edges.tolist() == [[0, 3], [1, 3], [2, 3]]


def test_a_view_of_slices_that_is_a_graph_output_makes_all_of_them_one() -> None:
    g = graph("a:Relu b:Relu flat:Flatten", [part("x0", 0, 2), part("x1", 1, 2), tensor("y", 2, output=True)])
    assert [(t.name, t.output) for t in folded(g).tensors] == [("x0", True), ("x1", True)]


def test_slices_of_views_lie_in_the_slices_that_they_view() -> None:
    # view0 sees x0 and view1 x1; what joins the views needs both
    g = graph(
        "a:Relu b:Relu view0:Reshape view1:Reshape join:Flatten add:Add",
        [part("x0", 0, 2), part("x1", 1, 3), part("v0", 2, 4), part("v1", 3, 4), tensor("y", 4, 5)],
    )
    assert {t.name: t.consumers for t in folded(g).tensors} == {"x0": (2,), "x1": (2,)}


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


def fan(before: int, after: int) -> OpGraph:
    """Ops that all come before those behind one NoOp, which stands first."""
    n = 1 + before + after
    control = [*((v, 0) for v in range(1, 1 + before)), *((0, v) for v in range(1 + before, n))]
    return graph("noop:NoOp " + " ".join(f"op{v}:Relu" for v in range(1, n)), [], control)


def test_an_op_stays_where_folding_it_brings_more_dependencies_than_allowed() -> None:
    # 3 x 7 = 21 dependencies, or 3 + 7 through the NoOp
    assert len(folded(fan(3, 7)).edges) == len(folded(fan(3, 7), 21).edges) == 21
    result = folded(fan(3, 7), 20)
    assert result.kept == list(range(11))
    assert result.edges.tolist() == [*([0, v] for v in range(4, 11)), *([v, 0] for v in range(1, 4))]
    assert result.barriers == {0: 1}


def test_an_op_folds_where_that_brings_no_more_than_twice_what_it_takes_away() -> None:
    # 3 x 6 = 18 is not above 2 x (3 + 6); 4 x 5 = 20 is above 2 x (4 + 5), and 2 x m never above 2 x (2 + m)
    assert [len(folded(fan(k, m), 0).edges) for k, m in ((3, 6), (4, 5), (2, 1000))] == [18, 9, 2000]


def test_a_barrier_of_thousands_is_a_dependency_an_op() -> None:
    result = folded(fan(3000, 3000), MOST_EDGES)
    assert (len(result.kept), len(result.edges)) == (6001, 6000)


def test_a_view_that_stays_leaves_its_readers_on_the_buffer_that_it_views() -> None:
    # flat views x, and waits for b and c as well; 3 x 7 dependencies, or 3 + 7, and 7 on a, whose buffer they read
    readers = range(4, 11)
    g = graph(
        "a:Relu b:Relu c:Relu flat:Flatten " + " ".join(f"r{v}:Relu" for v in readers),
        [tensor("x", 0, 3), tensor("y", 3, *readers)],
        [(1, 3), (2, 3)],
    )
    result = folded(g, 20)
    assert result.edges.tolist() == [[0, 3], *([0, v] for v in readers), [1, 3], [2, 3], *([3, v] for v in readers)]
    assert [(t.name, t.producer, t.consumers) for t in result.tensors] == [("x", 0, tuple(readers))]


def test_what_comes_behind_a_barrier_folds_onto_it() -> None:
    # 7 views behind the NoOp, each with one reader: 3 x 7 dependencies, or 3 into the NoOp and 7 out of it
    views = " ".join(f"v{i}:Identity r{i}:Relu" for i in range(7))
    control = [
        *((v, 3) for v in range(3)),
        *((3, 4 + 2 * i) for i in range(7)),
        *((4 + 2 * i, 5 + 2 * i) for i in range(7)),
    ]
    g = graph(f"a:Relu b:Relu c:Relu noop:NoOp {views}", [], control)
    assert len(folded(g).edges) == 21
    result = folded(g, 20)
    assert result.kept == [0, 1, 2, 3, *range(5, 18, 2)]
    assert result.edges.tolist() == [[0, 3], [1, 3], [2, 3], *([3, v] for v in range(4, 11))]


def test_views_that_nothing_reads_hold_up_no_barrier() -> None:
    # 7 outputs of the network behind the NoOp: no op comes after it
    control = [*((v, 3) for v in range(3)), *((3, v) for v in range(4, 11))]
    g = graph("a:Relu b:Relu c:Relu noop:NoOp " + " ".join(f"o{v}:Output" for v in range(4, 11)), [], control)
    result = folded(g, 0)
    assert (result.kept, len(result.edges), result.barriers) == ([0, 1, 2], 0, {})


def test_a_barrier_is_bound_to_the_engine_of_an_op_before_it_and_holds_none_of_it() -> None:
    # Two barriers in turn, numbered against their order: 0 waits for 1 and two more, 1 for ops 2 to 5
    control = [*((v, 1) for v in range(2, 6)), (1, 0), (6, 0), (7, 0), *((1, v) for v in range(8, 16))]
    control += [(0, v) for v in range(16, 24)]
    g = graph("late:NoOp early:NoOp " + " ".join(f"op{v}:Relu" for v in range(2, 24)), [], control)
    result = folded(g, 20)
    assert list(result.barriers.items()) == [(1, 2), (0, 1)]
    core, free = Place("vector", (("core", 2), ("link", 1))), Place("free", ())
    places = settled(result, [free, free, *[core] * 22])
    assert places == [Place("free", (("core", 0),))] * 2 + [core] * 22


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


@st.composite
def fans(draw: st.DrawFn) -> OpGraph:
    """Views and NoOps, one behind the other or not, between many ops and many others, in any numbering."""
    sizes = [draw(st.integers(4, 6)), draw(st.integers(1, 4)), draw(st.integers(5, 8))]
    n = sum(sizes)
    name = draw(st.permutations(range(n)))
    first, middle, last = (range(sum(sizes[:i]), sum(sizes[: i + 1])) for i in range(3))
    most = st.integers(0, 5).map(bool)
    kinds, tensors, control = ["Relu"] * n, [], []
    for v in middle:
        kinds[name[v]] = draw(st.sampled_from(["Reshape", "NoOp"]))
        control += [(name[u], name[v]) for u in first if draw(most)]
        later = [name[w] for w in [*range(v + 1, middle.stop), *last] if draw(most)]
        if draw(st.booleans()):
            tensors.append(tensor(f"t{v}", name[v], *later))
        else:
            control += [(name[v], w) for w in later]
    for u in first:
        readers = [name[v] for v in [*middle, *last] if draw(st.integers(0, 3)) == 0]
        tensors.append(tensor(f"t{u}", name[u], *readers))
    ops = tuple(Op(name=f"o{i}", kind=kind) for i, kind in enumerate(kinds))
    return OpGraph("g", ops, tuple(tensors), tuple(control))


@given(fans())
def test_barriers_change_neither_order_nor_tensors(g: OpGraph) -> None:
    result, plain = folded(g, 0), folded(g)
    assume(result.barriers)
    orders = []
    for f in (result, plain):
        closure = networkx.transitive_closure(networkx.DiGraph(map(tuple, np.array(f.kept)[f.edges].tolist())))
        orders.append({(u, v) for u, v in closure.edges if u in plain.kept and v in plain.kept})
    assert orders[0] == orders[1]
    assert [v for i, v in enumerate(result.kept) if i not in result.barriers] == plain.kept
    told = [
        [(t.name, [f.kept[v] for v in (t.producer, *t.consumers) if v is not None], t.output) for t in f.tensors]
        for f in (result, plain)
    ]
    assert told[0] == told[1]
    data = {(t.producer, v) for t in result.tensors if t.producer is not None for v in t.consumers}
    assert data <= {tuple(e) for e in result.edges.tolist()}
