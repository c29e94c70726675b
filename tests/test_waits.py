"""Waits: by hand, and against a general transitive reduction."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from hypothesis import given, settings

import msched
from msched.errors import OptionError, PlanError
from msched.plan import Plan, waits
from msched.problem import Problem
from tests.reference.waits import happens_before
from tests.reference.waits import waits as reduced
from tests.strategies import problems_with_plans


def _waits(
    edges: list[tuple[int, int]], stream: list[int], fences: list[tuple[int, int]] | None = None
) -> list[list[int]]:
    problem = Problem.from_arrays(duration=[1] * len(stream), edges=edges)
    return waits(problem, Plan(stream=np.array(stream), order=np.arange(len(stream)), fences=fences or [])).tolist()


def test_none_within_a_stream() -> None:
    assert _waits([(0, 1), (1, 2), (0, 2)], [0, 0, 0]) == []


def test_diamond() -> None:
    # 0 -> 1 -> 3 stays on stream 0; 2 is on stream 1 and waits for 0; 3 waits for 2.
    assert _waits([(0, 1), (0, 2), (1, 3), (2, 3)], [0, 0, 1, 0]) == [[0, 2], [2, 3]]


def test_implied_by_a_path_through_other_streams() -> None:
    assert _waits([(0, 1), (1, 2), (0, 2)], [0, 1, 2]) == [[0, 1], [1, 2]]


def test_implied_by_a_later_op_of_the_same_stream() -> None:
    # op2 waits for op1, before which op0 ran on the same stream.
    assert _waits([(0, 2), (1, 2)], [0, 0, 1]) == [[1, 2]]


def test_implied_by_an_earlier_wait_of_the_same_stream() -> None:
    # op1 has already waited for op0 when op2, behind it, would.
    assert _waits([(0, 1), (0, 2)], [0, 1, 1]) == [[0, 1]]


def test_a_fence_is_a_wait_and_can_imply_others() -> None:
    assert _waits([], [0, 1], [(0, 1)]) == [[0, 1]]
    assert _waits([(0, 2)], [0, 1, 2], [(0, 1), (1, 2)]) == [[0, 1], [1, 2]]
    assert _waits([(0, 1)], [0, 1], [(0, 1)]) == [[0, 1]]


def test_sorted_by_the_issue_of_the_waiting_op() -> None:
    problem = Problem.from_arrays(duration=[1] * 4, edges=[(3, 0), (2, 1), (3, 1)])
    plan = Plan(stream=np.arange(4), order=np.array([3, 2, 1, 0]))
    found = waits(problem, plan)
    assert found[:, 1].tolist() == [1, 1, 0]
    assert sorted(found.tolist()) == [[2, 1], [3, 0], [3, 1]]


@settings(max_examples=200)
@given(problems_with_plans(most_ops=14, modes=False, tensors=False, limits=False))
def test_are_the_edges_of_the_transitive_reduction(case: tuple[Problem, Plan]) -> None:
    problem, plan = case
    found = [tuple(row) for row in waits(problem, plan).tolist()]
    assert sorted(found) == sorted(reduced(problem, plan))
    position = np.argsort(plan.order)
    assert [position[v] for _, v in found] == sorted(position[v] for _, v in found)


@pytest.mark.parametrize("streams", [1, 2, 7, 60])
def test_a_wider_network(streams: int) -> None:
    generator = np.random.default_rng(streams)
    n = 240
    edges = [(int(generator.integers(max(0, v - 40), v)), v) for v in range(1, n) for _ in range(3)]
    stream = np.unique(generator.integers(0, streams, n), return_inverse=True)[1]
    problem = Problem.from_arrays(duration=np.ones(n, np.int64), edges=edges)
    plan = Plan(stream=stream, order=np.arange(n))
    found = waits(problem, plan)
    assert {(u, v) for u, v in found.tolist()} == reduced(problem, plan)
    assert len(found) == len(reduced(problem, plan))


@settings(max_examples=60)
@given(problems_with_plans(most_ops=10, modes=False, tensors=False))
def test_together_with_stream_order_they_imply_every_dependency(case: tuple[Problem, Plan]) -> None:
    problem, plan = case
    bare = Problem.from_arrays(duration=problem.duration)
    kept = happens_before(bare, Plan(stream=plan.stream, order=plan.order, fences=waits(problem, plan)))
    for u, v in [*problem.edges.tolist(), *plan.fences.tolist()]:
        assert networkx.has_path(kept, u, v)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"order": [1, 0, 2]}, "the issue order breaks the dependency 'op0' -> 'op1'"),
        ({"order": [0, 1, 1]}, "order must list each op once"),
        ({"order": [0, 1]}, "stream and order have 3 and 2 entries for 3 ops"),
        ({"stream": [0, -1, 0]}, "op 'op1' is on stream -1; streams count from 0"),
        ({"fences": [(2, 0)]}, "the issue order breaks the fence 'op2' -> 'op0'"),
        ({"fences": [(0, 3)]}, "fences name an op that does not exist; ops are 0 to 2"),
        ({"mode": [0, 0, 1]}, "mode must name, for each op, 0 or one of its alternative modes"),
        ({"stream": [], "order": [], "status": "timeout", "reason": "out of time"}, "timeout: out of time"),
    ],
)
def test_a_plan_that_does_not_fit(fields: dict[str, object], message: str) -> None:
    problem = Problem.from_arrays(duration=[1, 1, 1], edges=[(0, 1)])
    with pytest.raises(PlanError, match=message):
        waits(problem, Plan(**{"stream": [0, 1, 2], "order": [0, 1, 2], **fields}))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"stream": [0.5, 1]}, "stream: whole numbers that fit in 64 bits are needed, not float64"),
        ({"stream": None}, "stream: whole numbers"),
        ({"order": None}, "order: whole numbers"),
        ({"order": [[0], [1, 2]]}, "order: "),
        ({"order": [[0, 1]]}, "order has shape"),
        ({"mode": "fast"}, "mode: whole numbers"),
        ({"predicted_start_ns": [0, 2**70]}, "predicted_start_ns: "),
        ({"fences": [(0, 1, 2)]}, "fences: a list of pairs of indices is needed"),
        ({"fences": 3}, "fences: "),
        ({"stream": [0, 2]}, "op 1 is on stream 2; 2 ops use streams 0 to 1 at most"),
        ({"stream": [2**40, 0]}, "op 0 is on stream 1099511627776; 2 ops use"),
        ({"stream": [0, 2**62]}, "op 1 is on stream 4611686018427387904"),
    ],
)
def test_arrays_that_are_no_plan(fields: dict[str, object], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        Plan(**{"stream": [0, 1], "order": [0, 1], **fields})


def test_no_plan_at_all() -> None:
    problem = Problem.from_arrays(duration=[1, 1])
    plan = Plan(stream=np.array([0, 1]), order=np.arange(2))
    with pytest.raises(PlanError, match="a Plan is needed, not NoneType"):
        msched.simulate(problem, None)
    with pytest.raises(PlanError, match="validate needs a Plan, not NoneType"):
        msched.validate(problem, None, msched.simulate(problem, plan))
    with pytest.raises(OptionError, match="validate needs the timeline of a run, not None"):
        msched.validate(problem, plan, None)
