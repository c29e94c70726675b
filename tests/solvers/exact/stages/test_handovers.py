"""Handovers by min-cost flow against every assignment of streams."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np

from msched.plan import Plan
from msched.problem import Problem
from msched.simulator import start_times
from msched.solvers.exact.stages.handovers import handed_over


def handed(problem: Problem, order: list[int], stream: list[int]) -> int:
    """Dependencies between neighbours of a stream."""
    lanes = {s: [v for v in order if stream[v] == s] for s in stream}
    pairs = {pair for lane in lanes.values() for pair in pairwise(lane)}
    return len(pairs & set(map(tuple, problem.edges.tolist())))


def reduced(n: int, draw: np.random.Generator) -> list[tuple[int, int]]:
    """Edges of which none is implied by the others."""
    edges = [(u, v) for v in range(n) for u in range(v) if draw.random() < 0.4]
    reach = {v: {v} for v in range(n)}
    for u, v in sorted(edges, reverse=True):
        reach[u] |= reach[v]
    return [(u, v) for u, v in edges if not any(w != v and v in reach[w] for x, w in edges if x == u)]


def test_no_other_streams_hand_over_more() -> None:
    draw, several = np.random.default_rng(3), 0
    for _ in range(40):
        n, count = int(draw.integers(3, 7)), int(draw.integers(1, 4))
        problem = Problem.from_arrays(duration=draw.integers(1, 5, n), edges=reduced(n, draw), gap_ns=1)
        stream = np.unique(draw.integers(0, count, n), return_inverse=True)[1]
        plan = Plan(stream=stream, order=np.arange(n))
        start = start_times(problem, plan, "planned")
        end = start + problem.duration
        found = handed_over(problem, plan, start, end)
        assert found is not None
        order = np.argsort(start, kind="stable").tolist()

        def fits(stream: list[int], start: np.ndarray = start, end: np.ndarray = end, n: int = n) -> bool:
            apart = (
                end[u] + 1 <= start[v] or end[v] + 1 <= start[u]
                for v in range(n)
                for u in range(v)
                if stream[u] == stream[v]
            )
            return all(apart)

        assert fits(found.tolist())
        assert int(found.max()) < plan.streams
        every = (list(some) for some in product(range(plan.streams), repeat=n))
        most = max(handed(problem, order, some) for some in every if fits(some))
        assert handed(problem, order, found.tolist()) == most
        several += most > 1
    assert several > 10


def test_streams_of_an_engine_stay_its_own() -> None:
    problem = Problem.from_arrays(
        duration=[2, 2, 2, 2], edges=[(0, 2), (1, 3)], demand=[[1, 0], [0, 1], [1, 0], [0, 1]], capacity=[1, 1],
        binding="engine",
    )  # fmt: skip
    plan = Plan(stream=np.array([0, 1, 0, 1]), order=np.arange(4))
    start = start_times(problem, plan, "planned")
    assert handed_over(problem, plan, start, start + 2) is not None
    found = handed_over(problem, plan, start, start + 2)
    assert found is not None
    assert found.tolist() in ([0, 1, 0, 1], [1, 0, 1, 0])


def test_labels_decide_themselves() -> None:
    problem = Problem.from_arrays(duration=[1, 1], label=[0, 0])
    assert (
        handed_over(problem, Plan(stream=np.zeros(2, np.int64), order=np.arange(2)), np.array([0, 1]), np.array([1, 2]))
        is None
    )
