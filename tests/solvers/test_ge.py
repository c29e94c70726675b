"""GE's classic allocator against the cases of its own unit test, and the steps that those leave out by hand.

The golden cases restate, in a notation of our own, the inputs and expected streams of
tests/ut/ge/graph/build/logical_stream_allocator_unittest.cc of mindspore-ai/graphengine, branch r1.5.0 (98bb6107,
Apache-2.0); the number after each name is the line there. An op reads `name:engine` or `name:engine/label`, an edge
`before>after`, and the letters after an engine are its rules: i(ndependent), a(ttach), s(kip). In them each op is a
cluster by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msched.errors import OptionError
from msched.problem import Problem
from msched.solvers.assign.ge import EngineRule, Ge, allocate, engine_clusters
from msched.solvers.base import Budget, UnassignableError


@dataclass(frozen=True)
class Case:
    ops: str
    edges: str
    streams: str  # name=stream, of which all must hold
    rules: str = ""
    parallel: str = ""
    same: str = ""  # groups of ops that share a stream
    differ: str = ""  # groups of ops of which no two share one


_NO_INPUT = "data>d1 g1>d1 d1>d2 g2>d2 d2>d3 g3>d3"
_TEST_ALL = Case(
    ops="const1:ge_local const2:ge_local get_next:aicpu/get_next genmask1:aicpu genmask2:aicpu domask:aicore s4:aicpu "
    "s5:aicore s6:aicore allreduce1:hccl allreduce2:hccl apply1:aicore apply2:aicore",
    edges="const1>genmask1 const2>genmask2 get_next>domask genmask1>domask genmask2>domask domask>s4 domask>allreduce1 "
    "s4>s5 s5>s6 s6>allreduce2 allreduce1>allreduce2 allreduce1>apply1 allreduce2>apply2",
    rules="ge_local:sa aicpu:a hccl:i",
    parallel="aicore:1 aicpu:1",
    streams="get_next=0 allreduce1=1 allreduce2=1",
    same="s4,s5 s5,s6 apply1,apply2",
    differ="get_next,s4 genmask2,s4",
)

GOLDEN = {
    "same_engine (432)": Case("s1:e1 s2:e1 s3:e1 s4:e1", "s1>s2 s2>s3 s3>s4", "s1=0 s2=0 s3=0 s4=0", "", "e1:100"),
    "diff_engine (455)": Case("s1:e1 s2:e2 s3:e3", "s1>s2 s2>s3", "s1=0 s2=1 s3=2"),
    "engine_attach (472)": Case(
        "s1:e1 s2:e2 s3:e3 s4:e4", "s1>s2 s2>s3 s3>s4", "s1=0 s2=0 s3=0 s4=1", rules="e2:a e3:a"
    ),
    "skip_assign_stream (503)": Case("s1:e1 s2:e2 s3:e3 s4:e4", "s1>s2 s2>s3 s3>s4", "s1=0 s2=1 s4=2", rules="e3:sa"),
    "stream_label (533)": Case(
        "s1:e1/L1 s2:e2/L2 s3:e3/L1 s4:e4/L2 s5:e5/L2", "s1>s2 s2>s3 s3>s4 s4>s5", "s1=0 s2=1 s3=0 s4=1 s5=1"
    ),
    "label_not_reusable (555)": Case("s1:e1/L1 s2:e1/L1 s3:e1 s4:e1", "s1>s2 s2>s3 s3>s4", "s1=0 s2=0 s3=1 s4=1"),
    "label_not_reusable2 (578)": Case("s1:e1/L1 s2:e1/L2 s3:e2", "s1>s3 s2>s3", "s1=0 s2=1 s3=2", rules="e2:a"),
    "multiOut_new_stream (604)": Case(
        "s1:e1 s2:e1 s3:e1 s4:e1", "s1>s2 s1>s3 s1>s4", "s1=0 s2=1 s3=2 s4=3", parallel="e1:100"
    ),
    "parallel_one (629)": Case("s1:e1 s2:e1 s3:e2 s4:e1 s5:e2", "s1>s2 s1>s3 s1>s4 s1>s5", "s1=0 s2=0 s3=1 s4=0 s5=1"),
    "independent (658)": Case(
        "s1:e1 s2:e1 s3:e2 s4:e1 s5:e2",
        "s1>s2 s1>s3 s1>s4 s1>s5",
        "s1=0 s2=0 s3=1 s4=0 s5=1",
        rules="e1:i e2:i",
        parallel="e1:100 e2:100",
    ),
    "independent_switch_label (697)": Case(
        "s1:e0 s2:e1/L1 s3:e2/L1 s4:e1/L2 s5:e2/L2",
        "s1>s2 s1>s3 s1>s4 s1>s5",
        "s1=4 s2=0 s3=2 s4=1 s5=3",
        rules="e2:i",
        parallel="e0:1 e1:100 e2:100",
    ),
    "no_input (744)": Case(
        "data:ge_local g1:e1 d1:e1 g2:e1 d2:e1 g3:e1 d3:e1", _NO_INPUT, "g1=0 g2=0 g3=0 d1=0 d2=0 d3=0", "ge_local:sa"
    ),
    "const_input (779)": Case(
        "data:ge_local c1:ge_local c2:ge_local c3:ge_local g1:e1 d1:e1 g2:e1 d2:e1 g3:e1 d3:e1",
        "c1>g1 c2>g2 c3>g3 " + _NO_INPUT,
        "g1=0 g2=0 g3=0 d1=0 d2=0 d3=0",
        "ge_local:sa",
    ),
    "TestAll(1) (813)": _TEST_ALL,
    "TestAll(2) (815)": replace(
        _TEST_ALL, parallel="aicore:2 aicpu:2", same="s4,s5 s5,s6", differ="get_next,s4 genmask2,s4 apply1,apply2"
    ),
}


@pytest.mark.golden
@pytest.mark.parametrize("name", GOLDEN)
def test_golden_cases_of_ge(name: str) -> None:
    case = GOLDEN[name]
    ops = [op.partition(":")[::2] for op in case.ops.split()]
    names = [op for op, _ in ops]
    engine, _, label = zip(*(where.partition("/") for _, where in ops), strict=True)
    edges = np.array([[names.index(end) for end in edge.split(">")] for edge in case.edges.split()])
    letters = dict(rule.split(":") for rule in case.rules.split())
    most = dict(rule.split(":") for rule in case.parallel.split())
    rules = {
        e: EngineRule(
            "i" in letters.get(e, ""), "a" in letters.get(e, ""), "s" in letters.get(e, ""), int(most.get(e, 1))
        )
        for e in engine
    }
    found = dict(zip(names, allocate(engine, label, edges, np.arange(len(ops)), rules).tolist(), strict=True))
    expected = {op: int(stream) for op, stream in (pair.split("=") for pair in case.streams.split())}
    assert {op: found[op] for op in expected} == expected
    for group in case.same.split():
        assert len({found[op] for op in group.split(",")}) == 1, group
    for group in case.differ.split():
        assert len({found[op] for op in group.split(",")}) == len(group.split(",")), group


def test_partition_merges_what_has_one_engine_and_leaves_the_clusters_acyclic() -> None:
    # a0 -> a1 -> v2 -> a3 and a1 -> a3: a0 and a1 join. a3 may not join them, since a1 -> v2 -> a3 is a second path:
    # the cluster would both feed v2 and wait for it.
    edges = np.array([(0, 1), (1, 2), (2, 3), (1, 3)])
    assert engine_clusters(["a", "a", "v", "a"], [""] * 4, edges).tolist() == [0, 0, 1, 2]


def test_partition_tries_the_parent_with_fewer_outputs_first() -> None:
    # a3 has the parents a0 (outputs v1, a3) and a2 (output a3 alone), and v1 feeds a2. a2 goes first and joins: what
    # would keep it out is a second path from it. Then a0 -> v1 -> {a2, a3} is a second path, so a0 stays alone.
    edges = np.array([(0, 1), (1, 2), (0, 3), (2, 3)])
    assert engine_clusters(["a", "v", "a", "a"], [""] * 4, edges).tolist() == [0, 1, 2, 2]


def test_partition_keeps_labels_apart() -> None:
    assert engine_clusters(["a", "a", "a"], ["", "L", "L"], np.array([(0, 1), (1, 2)])).tolist() == [0, 1, 1]


def test_partition_merges_parents_that_joined_through_another_child() -> None:
    # Both a0 and a1 feed a2 and a3: all four are one cluster, since no path leaves it.
    edges = np.array([(0, 2), (1, 2), (0, 3), (1, 3)])
    assert engine_clusters(["a"] * 4, [""] * 4, edges).tolist() == [0, 0, 0, 0]


def _reference_clusters(key: list[int], edges: list[tuple[int, int]]) -> list[int]:
    """The partition on sets of ops, with the clusters' graph built anew for every question."""
    group = [{v} for v in range(len(key))]

    def quotient() -> nx.DiGraph[int]:
        graph: nx.DiGraph[int] = nx.DiGraph()
        graph.add_nodes_from(min(members) for members in group)
        graph.add_edges_from((min(group[u]), min(group[v])) for u, v in edges if group[u] is not group[v])
        return graph

    for child in range(len(key)):
        graph = quotient()
        parents = {min(group[u]) for u, v in edges if v == child and key[u] == key[v]}
        for parent in sorted(parents, key=lambda p: (graph.out_degree(p), p)):
            direct = quotient()
            direct.remove_edge(parent, min(group[child]))
            if not nx.has_path(direct, parent, min(group[child])):
                merged = group[parent] | group[child]
                for v in merged:
                    group[v] = merged
    numbers = sorted({min(members) for members in group})
    return [numbers.index(min(members)) for members in group]


