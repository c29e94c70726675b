from __future__ import annotations

from dataclasses import replace

from hypothesis import given

import msched
from msched.problem import Problem
from msched.solvers.serial import known_to_work, serial_plan
from tests.strategies import problems

# Nothing depends on anything; each op holds its own result while it runs.
BOUND = {
    "duration": [4, 4, 5], "tensors": [(0, 18, []), (1, 20, []), (2, 9, [])], "engine": [1, 0, 1],
    "demand": [[0, 1], [1, 0], [0, 1]], "capacity": [1, 1], "binding": "engine", "record_ns": 1, "wait_ns": 1,
}  # fmt: skip


def test_bound_engines_take_turns_at_the_peak_of_the_largest_op() -> None:
    problem = Problem.from_arrays(**BOUND)
    assert known_to_work(problem, "arrival") == 20
    assert msched.simulate(problem, serial_plan(problem)).peak_bytes == 20


def test_no_limit_is_named_where_taking_turns_has_too_few_events() -> None:
    assert known_to_work(Problem.from_arrays(**BOUND, events=0), "arrival") is None


def test_the_reason_names_the_limit_and_the_limit_is_feasible() -> None:
    # Serial plans of a fork with results of 10, 20 and 30 bytes, whose join reads the last two and writes 5: 60 while
    # the second branch runs beside the source and the first branch, then 20 + 30 + 5.
    fork = {
        "duration": [1, 1, 1, 1], "edges": [(0, 1), (0, 2), (1, 3), (2, 3)],
        "tensors": [(0, 10, [1, 2]), (1, 20, [3]), (2, 30, [3]), (3, 5, [])],
    }  # fmt: skip
    for solver, memory in (("heft", 54), ("cpsat", 59)):  # the join alone takes 55; below 60 it is for a search to tell
        plan = msched.solve(Problem.from_arrays(**fork, memory_bytes=memory), solver)
        assert plan.status == "infeasible"
        assert plan.reason.endswith("one op at a time needs 60 bytes, the smallest limit known to work")
    for solver in ("memory_list", "cpsat"):
        assert msched.solve(Problem.from_arrays(**fork, memory_bytes=60), solver).status in ("optimal", "feasible")


@given(problems(labels=True))
def test_the_validator_accepts_the_serial_plan_at_its_limit(problem: Problem) -> None:
    limit = known_to_work(problem, "arrival")
    if limit is not None:
        tight = replace(problem, memory_bytes=limit)
        plan = serial_plan(tight)
        assert msched.validate(tight, plan, msched.simulate(tight, plan)) == []
