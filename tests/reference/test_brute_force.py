"""The cuts of the brute force lose nothing: it agrees with an enumeration that has none."""

from __future__ import annotations

from hypothesis import given, settings

from msched.problem import Problem
from tests.reference.brute_force import optimum
from tests.reference.enumeration import every_plan
from tests.reference.simulator import chosen, start_times
from tests.strategies import problems


@settings(max_examples=25)
@given(problems(most_ops=3, labels=True))
def test_agrees_with_plain_enumeration(problem: Problem) -> None:
    makespans = []
    for plan in every_plan(problem):
        duration, _ = chosen(problem, plan)
        makespans.append(max(s + d for s, d in zip(start_times(problem, plan, "planned"), duration, strict=True)))
    found = optimum(problem)
    assert found is not None
    assert found[0] == min(makespans)


@settings(max_examples=100)
@given(problems(most_ops=6, labels=True))
def test_its_plan_takes_as_long_as_it_says(problem: Problem) -> None:
    found = optimum(problem)
    assert found is not None
    makespan, plan = found
    duration, _ = chosen(problem, plan)
    assert makespan == max(s + d for s, d in zip(start_times(problem, plan, "planned"), duration, strict=True))


def test_two_machines_by_hand() -> None:
    # Durations 3 3 2 2 2 on two streams: 3 + 3 beside 2 + 2 + 2 makes 6, which is half of the 12 in all.
    found = optimum(Problem.from_arrays(duration=[3, 3, 2, 2, 2], streams=2))
    assert found is not None
    assert found[0] == 6


def test_no_plan_has_fewer_streams_than_engines() -> None:
    problem = Problem.from_arrays(
        duration=[1, 1], demand=[[1, 0], [0, 1]], capacity=[1, 1], binding="engine", streams=1
    )
    assert optimum(problem) is None