@given(st.data())
def test_partition_agrees_with_a_plain_one_and_is_acyclic(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 12))
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda pair: pair[0] < pair[1])
    edges = sorted(data.draw(st.sets(pairs, max_size=24))) if n > 1 else []
    key = data.draw(st.lists(st.sampled_from("ab"), min_size=n, max_size=n))
    cluster = engine_clusters(key, [""] * n, np.array(edges, np.int64).reshape(-1, 2)).tolist()
    assert cluster == _reference_clusters([ord(k) for k in key], edges)
    assert nx.is_directed_acyclic_graph(
        nx.DiGraph((cluster[u], cluster[v]) for u, v in edges if cluster[u] != cluster[v])
    )


def test_a_predecessor_that_ranks_later_is_given_its_stream_by_its_follower() -> None:
    # b0 and b2 are one cluster B (no path leaves it between them: a1 -> b2 comes from outside), ranked by b0 before
    # A = {a1}. B attaches, A has no stream yet: A opens one and B rides on it.
    engine, edges = ["b", "a", "b"], np.array([(0, 2), (1, 2)])
    cluster = engine_clusters(engine, [""] * 3, edges)
    assert cluster.tolist() == [0, 1, 0]
    rules = {"a": EngineRule(), "b": EngineRule(attach=True)}
    assert allocate(engine, [""] * 3, edges, cluster, rules).tolist() == [0, 0, 0]


