"""Windows placed anew by sampling: claims hold under the simulator, and the best of small windows is found."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import msched
from msched.plan import Plan
from msched.problem import Problem
from msched.simulator import start_times
from msched.solvers.base import Budget
from msched.solvers.exact.resampling import Resampling
from msched.solvers.exact.scaled import Scaled, Streams
from msched.solvers.exact.schedule import Schedule
from msched.solvers.joint.blevel import Blevel
from msched.solvers.joint.schemes import ABSENT, FREE, scheme
from msched.solvers.joint.serial_scheme_kernel import empty_profile, empty_schedule, serial
from msched.solvers.stream_pool import stream_pool
from tests.reference.brute_force import optimum
from tests.strategies import problems


def schedule_of(problem: Problem, plan: Plan) -> Schedule:
    return Schedule.of(Scaled.of(problem, 1), Streams.of(problem), plan, start_times(problem, plan, "planned"))


def everything(schedule: Schedule) -> Resampling | None:
    n = schedule.early.size
    return Resampling.of(schedule, np.ones(n, np.bool_), np.zeros(n, np.bool_), 0)


def simulated(problem: Problem, plan: Plan) -> int:
    return msched.simulate(problem, plan, dispatch="planned").makespan_ns


@settings(max_examples=150)
@given(problems(host=False, tensors=False, most_ops=7), st.data())
def test_what_a_window_claims_the_simulator_reaches(problem: Problem, data: st.DataObject) -> None:
    plan = Blevel().solve(problem, Budget())
    assume(plan.order.size)
    schedule = schedule_of(problem, plan)
    assume(schedule.makespan and Resampling.possible(schedule))
    at = data.draw(st.integers(1, problem.n))
    shifted = np.zeros(problem.n, np.bool_)
    shifted[schedule.by_finish[at:]] = True
    free = np.zeros(problem.n, np.bool_)
    free[schedule.by_finish[data.draw(st.integers(0, at - 1)) : at]] = True
    window = Resampling.of(schedule, free, shifted, 0)
    assume(window is not None)
    assert window is not None
    reached, found = window.search(1.0, 0, lambda: False, rounds=60)
    assert reached <= schedule.makespan
    if found is not None:
        assert reached < schedule.makespan
        assert simulated(problem, found) <= reached


@settings(max_examples=60)
@given(problems(host=False, tensors=False, most_ops=5))
def test_with_all_ops_free_it_is_never_below_the_optimum(problem: Problem) -> None:
    plan = Blevel().solve(problem, Budget())
    best = optimum(problem)
    assume(plan.order.size and best is not None)
    assert best is not None
    schedule = schedule_of(problem, plan)
    assume(schedule.makespan and Resampling.possible(schedule))
    window = everything(schedule)
    assert window is not None
    reached, _ = window.search(1.0, 0, lambda: False, rounds=200)
    assert best[0] <= reached <= schedule.makespan


def test_the_block_moves_up_behind_a_better_window() -> None:
    # Two units. 0 (1 unit, 4) and 1 (1 unit, 4) fit beside each other, 2 (2 units, 2) beside nothing. The plan runs 0,
    # 2, 1: 4 + 2 + 4 = 10, and behind it the chain 3, 4 of 5 each. 0 beside 1, then 2: 6 + 10.
    problem = Problem.from_arrays(
        duration=[4, 4, 2, 5, 5], demand=[[1], [1], [2], [2], [2]], capacity=[2],
        edges=[(0, 3), (1, 3), (2, 3), (3, 4)], streams=2,
    )  # fmt: skip
    schedule = schedule_of(problem, Plan(stream=np.array([0, 1, 0, 0, 0]), order=np.array([0, 2, 1, 3, 4])))
    assert schedule.makespan == 20
    shifted = np.array([False, False, False, True, True])
    window = Resampling.of(schedule, ~shifted, shifted, 0)
    assert window is not None
    reached, plan = window.search(1.0, 0, lambda: False, rounds=50)
    assert reached == 16
    assert plan is not None
    assert simulated(problem, plan) == 16


def test_no_gain_is_sought_below_the_least_makespan() -> None:
    problem = Problem.from_arrays(duration=[4, 4], demand=[[1], [1]], capacity=[2], streams=2)
    schedule = schedule_of(problem, Plan(stream=np.array([0, 0]), order=np.array([0, 1])))
    assert Resampling.of(schedule, np.ones(2, np.bool_), np.zeros(2, np.bool_), 8) is None
    window = Resampling.of(schedule, np.ones(2, np.bool_), np.zeros(2, np.bool_), 6)
    assert window is not None
    assert window.search(1.0, 0, lambda: False, rounds=50)[0] == 6


@pytest.mark.parametrize("seed", [0, 1])
def test_rounds_give_the_same_plan_twice(seed: int) -> None:
    problem = msched.lower(msched.network("random_layered", ops=60, seed=seed), "atlas_800i_a2", streams=4)
    schedule = schedule_of(problem, Blevel().solve(problem, Budget()))
    window = everything(schedule)
    assert window is not None
    first, again = (window.search(1.0, 3, lambda: False, rounds=300) for _ in range(2))
    assert first[0] == again[0] < schedule.makespan
    assert first[1] is not None
    assert again[1] is not None
    assert first[1].order.tolist() == again[1].order.tolist()


def test_ops_that_stand_keep_their_place_and_heads_and_tails_count() -> None:
    # One unit. Op 0 stands from 3 to 5, op 1 (3) fits before it, op 2 (4) only behind; its tail is 6. Op 3 is left out.
    problem = Problem.from_arrays(duration=[2, 3, 4, 9], demand=[[1]] * 4, capacity=[1], streams=4)
    one = scheme(problem, stream_pool(problem, 4))._replace(
        at=np.array([3, FREE, FREE, ABSENT]), head=np.array([0, 0, 1, 0]), tail=np.array([0, 0, 6, 0])
    )
    result = empty_schedule(4)
    makespan = serial(np.array([0, 3, 2, 1]), np.full(4, -1), np.full(4, -1), False, one, empty_profile(one), result)
    assert result.start.tolist()[:3] == [3, 0, 5]
    assert makespan == 9 + 6
