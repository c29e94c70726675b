"""Schedules moved right, and windows solved anew."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import msched
from msched.plan import Plan
from msched.problem import Problem
from msched.simulator import start_times
from msched.solvers.base import Budget
from msched.solvers.exact.cpsat import CpSat
from msched.solvers.exact.effort import Effort, run
from msched.solvers.exact.ledger import Ledger
from msched.solvers.exact.neighbourhoods import Neighbourhoods
from msched.solvers.exact.scaled import Scaled, Streams
from msched.solvers.exact.schedule import Schedule
from msched.solvers.exact.window import Window
from msched.solvers.joint.blevel import Blevel
from tests.reference.brute_force import optimum
from tests.strategies import problems


def schedule_of(problem: Problem, plan: Plan) -> Schedule:
    return Schedule.of(Scaled.of(problem, 1), Streams.of(problem), plan, start_times(problem, plan, "planned"))


def holds(schedule: Schedule, start: np.ndarray[Any, Any]) -> bool:
    """Whether start times keep dependencies, engines and streams: second by second, without the kernel's profiles."""
    problem, end = schedule.scaled.problem, start + schedule.duration
    u, v = problem.edges[:, 0], problem.edges[:, 1]
    if (start[v] < end[u] + schedule.lag).any():
        return False
    for time in range(int(end.max(initial=0)) + 1):
        running = (start <= time) & (time < end)
        if (schedule.demand[running].sum(axis=0) > problem.capacity).any():
            return False
        held = (start <= time) & (time < end + schedule.scaled.gap)
        if schedule.streams.policy == "choice":
            busy, most = np.bincount(schedule.stream[held], minlength=schedule.streams.lanes), 1
            if (busy > most).any():
                return False
        else:
            row = problem.engine if problem.binding == "engine" else np.zeros(problem.n, np.int64)
            if (
                np.bincount(row[held], minlength=np.diff(schedule.streams.first).size) > np.diff(schedule.streams.first)
            ).any():
                return False
    return True


def test_ops_move_right_one_behind_the_other() -> None:
    # One engine of two units. 0 (2 units, 0-3) before 1 (1 unit, 3-5); 2 (1 unit, 3-9) is as long as the rest allows;
    # 3 (1 unit, 5-6). Rightmost: 2 stays, 3 to 8-9, 1 to 6-8, 0 stays before 2.
    problem = Problem.from_arrays(
        duration=[3, 2, 6, 1], demand=[[2], [1], [1], [1]], capacity=[2], edges=[(0, 1)], streams=2
    )
    plan = Plan(stream=np.array([0, 0, 1, 0]), order=np.array([0, 1, 2, 3]))
    schedule = schedule_of(problem, plan)
    assert schedule.early.tolist() == [0, 3, 3, 5]
    assert schedule.late.tolist() == [0, 6, 3, 8]


@settings(max_examples=150)
@given(problems(host=False, tensors=False), st.data())
def test_every_state_between_early_and_late_is_a_schedule(problem: Problem, data: st.DataObject) -> None:
    plan = Blevel().solve(problem, Budget())
    assume(plan.order.size)
    schedule = schedule_of(problem, plan)
    assert (schedule.late >= schedule.early).all()
    at = data.draw(st.integers(0, problem.n))
    start = schedule.early.copy()
    start[schedule.by_finish[at:]] = schedule.late[schedule.by_finish[at:]]
    assert holds(schedule, start)


