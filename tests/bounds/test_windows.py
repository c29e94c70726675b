"""Loads of windows: against plain formulas over all sets of ops, and published figures."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from msched.arrays import Int64Array
from msched.bounds import energetic_windows, engine_load, heads_and_tails
from msched.bounds.windows_kernel import preemptive
from msched.problem import Problem

OPS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=7)


@given(OPS, st.integers(1, 3))
def test_preemptive_load_is_the_best_over_all_sets(ops: list[tuple[int, int, int]], units: int) -> None:
    sets = [s for k in range(1, len(ops) + 1) for s in combinations(ops, k)]
    best = max(min(h for h, _, _ in s) - (-sum(p for _, _, p in s) // units) + min(q for _, q, _ in s) for s in sets)
    head, tail, work = (np.array(column) for column in zip(*ops, strict=True))
    assert preemptive(head, tail, work, units) == best


def test_carlier_1982() -> None:
    # The example of The one-machine sequencing problem, table 1: the optimum is 50, the preemptive schedule takes 49.
    head, tail = np.array([10, 13, 11, 20, 30, 0, 30]), np.array([7, 26, 24, 21, 8, 17, 0])
    assert preemptive(head, tail, np.array([5, 6, 7, 4, 3, 6, 2]), 1) == 49


def test_many_windows_are_all_looked_at() -> None:
    # A chain of 1,000 ops of 2 ns without an engine, each followed by an op of 1 ns on the engine, and the 500th also
    # by one of 1,005 ns: from 1,000 ns on, the engine has that one and the last 501 of 1 ns to do.
    n = 1000
    edges = [(v, v + 1) for v in range(n - 1)] + [(v, n + v) for v in range(n)] + [(499, 2 * n)]
    demand = [[0]] * n + [[1]] * (n + 1)
    problem = Problem.from_arrays(duration=[2] * n + [1] * n + [1005], edges=edges, demand=demand, capacity=[1])
    heads, tails = heads_and_tails(problem)
    assert heads[2 * n] == 1000
    assert engine_load(problem, heads, tails) == 1000 + 1005 + 501


def test_energy_that_reaches_into_a_window() -> None:
    # Op 2 holds all 4 units for 5 ns and is followed by 2 ns; ops 0 and 1 hold 2 for 4 ns. Op 2 first: it ends at 6,
    # and op 1 with its tail ends at 13. Op 2 last: it starts at 8 at the earliest, and ends with its tail at 15.
    heads, tails = np.array([5, 4, 1]), np.array([0, 3, 2])
    problem = Problem.from_arrays(duration=[4, 4, 5], demand=[[2], [2], [4]], capacity=[4])
    assert engine_load(problem, heads, tails) == 10  # 36 units x ns from 1 on
    assert energetic_windows(problem, heads, tails, 11) == 13 == optimum_by_start(problem, heads, tails)


@given(st.lists(st.tuples(*[st.integers(0, 5)] * 2, st.integers(1, 5), st.integers(1, 4)), min_size=1, max_size=4))
def test_energetic_windows_are_never_above_the_optimum(ops: list[tuple[int, int, int, int]]) -> None:
    heads, tails, duration, demand = (np.array(column) for column in zip(*ops, strict=True))
    problem = Problem.from_arrays(duration=duration, demand=demand[:, None], capacity=[4])
    assert energetic_windows(problem, heads, tails, 0) <= optimum_by_start(problem, heads, tails)


def optimum_by_start(problem: Problem, heads: Int64Array, tails: Int64Array) -> int:
    """The least makespan over all start times, ops within their heads and tails."""
    horizon = 30
    best = horizon

    def place(v: int, used: list[int], end: int) -> None:
        nonlocal best
        if end >= best:
            return
        if v == problem.n:
            best = end
            return
        d, b = int(problem.duration[v]), int(problem.demand[v, 0])
        for start in range(int(heads[v]), horizon - d):
            if all(used[t] + b <= problem.capacity[0] for t in range(start, start + d)):
                for t in range(start, start + d):
                    used[t] += b
                place(v + 1, used, max(end, start + d + int(tails[v])))
                for t in range(start, start + d):
                    used[t] -= b

    place(0, [0] * horizon, 0)
    return best
