"""Streams that hold too many tasks are cut."""

from __future__ import annotations

import numpy as np
import pytest

import msched
from msched.plan import Plan
from msched.problem import Problem
from msched.solvers.splitting import split


def chain(n: int, **limits: object) -> Problem:
    edges = [(v, v + 1) for v in range(n - 1)]
    return Problem.from_arrays(duration=[10] * n, edges=edges, record_ns=1, wait_ns=2, **limits)  # type: ignore[arg-type]


def one_stream(problem: Problem) -> Plan:
    return Plan(stream=np.zeros(problem.n, np.int64), order=np.arange(problem.n))


def test_a_chain_is_cut_where_its_streams_are_full() -> None:
    # 10 tasks a stream, 3 of them for the links: 7 + 7 + 6 ops, and two events of 1 + 2 ns between them
    problem = chain(20, tasks_per_stream=10)
    plan = split(problem, one_stream(problem))
    assert np.bincount(plan.stream).tolist() == [7, 7, 6]
    assert msched.waits(problem, plan).tolist() == [[6, 7], [13, 14]]
    timeline = msched.simulate(problem, plan)
    assert timeline.makespan_ns == 20 * 10 + 2 * 3
    assert msched.validate(problem, plan, timeline) == []


def test_a_solver_returns_the_cut_plan() -> None:
    problem = chain(20, tasks_per_stream=10)
    plan = msched.solve(problem, "single")
    assert plan.status == "feasible"
    assert plan.streams == 3


@pytest.mark.parametrize("limits", [{"streams": 2}, {"label": [0] * 20}])
def test_a_plan_that_cannot_be_cut_is_invalid_and_says_so(limits: dict[str, object]) -> None:
    problem = chain(
        20, **{"tasks_per_stream": 19, **limits} if "label" in limits else {"tasks_per_stream": 10, **limits}
    )
    given = one_stream(problem)
    assert split(problem, given) is given


def test_a_plan_within_its_limits_stays_as_it_is() -> None:
    problem = chain(20, tasks_per_stream=20)
    given = one_stream(problem)
    assert split(problem, given) is given


def test_a_whole_llama_in_slices_fits_on_streams_of_the_device() -> None:
    # 3,208 ops do not fit on one stream of 2,013 tasks
    graph = msched.network("llama", slices=2)
    problem = msched.lower(graph, device="atlas_800i_a2", streams=8)
    plan = msched.solve(problem, "single")
    assert plan.status == "feasible"
    assert plan.streams == 2
    timeline = msched.simulate(problem, plan)
    assert msched.validate(problem, plan, timeline) == []
