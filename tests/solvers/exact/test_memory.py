"""The exact solver under a memory limit together with the costs of streams and of the host."""

from __future__ import annotations

from typing import Any

import pytest

import msched
from msched.problem import Problem


@pytest.mark.parametrize("memory_bytes", [None, 0])
@pytest.mark.parametrize("dispatch", ["arrival", "planned", "greedy"])
def test_the_host_issues_in_the_order_that_the_solution_has(memory_bytes: int | None, dispatch: Any) -> None:
    # The long op is issued first, from 2 to 7; the short one at 4.
    problem = Problem.from_arrays(duration=[1, 5], host_issue_ns=2, memory_bytes=memory_bytes)
    plan = msched.solve(problem, "cpsat", dispatch=dispatch)
    assert plan.status == "optimal"
    assert msched.simulate(problem, plan, dispatch).makespan_ns == 7


@pytest.mark.parametrize("memory_bytes", [None, 13])
@pytest.mark.parametrize("dispatch", ["arrival", "planned", "greedy"])
def test_a_stream_keeps_its_gap_under_a_memory_limit(memory_bytes: int | None, dispatch: Any) -> None:
    # Four ops on three streams: two share one, 2 + 50 + 2 at least, and the others run in between.
    problem = Problem.from_arrays(
        duration=[5, 8, 2, 2], gap_ns=50, demand=[[2], [4], [3], [2]], capacity=[4], streams=3,
        memory_bytes=memory_bytes,
    )  # fmt: skip
    plan = msched.solve(problem, "cpsat", dispatch=dispatch)
    assert plan.status == "optimal"
    assert msched.simulate(problem, plan, dispatch).makespan_ns == 54
