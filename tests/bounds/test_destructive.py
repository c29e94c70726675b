"""Refuted makespans: against the brute force, by hand, and propagation against all schedules of a few ops."""

from __future__ import annotations

import time
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from msched.arrays import Int64Array
from msched.bounds import destructive
from msched.bounds.cumulative_kernel import energetic_heads, timetable_heads
from msched.bounds.disjunctive_kernel import disjunctive_heads
from msched.problem import Problem
from tests.reference.brute_force import optimum
from tests.strategies import problems

OP = st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(1, 4), st.integers(1, 3))
OPS = st.lists(OP, min_size=2, max_size=4)


@settings(max_examples=100)
@given(problems(most_ops=5, labels=True, tensors=False), st.sampled_from([0, 2]))
def test_no_makespan_that_a_plan_reaches_is_refuted(problem: Problem, shaving: int) -> None:
    best = optimum(problem)
    assert best is not None
    assert destructive(problem, best[0] + 9, shaving=shaving) <= best[0]


def test_three_jobs_on_two_machines() -> None:
    # Each job visits both machines; load and paths say 8.
    problem = Problem.from_arrays(
        duration=[3, 2, 2, 3, 4, 1], edges=[(0, 1), (2, 3), (4, 5)],
        demand=[[1, 0], [0, 1], [0, 1], [1, 0], [0, 1], [1, 0]], capacity=[1, 1],
    )  # fmt: skip
    best = optimum(problem)
    assert best is not None
    assert destructive(problem, 20) == best[0]


def test_shaving_refutes_more_than_propagation() -> None:
    rng = np.random.default_rng(0)
    gained = 0
    for _ in range(4):  # six jobs on four machines
        demand = np.eye(4, dtype=np.int64)[np.concatenate([rng.permutation(4) for _ in range(6)])]
        problem = Problem.from_arrays(
            duration=rng.integers(1, 99, 24), edges=[(v, v + 1) for v in range(23) if v % 4 < 3], demand=demand,
            capacity=[1] * 4,
        )  # fmt: skip
        plain, shaved = destructive(problem, 9999, shaving=0), destructive(problem, 9999)
        assert plain <= shaved
        gained += shaved > plain
    assert gained > 0


def test_nothing_is_refuted_beyond_the_plan_that_is_known() -> None:
    problem = Problem.from_arrays(duration=[5] * 3, demand=[[1]] * 3, capacity=[1])
    assert destructive(problem, 15) == 15
    assert destructive(problem, 15, known_ns=15) == 15


def test_what_is_known_stands_where_there_is_no_time() -> None:
    problem = Problem.from_arrays(duration=[5] * 3, demand=[[2]] * 3, capacity=[3])
    assert destructive(problem, 40, known_ns=12, deadline=time.monotonic()) == 12
    assert destructive(problem, 40, known_ns=15, stop=lambda: True) == 15


@pytest.mark.parametrize("alone", [True, False])
@settings(max_examples=150)
@given(ops=OPS, makespan=st.integers(8, 18))
def test_heads_of_a_group_keep_every_schedule(alone: bool, ops: list[tuple[int, int, int, int]], makespan: int) -> None:
    head, tail, duration, demand = (np.array(column) for column in zip(*ops, strict=True))
    assume((head + tail + duration <= makespan).all())
    if alone:
        starts = _in_turn(head, tail, duration, makespan)
        raised = [head.copy()]
        fine = [disjunctive_heads(raised[0], tail, duration, makespan)]
    else:
        starts = _together(head, tail, duration, demand, 3, makespan)
        raised = [head.copy(), head.copy()]
        edges = np.unique(np.concatenate([head, head + duration, makespan - tail, makespan - tail - duration]))
        fine = [
            timetable_heads(raised[0], tail, duration, demand, 3, makespan),
            energetic_heads(raised[1], tail, duration, demand, 3, makespan, edges, edges),
        ]
    for kept, heads in zip(fine, raised, strict=True):
        assert kept or not starts
        if kept and starts:
            assert (heads <= np.array(starts).min(axis=0)).all()
            assert (heads >= head).all()


def test_an_op_that_fits_nowhere_before_runs_behind() -> None:
    # Ops 0 and 1 of 4 ns must both end by 10, ops 2 of 3 ns by 20: it fits neither before nor between them.
    head = np.array([0, 0, 0])
    assert disjunctive_heads(head, np.array([10, 10, 0]), np.array([4, 4, 3]), 20)
    assert head.tolist() == [0, 0, 8]
    # Two ops of 2 of 3 units must both run from 0 to 4, which one engine cannot hold.
    assert not timetable_heads(np.array([0, 0]), np.array([0, 0]), np.array([4, 4]), np.array([2, 2]), 3, 4)


def _in_turn(head: Int64Array, tail: Int64Array, duration: Int64Array, makespan: int) -> list[list[int]]:
    """Earliest starts of every sequence that is in time."""
    found = []
    for sequence in permutations(range(head.size)):
        start, now = [0] * head.size, 0
        for v in sequence:
            start[v] = max(now, int(head[v]))
            now = start[v] + int(duration[v])
        if all(start[v] + duration[v] + tail[v] <= makespan for v in sequence):
            found.append(start)
    return found


def _together(
    head: Int64Array, tail: Int64Array, duration: Int64Array, demand: Int64Array, capacity: int, makespan: int
) -> list[tuple[int, ...]]:
    """All starts that keep the capacity."""
    rooms = [range(int(h), int(makespan - q - p) + 1) for h, q, p in zip(head, tail, duration, strict=True)]
    found = []
    for start in product(*rooms):
        running = [
            sum(int(b) for s, p, b in zip(start, duration, demand, strict=True) if s <= now < s + p) for now in start
        ]
        if max(running) <= capacity:
            found.append(start)
    return found
