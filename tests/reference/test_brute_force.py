"""The cuts of the brute force lose nothing: it agrees with an enumeration that has none."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
from hypothesis import given, settings

from msched.plan import Plan
from msched.problem import Problem
from tests.reference.brute_force import optimum
from tests.reference.simulator import chosen, start_times
from tests.strategies import problems


def _keeps_limits(problem: Problem, stream: tuple[int, ...]) -> bool:
    used = set(stream)
    if used != set(range(len(used))) or (problem.streams is not None and len(used) > problem.streams):
        return False
    for u, v in product(range(problem.n), repeat=2):
        if problem.label[u] == problem.label[v] >= 0 and stream[u] != stream[v]:
            return False
        if problem.binding == "engine" and stream[u] == stream[v] and problem.engine[u] != problem.engine[v]:
            return False
    of_engine = [len({s for s, e in zip(stream, problem.engine, strict=True) if e == k}) for k in problem.engine]
    limit = [problem.engine_streams[k] for k in problem.engine]
    return problem.binding == "free" or all(most < 0 or k <= most for k, most in zip(of_engine, limit, strict=True))


def _every_plan(problem: Problem) -> list[Plan]:
    ops = range(problem.n)
    orders = [o for o in permutations(ops) if all(o.index(u) < o.index(v) for u, v in problem.edges.tolist())]
    streams = [s for s in product(ops, repeat=problem.n) if _keeps_limits(problem, s)]
    modes = list(product(*(range(1 + problem.mode_op.tolist().count(v)) for v in ops)))
    return [
        Plan(stream=np.array(s), order=np.array(o), mode=np.array(m)) for s, o, m in product(streams, orders, modes)
    ]


@settings(max_examples=25)
@given(problems(most_ops=3, labels=True))
def test_agrees_with_plain_enumeration(problem: Problem) -> None:
    makespans = []
    for plan in _every_plan(problem):
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