def test_a_skipped_op_joins_the_only_stream_around_it() -> None:
    # x1 (skip) follows a0 and feeds a2. As a cluster without attach it opens the stream of engine x; all its
    # neighbours are on the stream of a, so it moves there and its own stream vanishes from the numbering.
    rules = {"a": EngineRule(), "x": EngineRule(skip=True)}
    placed = allocate(["a", "x", "a"], [""] * 3, np.array([(0, 1), (1, 2)]), np.arange(3), rules)
    assert placed.tolist() == [0, 0, 0]


def _problem(engine: list[int], edges: list[tuple[int, int]], names: list[str], **limits: object) -> Problem:
    demand = np.eye(len(names), dtype=np.int64)[engine]
    return Problem.from_arrays(
        duration=[10] * len(engine), edges=edges, demand=demand, capacity=[1] * len(names), engine=engine,
        engine_names=names, **limits,  # type: ignore[arg-type]
    )  # fmt: skip


# Two layers: cube work m0, m2, a collective c1 after m0 that m2 needs, host work h3 after m2 alone.
_LAYERS = ([0, 1, 0, 2], [(0, 1), (1, 2), (2, 3)], ["ai_core", "hccl", "ai_cpu"])
_RULES = Ge(independent=("hccl", "nccl"), attach=("ai_cpu",))


def test_collectives_get_a_stream_and_attached_ops_ride() -> None:
    # hccl is independent: stream 0. m0 opens the stream of ai_core, m2 cannot follow c1 (independent) and takes the
    # single ai_core stream again. h3 attaches to m2, which feeds nothing else.
    assert _RULES.assign(_problem(*_LAYERS), Budget()).tolist() == [1, 0, 1, 1]


def test_attached_ops_are_refused_where_the_predecessor_feeds_its_own_engine() -> None:
    # m0 feeds h1 and, by way of c2 only, m3: h1 rides. With a direct m0 -> m3 (a cluster of its own, since
    # m0 -> c2 -> m3 is a second path) the stream is left to m3 and h1 takes the stream of ai_cpu. Engines' streams
    # follow each other by name: hccl 0 (independent goes first), ai_core 1, ai_cpu 2.
    names = ["ai_core", "hccl", "ai_cpu"]
    riding = _problem([0, 2, 1, 0], [(0, 1), (0, 2), (2, 3)], names)
    assert _RULES.assign(riding, Budget()).tolist() == [1, 1, 0, 1]
    refused = _problem([0, 2, 1, 0], [(0, 1), (0, 2), (2, 3), (0, 3)], names)
    assert _RULES.assign(refused, Budget()).tolist() == [1, 2, 0, 1]


def test_an_op_that_ge_gives_no_stream_rides_with_its_first_successor() -> None:
    # x0 has no inputs and its engine is skipped, so GE places it nowhere; it feeds b2, on the second stream.
    problem = _problem([0, 1, 2], [(0, 2)], ["x", "a", "b"])
    assert Ge(skip=("x",)).assign(problem, Budget()).tolist() == [1, 0, 1]


def test_limits_that_ge_knows_nothing_of_are_named() -> None:
    with pytest.raises(UnassignableError, match="2 streams, the limit is 1"):
        _RULES.assign(_problem(*_LAYERS, streams=1), Budget())
    with pytest.raises(UnassignableError, match="'op3' shares a stream with ops of another engine"):
        _RULES.assign(_problem(*_LAYERS, binding="engine"), Budget())
    with pytest.raises(UnassignableError, match="'op1' is on another stream than the rest of its label"):
        _RULES.assign(_problem(*_LAYERS, label=[5, 5, -1, -1]), Budget())
    with pytest.raises(OptionError, match="'hccl' is 0; it must be at least 1"):
        Ge(max_parallel_num={"hccl": 0})
