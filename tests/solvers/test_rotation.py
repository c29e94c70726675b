"""Streams that go round, so that each holds its share of tasks."""

from __future__ import annotations

import numpy as np

import msched
from msched.plan import Plan
from msched.problem import Problem
from msched.solvers.limits import tasks_in_streams
from msched.solvers.rotation import rotate
from msched.solvers.splitting import split
from msched.validate import validate


def two_chains(length: int, tasks: int, streams: int = 3) -> tuple[Problem, Plan]:
    """Two chains of ops of 10 ns side by side, each on a stream of its own."""
    edges = [(v, v + 2) for v in range(2 * length - 2)]
    problem = Problem.from_arrays(
        duration=[10] * (2 * length), edges=edges, gap_ns=3, record_ns=1, wait_ns=2,
        streams=streams, tasks_per_stream=tasks,
    )  # fmt: skip
    return problem, Plan(stream=np.arange(2 * length) % 2, order=np.arange(2 * length))


def test_two_chains_share_three_streams() -> None:
    # 120 ops, 60 a chain: on streams of 50 tasks neither fits alone. Cut, they take four parts, and there are three
    # streams; that of an earlier part has room for a later one. An event takes as long as the gap, so a cut costs
    # no time: 60 ops and 59 gaps.
    problem, plan = two_chains(60, 50)
    moved = split(problem, plan)
    tasks = tasks_in_streams(moved, msched.waits(problem, moved))
    assert tasks.max() <= 50
    assert moved.streams == 3
    timeline = msched.simulate(problem, moved)
    assert timeline.makespan_ns == 60 * 10 + 59 * 3
    assert validate(problem, moved, timeline) == []
    assert moved.order.tolist() == plan.order.tolist()


def test_ops_that_followed_each_other_still_do() -> None:
    problem, plan = two_chains(60, 50)
    problem = Problem.from_arrays(
        duration=problem.duration, gap_ns=3, record_ns=1, wait_ns=2, streams=3, tasks_per_stream=50
    )
    moved = split(problem, plan)
    start = msched.simulate(problem, moved).start_ns
    assert (start[2:] >= start[:-2] + 10 + 3).all()


def test_more_tasks_than_the_streams_hold_are_not_moved() -> None:
    problem, plan = two_chains(60, 41)  # 123 in all, and two chains take three cuts of 3 tasks at least
    assert rotate(problem, plan, "arrival") is None
    assert split(problem, plan) is plan
