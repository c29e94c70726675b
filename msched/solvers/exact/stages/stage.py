"""What every second stage is: a figure made least among the plans whose makespan is not above a given one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from msched.bounds import bound
from msched.plan import Incumbent, Plan, Stage
from msched.problem import Problem
from msched.simulator import simulate
from msched.solvers.base import Budget, Solver, UnassignableError
from msched.solvers.limits import broken, impossible


@dataclass(frozen=True)
class Ground:
    """What the stages of a search share: the problem, the makespan in ns that no plan may exceed, and who searches."""

    problem: Problem
    makespan_ns: int
    solver: Solver
    budget: Budget

    def keeps(self, plan: Plan) -> bool:
        """Whether a plan, as it runs, keeps the makespan and all limits of the problem."""
        if plan.status in ("infeasible", "timeout", "invalid"):
            return False
        timeline = simulate(self.problem, plan, self.budget.dispatch)
        return timeline.makespan_ns <= self.makespan_ns and not broken(self.problem, plan, timeline)

    def within(self, limited: Problem, seconds: float) -> tuple[Plan | None, bool]:
        """A plan that keeps the makespan, of the problem with a tighter limit, or None; and whether there is proven
        none. The search ends as soon as either is known; a deterministic one only where its solver ends it."""
        if impossible(limited) or bound(limited).makespan_ns > self.makespan_ns:
            return None, True
        stop = threading.Event()

        def watch(incumbent: Incumbent) -> None:
            refuted = incumbent.bound_ns is not None and incumbent.bound_ns > self.makespan_ns
            if refuted or self.budget.stop.is_set():
                stop.set()

        limits = replace(self.budget, time_limit=seconds, stop=stop, on_progress=watch)
        if self.budget.deterministic:
            limits = replace(limits, stop=self.budget.stop, on_progress=None)
        try:
            plan = self.solver.solve(limited, limits)
        except UnassignableError:
            return None, False
        if plan.status == "infeasible" or (plan.bound_ns or 0) > self.makespan_ns:
            return None, True
        return (plan if self.keeps(plan) else None), False


def least(
    ground: Ground,
    plan: Plan,
    name: str,
    figure: Callable[[Plan], int],
    limited: Callable[[int], Problem],
    bound_on_figure: int,
    seconds: float,
) -> tuple[Plan, Stage]:
    """The plan of the least figure found, and the figure with the bound that was proven, by the epsilon-constraint
    method (Haimes, Lasdon and Wismer 1971): the figure is limited ever more tightly, and the makespan minimised.

    limited: the problem with the figure limited to so much. The bound holds for all plans whose makespan, by issue
    order on the engines (`planned`) or as they run, is at most that of the ground. Half the gap is tried each time, and
    what is not settled in its time counts as out of reach.
    """
    best, value, low = plan, figure(plan), min(bound_on_figure, figure(plan))
    beyond = low - 1  # the largest limit that a search could not meet
    deadline = time.monotonic() + seconds
    tries = 6 if ground.budget.deterministic else 64
    for attempt in range(tries):
        left = seconds / tries if ground.budget.deterministic else deadline - time.monotonic()
        if max(low - 1, beyond) >= value - 1 or left <= 0.02 * seconds or ground.budget.stop.is_set():
            break
        limit = value - 1 if attempt == 0 else (max(low - 1, beyond) + value) // 2
        found, none = ground.within(limited(limit), left if ground.budget.deterministic else left / 2)
        if none:
            low = max(low, limit + 1)
        elif found is None:
            beyond = max(beyond, limit)
        elif (better := figure(found)) < value:
            best, value = found, better
        else:
            beyond = max(beyond, limit)
    return best, Stage(name, value, low)
