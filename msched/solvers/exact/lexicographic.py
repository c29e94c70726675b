"""Makespan first, then, one after the other, what else is to be little."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from msched.errors import OptionError
from msched.plan import Plan, Stage
from msched.problem import Problem
from msched.simulator import simulate
from msched.solvers import secured
from msched.solvers.base import Budget, Solver
from msched.solvers.exact.stages.fewest_streams import fewest_streams
from msched.solvers.exact.stages.fewest_waits import fewest_waits
from msched.solvers.exact.stages.lowest_peak import lowest_peak
from msched.solvers.exact.stages.stage import Ground

# A stage makes its figure of a plan less, in so many seconds, while the makespan is kept; with a proven bound on it.
_STAGES: dict[str, Callable[[Ground, Plan, float], tuple[Plan, Stage]]] = {
    "waits": fewest_waits,
    "streams": fewest_streams,
    "peak_bytes": lowest_peak,
}


@dataclass(frozen=True)
class Lexicographic:
    """The plan of the solver `first`, then each of `stages` in turn, none at the cost of those before it.

    stages: figures to make little: waits, streams or peak_bytes.
    share: of the time for `first`; the stages share the rest evenly. A figure that an earlier stage made little is a
    limit to the later ones, as the makespan is to all.
    """

    first: Solver
    stages: tuple[str, ...] = ()
    share: float = 0.5

    def __post_init__(self) -> None:
        if isinstance(self.share, bool) or not isinstance(self.share, int | float) or not 0 < self.share <= 1:
            raise OptionError(f"share is {self.share!r}; a part of the time, above 0 and at most 1, is needed")
        for name in self.stages:
            if name not in _STAGES:
                raise OptionError(f"stage {name!r} is not known; there are: {', '.join(_STAGES)}")

    def solve(self, problem: Problem, budget: Budget) -> Plan:
        """The plan of the last stage, with the figure and the bound of each in `stages`."""
        spent = replace(budget, time_limit=budget.time_limit * self.share)
        plan = secured(problem, self.first.solve(problem, spent), budget.dispatch)
        if plan.status in ("infeasible", "timeout", "invalid") or not problem.n or not self.stages:
            return plan
        makespan = simulate(problem, plan, budget.dispatch).makespan_ns
        kept = ("status", "reason", "bound_ns", "bound_argument", "log")
        claims: dict[str, Any] = {name: getattr(plan, name) for name in kept}
        seconds = budget.time_limit * (1 - self.share) / len(self.stages)
        limited, done = problem, []
        for stage in self.stages:
            plan, figure = _STAGES[stage](Ground(limited, makespan, self.first, budget), plan, seconds)
            done.append(figure)
            limited = _kept(limited, figure)
        return replace(plan, **claims, stages=tuple(done))


def _kept(problem: Problem, figure: Stage) -> Problem:
    """The problem with a limit that keeps later stages from spoiling what this one reached."""
    limit: dict[str, Any] = {{"waits": "events", "streams": "streams"}.get(figure.figure, "memory_bytes"): figure.value}
    return replace(problem, **limit)
