"""The CP-SAT model: complete hints, exact streams, grains that keep the bound valid."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from ortools.sat.python import cp_model

import msched
from msched.plan import Plan
from msched.problem import Problem
from msched.simulator import start_times
from msched.solvers.exact.cpsat import CpSat
from msched.solvers.exact.model import Model, unordered_collectives
from msched.solvers.exact.scaled import Scaled, Streams, exact_grain
from msched.solvers.exact.solution import add_hint
from tests.reference.brute_force import optimum
from tests.strategies import problems


@settings(max_examples=150)
@given(problems(most_ops=6, labels=True))
def test_a_hint_names_every_variable_and_is_feasible(problem: Problem) -> None:
    _, plan = optimum(problem)  # meets every limit that the strategy draws
    start = start_times(problem, plan, "planned")
    streams = Streams.of(problem)
    scaled = Scaled.of(problem, 1)
    model = Model(scaled, streams, scaled.latest)
    add_hint(model, plan, start)
    proto = model.cp.proto
    assert sorted(proto.solution_hint.vars) == list(range(len(proto.variables)))
    solver = cp_model.CpSolver()
    solver.parameters.fix_variables_to_their_hinted_value = True
    solver.parameters.num_workers = 1
    assert solver.solve(model.cp) in (cp_model.OPTIMAL, cp_model.FEASIBLE)


@settings(max_examples=60)
@given(problems(most_ops=5, modes=False))
def test_a_coarse_grain_keeps_the_bound_and_the_claim_valid(problem: Problem) -> None:
    best, _ = optimum(problem)
    plan = msched.solve(problem, CpSat(grain_ns=3), dispatch="planned", time_limit=5)
    simulated = msched.simulate(problem, plan, "planned").makespan_ns
    assert plan.bound_ns is not None
    assert plan.predicted_makespan_ns is not None
    assert plan.bound_ns <= best <= simulated <= plan.predicted_makespan_ns


def test_the_exact_grain_divides_every_figure() -> None:
    problem = Problem.from_arrays(
        duration=[6000, 9000], edges=[(0, 1)], delay=[1500], gap_ns=3000, record_ns=1000, wait_ns=500, streams=2
    )
    assert exact_grain(problem) == 1500  # record and wait are only ever paid together


@pytest.mark.parametrize(
    ("arguments", "policy"),
    [
        ({"streams": 2}, "count"),
        ({"streams": 1}, "fixed"),
        ({"streams": 1, "wait_ns": 5}, "fixed"),
        ({"streams": 2, "wait_ns": 5}, "choice"),
        ({"streams": 2, "delay": [0, 1]}, "choice"),
        ({"streams": 2, "label": [0, -1, 0]}, "choice"),
        ({"streams": 2, "binding": "engine", "engine": [0, 1, 0], "wait_ns": 5}, "fixed"),
        ({"streams": 3, "binding": "engine", "engine": [0, 1, 0]}, "count"),
    ],
)
def test_streams_enter_the_model_in_the_lightest_exact_way(arguments: dict[str, object], policy: str) -> None:
    problem = Problem.from_arrays(duration=[1, 2, 3], edges=[(0, 1), (0, 2)], **arguments)  # type: ignore[arg-type]
    assert Streams.of(problem).policy == policy


def test_collectives_that_dependencies_order_need_no_literal() -> None:
    # 0 -> 1 -> 2 orders the collectives 0 and 2; 3 is free, and of another communicator than 4.
    problem = Problem.from_arrays(
        duration=[1] * 5, edges=[(0, 1), (1, 2)], communicator=[0, -1, 0, 0, 1], streams=2, wait_ns=1
    )
    assert unordered_collectives(problem) == [(0, 3), (2, 3)]


def test_an_op_without_duration_waits_for_its_stream() -> None:
    # One stream an engine. Op 2 takes no time, but its stream is busy with op 1 until 5, and op 3 follows it: 5 + 4.
    # Issued before op 1 it would hold op 1 until its producer ends at 3: 3 + 5 = 8 and op 3 ends at 7. So 8.
    problem = Problem.from_arrays(
        duration=[3, 5, 0, 4], edges=[(0, 2), (2, 3)], engine=[0, 1, 1, 0], binding="engine",
        engine_streams=[1, 1],
    )  # fmt: skip
    plan = msched.solve(problem, CpSat(), dispatch="planned")
    assert msched.simulate(problem, plan, "planned").makespan_ns == 8
    assert plan.status == "optimal"


def test_unordered_collectives_of_one_communicator_pay_for_their_order() -> None:
    # Two collectives of 4 without any engine limit: alone they would overlap and end at 4. One order means one after
    # the other: on one stream 4 + 4, on two streams 4 + 3 + 4.
    problem = Problem.from_arrays(duration=[4, 4], communicator=[0, 0], streams=2, wait_ns=3)
    plan = msched.solve(problem, CpSat())
    assert msched.simulate(problem, plan).makespan_ns == 8
    assert plan.bound_ns == 8
    assert plan.streams == 1
    apart = Plan(stream=np.array([0, 1]), order=np.array([0, 1]))
    from msched.solvers.securing import keep_communicators_in_order

    fenced = keep_communicators_in_order(problem, apart)
    assert fenced.fences.tolist() == [[0, 1]]
    assert msched.simulate(problem, fenced).makespan_ns == 11
