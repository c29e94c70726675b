"""The lowest peak of live bytes with which a makespan can be kept."""

from __future__ import annotations

from dataclasses import replace

from msched.plan import Plan, Stage
from msched.simulator import simulate
from msched.solvers.exact.stages.stage import Ground, least
from msched.solvers.limits import memory_needs


def lowest_peak(ground: Ground, plan: Plan, seconds: float) -> tuple[Plan, Stage]:
    """The plan with the lowest peak found, in bytes, and the figure with its bound.

    Plans with fewer live bytes at a time, by a search with the memory limited ever more tightly.
    """
    problem, dispatch = ground.problem, ground.budget.dispatch
    return least(
        ground,
        plan,
        "peak_bytes",
        lambda some: simulate(problem, some, dispatch).peak_bytes,
        lambda limit: replace(problem, memory_bytes=limit),
        int(memory_needs(problem).max(initial=0)),
        seconds,
    )
