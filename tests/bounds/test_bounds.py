"""Lower bounds: by hand where they are tight, and never above the optimum of the brute force."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from msched.bounds import bound, evaluate
from msched.problem import Problem
from tests.reference.brute_force import optimum
from tests.strategies import problems


def _bound(**arrays: Any) -> int:
    return bound(Problem.from_arrays(**arrays)).makespan_ns


def test_longest_path() -> None:
    # 0 -> 1 -> 3 takes 3 + 5 + 2. An event is not forced: one stream needs none and takes 14.
    edges = [(0, 1), (0, 2), (1, 3), (2, 3)]
    assert _bound(duration=[3, 5, 4, 2], edges=edges) == 10
    assert 10 <= _bound(duration=[3, 5, 4, 2], edges=edges, record_ns=9, wait_ns=9) <= 14


def test_an_event_that_no_plan_avoids_is_on_the_path() -> None:
    # Bound to their engines, the two ops are on different streams: 3 + (record 1 + wait 2 + delay 4) + 5.
    engines = {"demand": [[1, 0], [0, 1]], "capacity": [1, 1], "edges": [(0, 1)], "delay": [4]}
    assert _bound(duration=[3, 5], record_ns=1, wait_ns=2, binding="engine", **engines) == 15
    assert _bound(duration=[3, 5], record_ns=1, wait_ns=2, binding="free", **engines) == 8


def test_work_of_an_engine() -> None:
    # Six ops of one unit and 4 ns on two units: 24 / 2. No two ops of 2 units fit on three: at least (3 x 2 x 5) / 3.
    assert _bound(duration=[4] * 6, demand=[[1]] * 6, capacity=[2]) == 12
    assert 10 <= _bound(duration=[5] * 3, demand=[[2]] * 3, capacity=[3]) <= 15


def test_work_of_an_engine_between_head_and_tail() -> None:
    # Two ops of 5 ns share a unit after an op of 3 ns and before one of 2 ns: 3 + 5 + 5 + 2; the path is 10.
    edges = [(0, 1), (0, 2), (1, 3), (2, 3)]
    assert _bound(duration=[3, 5, 5, 2], demand=[[0], [1], [1], [0]], capacity=[1], edges=edges) == 15


def test_few_streams() -> None:
    # Six ops of 10 ns on two streams: 30, and with a gap of 1 between neighbours three ops take 32 on each.
    assert _bound(duration=[10] * 6, streams=2) == 30
    assert 30 <= _bound(duration=[10] * 6, streams=2, gap_ns=1) <= 32
    assert _bound(duration=[10] * 6, streams=1, gap_ns=1) == 65


def test_host_issue() -> None:
    # The tenth op is issued at 50 and takes 1.
    assert _bound(duration=[1] * 10, host_issue_ns=5) == 51


def test_of_modes_the_fastest_counts() -> None:
    assert _bound(duration=[9], demand=[[2]], capacity=[2], modes=[(0, 4, [2])]) == 4


def test_nothing_to_do() -> None:
    assert _bound(duration=[]) == 0
    assert _bound(duration=[0, 0]) == 0


@settings(max_examples=150)
@given(problems(most_ops=5, labels=True))
def test_never_above_the_optimum(problem: Problem) -> None:
    best = optimum(problem)
    assert best is not None
    assert {name: least for name, least in evaluate(problem).each.items() if least > best[0]} == {}


@settings(max_examples=50)
@given(problems())
def test_the_best_of_several_arguments(problem: Problem) -> None:
    found = bound(problem)
    assert found.makespan_ns == max(found.each.values()) == found.each[found.argument]


@pytest.mark.parametrize("binding", ["free", "engine"])
def test_two_streams_share_the_work_of_two_engines(binding: str) -> None:
    # Four ops of 6 ns on two streams; where a stream serves one engine, each engine has one for two ops: 12 as well.
    arrays: dict[str, Any] = {"duration": [6] * 4, "engine": [0, 0, 1, 1], "demand": [[1, 0]] * 2 + [[0, 1]] * 2}
    assert _bound(**arrays, capacity=[2, 2], streams=2, binding=binding) == 12
