"""The exact solver under limits on events and tasks, which follow from a plan and are no sums over its streams."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import msched
from msched.plan import Plan
from msched.problem import Problem
from msched.solvers.exact.cpsat import CpSat
from msched.solvers.exact.waits import without_events
from msched.solvers.limits import broken


def held(problem: Problem, plan: Plan, dispatch: Any = "arrival") -> int:
    """The makespan of a plan that keeps every limit."""
    timeline = msched.simulate(problem, plan, dispatch)
    assert broken(problem, plan, timeline) == ""
    assert msched.validate(problem, plan, timeline, dispatch) == []
    return timeline.makespan_ns


def test_tasks_are_spread_where_a_stream_would_hold_too_many() -> None:
    # A chain 3, 2, 0, 1, 4 over three engines takes all its work, 2,000,973 ns, on whatever streams. Streams 0, 1, 2,
    # 3, 0 keep to seven tasks: ops 1 and 2 apart, each receives one wait and records one.
    problem = Problem.from_arrays(
        duration=[1000, 0, 999983, 7, 999983], edges=[(3, 2), (2, 0), (0, 1), (1, 4)], engine=[0, 1, 1, 2, 0],
        binding="engine", streams=4, tasks_per_stream=7,
    )  # fmt: skip
    assert held(problem, Plan(stream=np.array([0, 1, 2, 3, 0]), order=np.array([3, 2, 0, 1, 4]))) == 2_000_973
    plan = msched.solve(problem, "cpsat")
    assert plan.status == "optimal"
    assert held(problem, plan) == 2_000_973


@pytest.mark.parametrize("dispatch", ["arrival", "planned", "greedy"])
def test_without_events_collectives_share_a_stream_and_others_run_beside_them(dispatch: Any) -> None:
    # Ops 1 and 2 are of one communicator: one stream, 13 + 3. Op 0 runs beside op 2 on another.
    problem = Problem.from_arrays(
        duration=[3, 13, 3], demand=[[0, 2], [1, 3], [1, 0]], capacity=[4, 3], events=0, communicator=[-1, 1, 1]
    )
    assert held(problem, Plan(stream=np.array([0, 1, 1]), order=np.array([0, 2, 1])), dispatch) == 16
    plan = msched.solve(problem, "cpsat", dispatch=dispatch)
    assert plan.status == "optimal"
    assert held(problem, plan, dispatch) == 16


def test_without_events_what_depends_on_each_other_has_one_label() -> None:
    problem = Problem.from_arrays(
        duration=[1] * 6, edges=[(0, 1), (4, 2)], communicator=[-1, 0, 0, -1, -1, -1], label=[-1, -1, -1, 5, -1, 5],
        events=0,
    )  # fmt: skip
    label = without_events(problem).label
    assert len({int(label[v]) for v in (0, 1, 2, 4)}) == 1
    assert label[3] == label[5] != label[0]


@pytest.mark.parametrize(("events", "makespan"), [(0, 40), (1, 20), (2, 20)])
def test_each_event_buys_its_time(events: int, makespan: int) -> None:
    # Op 0 takes no time and feeds four ops of 10 ns on as many streams as wanted, two at a time. Without an event all
    # share a stream: 40. With one event one more stream may take two of them: 20 in all.
    problem = Problem.from_arrays(
        duration=[0, 10, 10, 10, 10],
        edges=[(0, v) for v in (1, 2, 3, 4)],
        demand=[[1]] * 5,
        capacity=[2],
        events=events,
    )
    plan = msched.solve(problem, CpSat())
    assert held(problem, plan) == makespan


def test_a_search_that_ends_before_its_time_does_not_claim_a_timeout() -> None:
    # Whatever is tried: two engines bound to a stream each, which exchange four results that no order makes redundant.
    problem = Problem.from_arrays(
        duration=[1, 1, 1, 1, 1, 1], edges=[(0, 3), (3, 1), (1, 4), (4, 2), (2, 5)], engine=[0, 0, 0, 1, 1, 1],
        demand=[[0, 0]] * 6, capacity=[1, 1], binding="engine", engine_streams=[1, 1], events=3,
    )  # fmt: skip
    plan = msched.solve(problem, "cpsat", time_limit=60)
    assert plan.status == "invalid"
    assert "ended before its time" in plan.reason
    assert "needs 5 events" in plan.reason
