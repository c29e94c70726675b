"""The optimum of a small problem, for comparison with one that was worked out by hand."""

from __future__ import annotations

import msched
from msched.problem import Problem


def optimum(problem: Problem) -> int:
    """The makespan of a plan that is proven to be optimal and that the validator accepts."""
    plan = msched.solve(problem, "cpsat", time_limit=60)
    timeline = msched.simulate(problem, plan)
    assert plan.status == "optimal"
    assert msched.validate(problem, plan, timeline) == []
    return timeline.makespan_ns