@settings(max_examples=100)
@given(problems(most_ops=6, host=False, tensors=False))
def test_a_window_of_all_ops_reaches_the_optimum(problem: Problem) -> None:
    best, _ = optimum(problem)
    plan = Blevel().solve(problem, Budget())
    schedule = schedule_of(problem, plan)
    # An op on a stream that the plan does not use needs a stream more than the window has.
    assume(schedule.streams.policy != "choice" or schedule.streams.lanes >= Streams.of(problem).lanes)
    nothing = np.zeros(problem.n, np.bool_)
    window = Window.of(schedule, ~nothing, nothing, 0)
    if window is None:
        assert schedule.makespan == 0
        return
    answer = run(window.model.cp, Effort(20))
    assert answer.status == "OPTIMAL"
    assert answer.value(window.model.makespan) == best
    found = window.plan(answer)
    assert msched.simulate(problem, found, "planned").makespan_ns == best
    assert not msched.validate(problem, found, msched.simulate(problem, found, "planned"), "planned")


@settings(max_examples=80)
@given(problems(host=False, tensors=False, labels=True), st.data())
def test_what_a_window_claims_is_simulated_no_later(problem: Problem, data: st.DataObject) -> None:
    plan = Blevel().solve(problem, Budget())
    schedule = schedule_of(problem, plan)
    at = data.draw(st.integers(1, problem.n))
    free, shifted = np.zeros(problem.n, np.bool_), np.zeros(problem.n, np.bool_)
    shifted[schedule.by_finish[at:]] = True
    chosen = data.draw(st.sets(st.sampled_from(schedule.by_finish[:at].tolist()), min_size=1))
    free[sorted(chosen)] = True
    window = Window.of(schedule, free, shifted, 0)
    assume(window is not None)
    assert window is not None
    answer = run(window.model.cp, Effort(20))
    assert answer.status == "OPTIMAL"
    claim = answer.value(window.model.makespan)
    assert claim <= schedule.makespan
    found = window.plan(answer)
    timeline = msched.simulate(problem, found, "planned")
    assert timeline.makespan_ns <= claim
    assert not msched.validate(problem, found, timeline, "planned")


def two_pairs() -> Problem:
    """Two engines, two ops on each; in the order of the plan below each engine idles while the other works."""
    return Problem.from_arrays(
        duration=[4, 4, 4, 4],
        demand=[[1, 0], [0, 1], [0, 1], [1, 0]],
        capacity=[1, 1],
        edges=[(0, 1), (2, 3)],
        streams=2,
    )


def test_windows_find_the_optimum_from_a_plan_of_one_stream() -> None:
    problem = two_pairs()
    plan = Plan(stream=np.zeros(4, np.int64), order=np.arange(4))
    ledger = Ledger(problem, Budget(time_limit=20))
    search = Neighbourhoods.of(
        ledger, Scaled.of(problem, 1), Streams.of(problem), plan, start_times(problem, plan, "planned")
    )
    found = search.search(Effort(20))
    assert found is not None
    assert msched.simulate(problem, found).makespan_ns == 8


def test_a_deterministic_search_gives_the_same_plan_twice() -> None:
    graph = msched.network("random_layered", ops=120, seed=3)
    problem = msched.lower(graph, "atlas_800i_a2", streams=4)
    solver = CpSat(seeds=(Blevel(),))
    first, second = (
        msched.solve(problem, solver, deterministic=True, time_limit=1, workers=workers, seed=1) for workers in (1, 1)
    )
    assert first.order.tolist() == second.order.tolist()
    assert first.stream.tolist() == second.stream.tolist()
    assert first.bound_ns == second.bound_ns


@pytest.mark.parametrize("workers", [1, 2])
def test_a_stopped_search_keeps_what_it_has(workers: int) -> None:
    problem = msched.lower(msched.network("random_layered", ops=300, seed=3), "atlas_800i_a2", streams=4)
    stop = threading.Event()
    reports: list[int | None] = []

    def progress(incumbent: msched.plan.Incumbent) -> None:
        reports.append(incumbent.makespan_ns)
        if len(set(reports)) == 3:
            stop.set()

    plan = msched.solve(
        problem, CpSat(seeds=(Blevel(),)), time_limit=40, workers=workers, on_progress=progress, stop=stop
    )
    assert not msched.validate(problem, plan, msched.simulate(problem, plan))
