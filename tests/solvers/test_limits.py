"""Limits: those that no plan can meet say so and why, one more is enough, and nothing possible is ruled out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import msched
from msched.plan import Plan
from msched.problem import Problem
from msched.simulator import simulate
from msched.solvers.limits import broken, impossible, memory_needs, tasks_in_streams
from msched.validate import validate
from tests.reference.enumeration import every_fenced_plan
from tests.reference.simulator import report, start_times
from tests.strategies import limited_problems

# One op for each of two engines, each of one unit.
PAIR: dict[str, Any] = {
    "duration": [3, 4],
    "demand": [[1, 0], [0, 1]],
    "capacity": [1, 1],
    "engine_names": ["cube", "vector"],
}
BOUND = {**PAIR, "binding": "engine"}
# op1 reads 5 bytes, writes 7 and works in 3.
CHAIN: dict[str, Any] = {
    "duration": [2, 3, 4],
    "edges": [(0, 1), (1, 2)],
    "tensors": [(0, 5, [1]), (1, 7, [2])],
    "workspace": [0, 3, 0],
}
# Two outputs of 4 and 5 bytes, beside weights of 6.
OUTPUTS: dict[str, Any] = {"duration": [1, 1], "tensors": [(0, 4, []), (1, 5, []), (None, 6, [0])], "outputs": [0, 1]}

CASES = [
    pytest.param(
        BOUND,
        {"streams": 1},
        {"streams": 2},
        "needs a stream for each of the 2 engines in use (cube, vector), but streams is 1",
        id="streams for engines",
    ),
    pytest.param(
        BOUND,
        {"engine_streams": [0, None]},
        {"engine_streams": [1, None]},
        "engine 'cube' is in use, but may have no stream",
        id="streams of an engine",
    ),
    pytest.param(
        {**BOUND, "op_names": ["a", "b"]},
        {"label": [0, 0]},
        {"label": [0, 1]},
        "the label of op 'a' joins ops of 2 engines",
        id="label across engines",
    ),
    pytest.param(
        {"duration": [1] * 5, "streams": 2},
        {"tasks_per_stream": 2},
        {"tasks_per_stream": 3},
        "5 ops do not fit on 2 streams of at most 2 tasks",
        id="tasks",
    ),
    pytest.param(
        {"duration": [1] * 4, "label": [0, 0, 0, -1]},
        {"tasks_per_stream": 2},
        {"tasks_per_stream": 3},
        "a label joins 3 ops on one stream, which takes at most 2 tasks",
        id="tasks of a label",
    ),
    pytest.param(  # the vector op, and two tasks for its wait on the cube
        {**BOUND, "edges": [(0, 1)]},
        {"tasks_per_stream": 2},
        {"tasks_per_stream": 3},
        "engine 'vector' has 3 tasks at least (ops, records and waits), which do not fit on 1 streams of at most 2",
        id="tasks of an engine",
    ),
    pytest.param(
        {**BOUND, "edges": [(0, 1)]},
        {"events": 0},
        {"events": 1},
        "take 1 events at least, but events is 0",
        id="events",
    ),
    pytest.param(  # 5 + 7 + 3
        CHAIN,
        {"memory_bytes": 14},
        {"memory_bytes": 15},
        "op 'op1' alone needs 15 live bytes (its inputs, outputs and workspace beside the persistent tensors), but "
        "memory_bytes is 14",
        id="memory of an op",
    ),
    pytest.param(  # 4 + 5 + 6, though no op needs more than 6 + 5
        OUTPUTS,
        {"memory_bytes": 14},
        {"memory_bytes": 15},
        "persistent tensors and outputs alone are 15 bytes, but memory_bytes is 14",
        id="memory of outputs",
    ),
]


@pytest.mark.parametrize(("arguments", "limit", "enough", "reason"), CASES)
def test_a_limit_that_no_plan_meets_is_named(
    arguments: dict[str, Any], limit: dict[str, Any], enough: dict[str, Any], reason: str
) -> None:
    for solver in ("cpsat", "blevel"):
        plan = msched.solve(Problem.from_arrays(**{**arguments, **limit}), solver, time_limit=5)
        assert (plan.status, plan.order.size) == ("infeasible", 0)
        assert reason in plan.reason


@pytest.mark.parametrize(("arguments", "limit", "enough", "reason"), CASES)
def test_one_more_is_enough(
    arguments: dict[str, Any], limit: dict[str, Any], enough: dict[str, Any], reason: str
) -> None:
    problem = Problem.from_arrays(**{**arguments, **enough})
    assert impossible(problem) == ""
    plan = msched.solve(problem, "cpsat", time_limit=5)
    assert plan.status == "optimal"
    assert validate(problem, plan, simulate(problem, plan)) == []


def test_events_count_the_engines_that_wait_or_those_that_record() -> None:
    # A cube op feeds an op of each of three other engines, which all wait; seen from behind, all three record.
    demand = np.eye(4, dtype=np.int64)
    for edges in ([(0, 1), (0, 2), (0, 3)], [(1, 0), (2, 0), (3, 0)]):
        problem = Problem.from_arrays(
            duration=[1] * 4, demand=demand, capacity=[1] * 4, edges=edges, binding="engine", events=2
        )
        assert "take 3 events at least, but events is 2; allow 3 or more" in impossible(problem)
        assert impossible(replace(problem, events=3)) == ""
        assert impossible(replace(problem, binding="free")) == ""


def test_an_engine_with_more_streams_has_room_for_more_tasks() -> None:
    # Four vector ops behind a cube op: 4 + 2 tasks. Of three streams one is the cube's, two may be theirs.
    problem = Problem.from_arrays(
        duration=[1] * 5,
        demand=[[1, 0], *[[0, 1]] * 4],
        capacity=[1, 1],
        edges=[(0, 1)],
        engine_names=["cube", "vector"],
        binding="engine",
        streams=3,
        tasks_per_stream=2,
    )
    assert "engine 'vector' has 6 tasks at least" in impossible(problem)
    assert "fit on 2 streams of at most 2 tasks" in impossible(problem)
    assert impossible(replace(problem, tasks_per_stream=3)) == ""
    assert impossible(replace(problem, streams=4)) == ""
    assert "on 1 streams of" in impossible(replace(problem, streams=4, engine_streams=np.array([-1, 1])))


def test_what_an_op_needs_is_its_inputs_outputs_and_workspace_beside_what_persists() -> None:
    # op1 reads 5 twice (once counted) and 9 of weights, writes 7, works in 3; op2 takes no time and so needs no room
    problem = Problem.from_arrays(
        duration=[2, 3, 0],
        edges=[(0, 1), (1, 2)],
        tensors=[(0, 5, [1, 1]), (1, 7, [2]), (None, 9, [1])],
        workspace=[0, 3, 8],
    )
    assert memory_needs(problem).tolist() == [5 + 9, 5 + 7 + 3 + 9, 9]


def test_tasks_are_ops_records_and_two_for_each_wait() -> None:
    # Stream 0: ops 0 and 1, two records. Stream 1: op 2 and its wait on op 0. Stream 2: op 3 and its wait on op 1.
    plan = Plan(stream=np.array([0, 0, 1, 2]), order=np.arange(4))
    assert tasks_in_streams(plan, np.array([[0, 2], [1, 3]])).tolist() == [4, 3, 3]


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"streams": 1}, "the plan uses 2 streams, the limit is 1"),
        ({"label": [0, 0, -1]}, "op 'b' is on another stream than the rest of its label"),
        ({"binding": "engine", "engine": [0, 0, 1]}, "op 'c' shares a stream with ops of another engine"),
        ({"binding": "engine", "engine": [0, 0, 0], "engine_streams": [1]}, "engine 'engine0' has 2 streams"),
        ({"tasks_per_stream": 2}, "stream 0 holds 3 tasks (ops, records and waits), the limit is 2"),
        ({"events": 0}, "the plan needs 1 events, the limit is 0"),
        ({"memory_bytes": 8}, "the plan's peak is 9 live bytes, the limit is 8"),
    ],
)
def test_a_plan_that_breaks_a_limit_says_which(limits: dict[str, Any], reason: str) -> None:
    # b waits for a across streams; c follows a on its stream. a's 4 bytes live till b ends, beside the 5 of c: 9.
    def problem(**options: Any) -> Problem:
        return Problem.from_arrays(
            duration=[2, 3, 4],
            edges=[(0, 1)],
            tensors=[(0, 4, [1]), (2, 5, [])],
            outputs=[1],
            op_names=["a", "b", "c"],
            **options,
        )

    plan = Plan(stream=np.array([0, 1, 0]), order=np.arange(3))
    assert broken(problem(), plan, simulate(problem(), plan)) == ""
    limited = problem(**limits)
    assert reason in broken(limited, plan, simulate(limited, plan))


def _refuted(problem: Problem) -> bool:
    """Whether no assignment, order and set of fences passes the validator."""
    for plan in every_fenced_plan(problem):
        times = start_times(problem, plan, "planned")
        if not validate(problem, plan, report(problem, plan, times), "planned"):
            return False
    return True


@given(limited_problems(most_ops=3, modes=False))
def test_nothing_is_called_impossible_that_some_plan_meets(problem: Problem) -> None:
    assert not impossible(problem) or _refuted(problem)


@given(limited_problems(most_ops=3, least_ops=2, modes=False), st.integers(0, 2), st.none() | st.integers(2, 4))
def test_nor_is_it_where_streams_are_bound_to_engines(problem: Problem, events: int, tasks: int | None) -> None:
    limits: dict[str, Any] = {"events": events, "tasks_per_stream": tasks, "memory_bytes": None}
    problem = replace(problem, binding="engine", label=np.full(problem.n, -1), **limits)
    assert not impossible(problem) or _refuted(problem)
