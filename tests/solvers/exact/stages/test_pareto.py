"""Fronts against all plans of small problems, and by hand."""

from __future__ import annotations

from typing import Literal

import pytest

import msched
from msched.errors import OptionError
from msched.problem import Problem
from tests.solvers.exact.test_lexicographic import all_plans, drawn

COLUMN = {"waits": 1, "streams": 2}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("against", ["waits", "streams"])
def test_the_front_is_that_of_all_plans(seed: int, against: Literal["waits", "streams"]) -> None:
    problem = drawn(seed)
    rows = [(row[0], row[COLUMN[against]]) for row in all_plans(problem)]
    best = {figure: min(makespan for makespan, f in rows if f <= figure) for _, figure in rows}
    expected = sorted((m, min(f for f, n in best.items() if n == m)) for m in set(best.values()))
    front = msched.pareto(problem, against, time_limit=8, dispatch="planned")
    found = []
    for plan in front:
        timeline = msched.simulate(problem, plan, "planned")
        (stage,) = plan.stages
        assert stage.value == {"waits": len(timeline.waits), "streams": plan.streams}[against]
        assert stage.bound <= min(f for _, f in rows)
        assert plan.bound_ns is not None
        assert plan.bound_ns <= best[stage.value]
        found.append((timeline.makespan_ns, stage.value))
    assert found == expected


def test_memory_against_time_by_hand() -> None:
    # Two producers (2) of 5 bytes with a consumer (2) each: side by side 4 ns and 10 bytes, one after the other 8 ns
    # and 5 bytes. Nothing lies between.
    problem = Problem.from_arrays(
        duration=[2] * 4, edges=[(0, 1), (2, 3)], tensors=[(0, 5, [1]), (2, 5, [3])], streams=2
    )
    front = msched.pareto(problem, time_limit=6)
    rows = [(msched.simulate(problem, plan).makespan_ns, plan.stages[0].value, plan.stages[0].bound) for plan in front]
    assert rows == [(4, 10, 5), (8, 5, 5)]
    assert [plan.bound_ns for plan in front] == [4, 8]


def test_a_figure_that_is_none_is_named() -> None:
    with pytest.raises(OptionError, match="against 'events' is not known; there are: peak_bytes, streams, waits"):
        msched.pareto(Problem.from_arrays(duration=[1]), "events")
