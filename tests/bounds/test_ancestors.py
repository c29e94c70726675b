"""Heads by the load of ancestors: against the definition, written plainly, and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from msched.arrays import Int64Array
from msched.bounds import ancestors, loaded_heads_and_tails
from msched.bounds.paths import heads_and_tails, least_lags
from msched.bounds.resources import loads
from msched.problem import Problem


def layered(n: int, width: int, seed: int) -> Problem:
    """Random ops in layers, each behind one to three of the layer before it, on two engines and four streams."""
    rng = np.random.default_rng(seed)
    edges = {
        (int(rng.integers(max(0, (v // width - 1) * width), v // width * width)), v)
        for v in range(width, n)
        for _ in range(rng.integers(1, 4))
    }
    return Problem.from_arrays(
        duration=rng.integers(0, 20, n),
        edges=sorted(edges),
        demand=np.stack([rng.integers(0, 5, n), rng.integers(0, 2, n)], axis=1),
        capacity=[4, 1],
        streams=4,
        gap_ns=1,
    )


def plain_heads(problem: Problem) -> Int64Array:
    """Ancestors that cannot start before h all run between h and the op, for every h and load."""
    n, lag = problem.n, least_lags(problem)
    into: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for (u, v), least in zip(problem.edges.tolist(), lag.tolist(), strict=True):
        into[v].append((u, least))
    head, above = [0] * n, [set[int]() for _ in range(n)]
    shared = [(load.work.tolist(), load.units, load.gap) for load in loads(problem)]
    for v in problem.topological_order.tolist():
        for u, least in into[v]:
            head[v] = max(head[v], head[u] + int(problem.duration[u]) + least)
            above[v] |= above[u] | {u}
        by_head = sorted(above[v], key=lambda u: -head[u])
        for work, units, gap in shared:
            total = 0
            for u in by_head:
                total += work[u]
                if work[u] and total > gap * units:
                    head[v] = max(head[v], head[u] - (-(total - gap * units) // units))
    return np.array(head)


@pytest.mark.parametrize(("n", "width"), [(40, 3), (300, 4), (300, 40), (700, 9)])
def test_heads_by_all_ancestors(monkeypatch: pytest.MonkeyPatch, n: int, width: int) -> None:
    problem = layered(n, width, seed=n + width)
    monkeypatch.setattr(ancestors, "_MOST", 0)  # without sequencing the last ones
    heads, _ = loaded_heads_and_tails(problem)
    assert heads.tolist() == plain_heads(problem).tolist()
    assert (heads > heads_and_tails(problem)[0]).any()


def test_tails_are_heads_of_the_reversed_network() -> None:
    problem = layered(200, 6, seed=1)
    reverse = Problem.from_arrays(
        duration=problem.duration, edges=problem.edges[:, ::-1], demand=problem.demand, capacity=problem.capacity,
        streams=4, gap_ns=1,
    )  # fmt: skip
    assert loaded_heads_and_tails(problem)[1].tolist() == loaded_heads_and_tails(reverse)[0].tolist()


def test_last_ancestors_are_sequenced() -> None:
    # Ops 0 and 1 of 5 ns share a unit; a path of 4 ns leads from each to op 4. Load alone says 10, the path 9;
    # whichever is second ends at 10, and op 4 starts at 14.
    demand = [[1], [1], [0], [0], [0]]
    edges = [(0, 2), (1, 3), (2, 4), (3, 4)]
    problem = Problem.from_arrays(duration=[5, 5, 4, 4, 1], demand=demand, capacity=[1], edges=edges)
    assert plain_heads(problem)[4] == 10
    assert loaded_heads_and_tails(problem)[0].tolist() == [0, 0, 5, 5, 14]


def test_each_ancestor_is_issued_before() -> None:
    # Ops 0 to 4 are issued at 5, 10, ... 25 in some order, and op 5, behind all of them, at 30.
    problem = Problem.from_arrays(duration=[1] * 6, edges=[(v, 5) for v in range(5)], host_issue_ns=5)
    assert loaded_heads_and_tails(problem)[0].tolist() == [5, 5, 5, 5, 5, 30]


def test_ops_that_lead_nowhere_may_only_weaken_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = layered(700, 9, seed=3)
    full = loaded_heads_and_tails(problem)
    monkeypatch.setattr(ancestors, "_SMALL", 0)
    monkeypatch.setattr(ancestors, "_MOST", 0)
    fewer = loaded_heads_and_tails(problem)
    assert all((less <= all_of_them).all() for less, all_of_them in zip(fewer, full, strict=True))
    assert all((less >= paths).all() for less, paths in zip(fewer, heads_and_tails(problem), strict=True))
