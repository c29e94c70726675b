"""Sampling: its schemes against plain ones, published optima, and what every solver owes."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msched
from msched.errors import OptionError
from msched.plan import Incumbent
from msched.problem import Problem
from msched.solvers.base import Budget, UnassignableError
from msched.solvers.joint import parallel_scheme_kernel, serial_scheme_kernel
from msched.solvers.joint.blevel import Blevel
from msched.solvers.joint.sampled import empty_pool, sides_of
from msched.solvers.joint.sampled_kernel import justified
from msched.solvers.joint.sampling import Sampling
from msched.solvers.joint.schemes import counts_streams, scheme
from msched.solvers.limits import unbindable
from msched.solvers.stream_pool import StreamPool, stream_pool
from tests.reference import brute_force, schedule_generation
from tests.strategies import limited_problems, problems

# Fisher and Thompson (1963), 6 jobs on 6 machines: machine and duration of each step. The least makespan is 55.
FT06 = [
    [(2, 1), (0, 3), (1, 6), (3, 7), (5, 3), (4, 6)],
    [(1, 8), (2, 5), (4, 10), (5, 10), (0, 10), (3, 4)],
    [(2, 5), (3, 4), (5, 8), (0, 9), (1, 1), (4, 7)],
    [(1, 5), (0, 5), (2, 5), (3, 3), (4, 8), (5, 9)],
    [(2, 9), (1, 3), (4, 5), (5, 4), (0, 3), (3, 1)],
    [(1, 3), (3, 3), (5, 9), (0, 10), (4, 4), (2, 1)],
]


def job_shop(jobs: list[list[tuple[int, int]]], **limits: Any) -> Problem:
    steps = [step for job in jobs for step in job]
    width = len(jobs[0])
    edges = [(j * width + k, j * width + k + 1) for j in range(len(jobs)) for k in range(width - 1)]
    demand = np.eye(width, dtype=np.int64)[[machine for machine, _ in steps]]
    return Problem.from_arrays(
        duration=[time for _, time in steps], edges=edges, demand=demand, capacity=[1] * width, **limits
    )


@st.composite
def collective_problems(draw: st.DrawFn, **options: Any) -> Problem:
    """Problems with labels and modes, and with collectives of up to two communicators."""
    problem = draw(problems(labels=True, tensors=False, host=False, **options))
    groups = st.lists(st.sampled_from([-1, -1, 0, 1]), min_size=problem.n, max_size=problem.n)
    free = draw(st.booleans())  # so that streams that are only counted come up often
    plain = {"record_ns": 0, "wait_ns": 0, "delay": np.zeros_like(problem.delay), "label": np.full(problem.n, -1)}
    return replace(problem, communicator=np.array(draw(groups)), **(plain if free else {}))


def _allowed(pool: StreamPool) -> list[list[int]]:
    return [list(range(pool.first[p], pool.first[p + 1])) for p in pool.of_op]


def _random_sequence(problem: Problem, data: st.DataObject) -> list[int]:
    priority = data.draw(st.permutations(range(problem.n)))
    order: list[int] = []
    while len(order) < problem.n:
        waiting = {int(v) for u, v in problem.edges.tolist() if u not in order}
        order.append(next(v for v in priority if v not in order and v not in waiting))
    return order


@pytest.mark.parametrize("kind", ["serial", "parallel"])
@given(problem=collective_problems(), data=st.data())
def test_schemes_agree_with_plain_ones(kind: str, problem: Problem, data: st.DataObject) -> None:
    if unbindable(problem):
        return
    pool = stream_pool(problem, problem.streams or 32)
    sequence = _random_sequence(problem, data)
    number = np.argsort(problem.topological_order)
    given_scheme, nothing = scheme(problem, pool), np.full(problem.n, -1)
    made = serial_scheme_kernel.empty_schedule(problem.n)
    if kind == "serial":
        profile = serial_scheme_kernel.empty_profile(given_scheme)
        makespan = serial_scheme_kernel.serial(number[sequence], nothing, nothing, False, given_scheme, profile, made)
    else:
        key = np.argsort(sequence)[problem.topological_order].astype(np.float64)
        makespan = parallel_scheme_kernel.parallel(key, nothing, nothing, given_scheme, made)
    plain = getattr(schedule_generation, kind)(problem, _allowed(pool), counts_streams(problem), sequence)
    for v in range(problem.n):
        assert (made.start[number[v]], made.mode[number[v]]) == (plain.start[v], plain.mode[v])
        assert made.stream[number[v]] == plain.stream[v]
    assert makespan == max(plain.finish(v) for v in range(problem.n))


@settings(deadline=None)
@given(collective_problems(most_ops=10))
def test_planned_dispatch_keeps_every_prediction(problem: Problem) -> None:
    if unbindable(problem):
        with pytest.raises(UnassignableError):
            Sampling(rounds=40).solve(problem, Budget(deterministic=True))
        return
    plan = Sampling(rounds=40).solve(problem, Budget(deterministic=True))
    start = msched.simulate(problem, plan, "planned").start_ns
    assert plan.predicted_start_ns is not None
    assert start.tolist() == plan.predicted_start_ns.tolist()


@settings(deadline=None)
@given(problem=limited_problems(), dispatch=st.sampled_from(["arrival", "planned", "greedy"]))
def test_plans_are_valid_and_no_longer_than_those_of_blevel(problem: Problem, dispatch: Any) -> None:
    plan = msched.solve(problem, "sampling", rounds=60, deterministic=True, dispatch=dispatch)
    seed = msched.solve(problem, "blevel", dispatch=dispatch)
    if plan.status in ("invalid", "infeasible"):
        assert plan.reason
        assert seed.status in ("invalid", "infeasible")
        return
    timeline = msched.simulate(problem, plan, dispatch)
    assert msched.validate(problem, plan, timeline, dispatch) == []
    if seed.status not in ("invalid", "infeasible"):
        assert timeline.makespan_ns <= msched.simulate(problem, seed, dispatch).makespan_ns


@settings(deadline=None)
@given(problems(most_ops=5, tensors=False))
def test_no_plan_is_shorter_than_the_optimum(problem: Problem) -> None:
    plan = msched.solve(problem, "sampling", rounds=100, deterministic=True, dispatch="planned")
    found = brute_force.optimum(problem)
    assert found is not None
    assert msched.simulate(problem, plan, "planned").makespan_ns >= found[0]


def test_the_optimum_of_a_job_shop_of_fisher_and_thompson_is_found() -> None:
    plan = Sampling(rounds=5000).solve(job_shop(FT06), Budget(time_limit=60, deterministic=True))
    assert plan.predicted_makespan_ns == 55


def test_the_optimum_is_found_where_streams_are_chosen_too() -> None:
    # An event of 1 ns between any two machines: the jobs stay on a stream each, which pays none, so that 55 stands.
    plan = Sampling(rounds=20_000).solve(
        job_shop(FT06, record_ns=1, streams=6), Budget(time_limit=60, deterministic=True)
    )
    assert plan.predicted_makespan_ns is not None
    assert 55 <= plan.predicted_makespan_ns <= 57


def test_justification_moves_to_the_end_what_stood_in_the_way() -> None:
    # op0 (2) and op1 (1) share a unit, op2 (3) follows op1. In sequence: op0 [0, 2), op1 [2, 3), op2 [3, 6). From
    # behind, op0 goes to [4, 6); then op1 to [0, 1), op2 to [1, 4) and op0 to [1, 3). op1 and op2 take 4 anyhow.
    problem = Problem.from_arrays(duration=[2, 1, 3], demand=[[1], [1], [0]], capacity=[1], edges=[(1, 2)])
    streams = stream_pool(problem, 3)
    sides = sides_of(scheme(problem, streams), scheme(problem, streams, mirrored=True))
    schedule, nothing = serial_scheme_kernel.empty_schedule(3), np.full(3, -1)
    sequence = np.arange(3)
    made = serial_scheme_kernel.serial(sequence, nothing, nothing, False, sides.ahead, sides.profile, schedule)
    assert (made, schedule.start.tolist()) == (6, [0, 2, 3])
    better, reached = justified(schedule, made, sides, empty_pool(3))
    assert (reached, better.start.tolist()) == (4, [1, 0, 1])


def test_equal_inputs_and_seeds_give_equal_plans() -> None:
    problem = msched.lower(msched.network("random_layered", ops=60, seed=3), device="atlas_800i_a2", streams=4)
    budgets = [Budget(seed=s, deterministic=True) for s in (1, 1, 2)]
    one, again, other = (Sampling(rounds=400).solve(problem, budget) for budget in budgets)
    assert one.to_json() == again.to_json()
    assert one.to_json() != other.to_json()


def test_the_search_ends_when_it_is_told_to() -> None:
    problem = msched.lower(msched.network("random_layered", ops=200, seed=3), device="atlas_800i_a2", streams=4)
    stop = threading.Event()
    seen: list[Incumbent] = []

    def progress(incumbent: Incumbent) -> None:
        seen.append(incumbent)
        stop.set()

    plan = Sampling(rounds=10**9).solve(problem, Budget(time_limit=3600, on_progress=progress, stop=stop))
    assert len(seen) == 1
    assert plan.predicted_makespan_ns is not None


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_streams": 0}, "max_streams is 0; it must be at least 1"),
        ({"rounds": 0}, "rounds is 0; it must be at least 1, or null"),
        ({"time_share": 0.0}, "time_share is 0.0; it must be above 0 and at most 1"),
        ({"time_share": 1.5}, "time_share is 1.5; it must be above 0 and at most 1"),
    ],
)
def test_parameters_out_of_range_are_named(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Sampling(**parameters)


def test_nothing_to_schedule() -> None:
    plan = Sampling().solve(Problem.from_arrays(duration=[], streams=2), Budget(deterministic=True))
    assert (plan.order.size, plan.predicted_makespan_ns) == (0, 0)


def test_a_seed_of_its_own_begins_the_pool() -> None:
    problem = job_shop(FT06)
    seen: list[Incumbent] = []
    Sampling(seeds=(Blevel(),), rounds=3).solve(problem, Budget(on_progress=seen.append, deterministic=True))
    seeded = Blevel().solve(problem, Budget(deterministic=True)).predicted_makespan_ns
    assert seeded is not None
    assert seen[0].makespan_ns is not None
    assert seen[0].makespan_ns <= seeded
