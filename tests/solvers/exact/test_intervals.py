"""Interval bounds: by hand where loads are not enough, and never above the optimum of the brute force."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msched
from msched.bounds import bound
from msched.problem import Problem
from msched.solvers.exact.intervals import interval_bound
from tests.reference.brute_force import optimum
from tests.strategies import problems


def _knots(count: int, inner: list[int], streams: int = 2) -> Problem:
    """Gates of 1 ns, and after each but the last one the ops of `inner`, side by side, on so many streams."""
    duration, edges, gate = [1], [], 0
    for _ in range(count):
        first = len(duration)
        duration += [*inner, 1]
        edges += [(gate, first + i) for i in range(len(inner))]
        gate = len(duration) - 1
        edges += [(first + i, gate) for i in range(len(inner))]
    return Problem.from_arrays(duration=duration, edges=edges, streams=streams)


@pytest.mark.parametrize(
    ("inner", "least"),
    [
        ([3, 3, 3, 3, 3], 9),  # two streams: three ops on one of them, where their load is 15 / 2
        ([5, 4, 4, 3, 3, 2, 2, 2], 13),  # 25 ns split in 12 and 13
        ([7, 5, 5, 3], 10),
    ],
)
def test_intervals_between_gates_add_up(inner: list[int], least: int) -> None:
    problem = _knots(5, inner)
    found = interval_bound(problem, seconds=20)
    assert found.makespan_ns == 6 + 5 * least
    assert found.head.tolist()[-1] == 5 + 5 * least


def test_what_loads_know_is_kept() -> None:
    problem = _knots(3, [3, 3, 3, 3, 3])
    stop = threading.Event()
    stop.set()
    assert interval_bound(problem, seconds=20, stop=stop).makespan_ns == bound(problem).makespan_ns
    assert interval_bound(Problem.from_arrays(duration=[]), seconds=1).makespan_ns == 0


def test_a_plan_that_is_known_bounds_the_bound() -> None:
    problem = _knots(5, [3, 3, 3, 3, 3])
    best = 6 + 5 * 9
    assert interval_bound(problem, seconds=20, upper_ns=best).makespan_ns == best
    assert bound(problem).makespan_ns < best
    assert interval_bound(problem, seconds=20, upper_ns=best + 40).makespan_ns == best


def test_deterministic_work_gives_the_same_bound() -> None:
    graph = msched.network("llama", size="65b", tensor_parallel=8, phase="prefill", layers=4, slices=2)
    problem = msched.lower(graph, device="atlas_800i_a2", streams=8)
    first, second = (interval_bound(problem, seconds=2, deterministic=True) for _ in range(2))
    assert first.makespan_ns == second.makespan_ns
    assert first.pairs.tolist() == second.pairs.tolist()


@settings(max_examples=60, deadline=None)
@given(problems(most_ops=5, labels=True), st.integers(0, 4))
def test_never_above_the_optimum(problem: Problem, slack: int) -> None:
    found = optimum(problem)
    assert found is not None
    best, plan = found
    free = interval_bound(problem, seconds=2)
    assert bound(problem).makespan_ns <= free.makespan_ns <= best
    within = interval_bound(problem, seconds=2, upper_ns=best + slack)
    assert within.makespan_ns <= best
    timeline = msched.simulate(problem, plan, "planned")
    for result in (free, within):
        assert (timeline.start_ns >= result.head).all()
        assert (timeline.finish_ns + result.tail <= best).all()
        for a, b, lag in result.pairs.tolist():
            assert timeline.start_ns[b] >= timeline.finish_ns[a] + lag
