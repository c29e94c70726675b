"""Random layered graphs: what holds for every seed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msched.graph import OpGraph
from msched.lowering import lower
from msched.networks.random_layered import build


def levels(graph: OpGraph) -> list[int]:
    """Layer of each op: the length of the longest way to it, found by networkx."""
    result = [0] * len(graph.ops)
    for layer, ops in enumerate(networkx.topological_generations(graph.to_networkx())):
        for v in ops:
            result[v] = layer
    return result


@given(st.integers(1, 60), st.integers(1, 8), st.integers(0, 99), st.floats(0, 1))
def test_layers_are_as_wide_as_asked_and_hang_together(ops: int, width: int, seed: int, probability: float) -> None:
    graph = build(ops=ops, width=width, seed=seed, edge_probability=probability)
    assert len(graph.ops) == ops
    layer = levels(graph)
    assert max(Counter(layer).values()) < 2 * width
    assert all(1 <= layer[v] - layer[u] <= 2 for u, v in graph.edges.tolist())
    sinks = set(range(ops)) - {u for u, _ in graph.edges.tolist()}
    assert {t.producer for t in graph.tensors if t.output} == sinks


@pytest.mark.parametrize(
    ("parameters", "start"),
    [
        ({}, "b0ba72ede253f885"),
        ({"ops": 1}, "d9cfae79ce01126f"),
        ({"ops": 500, "width": 16, "seed": 7}, "f2482d0733433d7b"),
        ({"ops": 400, "mix": {"matrix": 3, "vector": 1}, "median_ns": 20_000}, "d2d6c8940a303de1"),
    ],
)
def test_graphs_are_those_of_earlier_results(parameters: dict[str, Any], start: str) -> None:
    # hashes taken with numpy 2.4 before the random families shared their work
    assert build(**parameters).content_hash().startswith(start)


@pytest.mark.slow
def test_a_hundred_thousand_ops() -> None:
    graph = build(ops=100_000)
    assert len(graph.ops) == 100_000
    assert len(graph.edges) > 100_000


def test_the_seed_decides() -> None:
    assert build(ops=50, seed=3).content_hash() == build(ops=50, seed=3).content_hash()
    assert build(ops=50, seed=3).content_hash() != build(ops=50, seed=4).content_hash()


def test_without_further_edges_every_op_has_one_predecessor() -> None:
    graph = build(ops=300, edge_probability=0)
    count = np.bincount(graph.edges[:, 1], minlength=300)
    first = levels(graph).count(0)
    assert Counter(count.tolist()) == {0: first, 1: 300 - first}


def test_the_share_of_further_edges_is_the_one_asked_for() -> None:
    # The layer before an op has 1 to 63 ops, 32 on average, each of which is drawn with probability 0.05: 1.6 further
    # edges an op, less the few that are drawn twice.
    graph = build(ops=20_000, width=32, edge_probability=0.05, seed=1)
    more = (len(graph.edges) - 20_000) / 20_000
    assert 0.05 * 32 * 0.9 < more < 0.05 * 32 * 1.05


def test_the_mix_decides_the_kinds() -> None:
    assert {o.kind for o in build(ops=200).ops} == {
        "MatMul", "Add", "NonMaxSuppression", "ResizeBilinear", "HcomAllReduce"
    }  # fmt: skip
    kinds = Counter(o.kind for o in build(ops=4000, mix={"matrix": 3, "vector": 1}).ops)
    assert set(kinds) == {"MatMul", "Add"}
    assert kinds["MatMul"] == pytest.approx(3000, abs=150)  # five standard deviations of 27


def test_durations_spread_around_the_median() -> None:
    durations = [o.duration_ns or 0 for o in build(ops=4000, median_ns=20_000).ops]
    assert min(durations) >= 1000
    assert np.median(durations) == pytest.approx(20_000, rel=0.1)


def test_most_ops_leave_units_free_on_a_device() -> None:
    problem = lower(build(ops=500), "atlas_800i_a2")
    assert problem.n == 500
    share = (problem.demand / problem.capacity).max(axis=1)
    assert problem.warnings == ()
    assert 0.5 < (share < 1).mean() < 0.95  # collectives and the largest products take all of their engine
    assert len(set(problem.engine.tolist())) == 5
