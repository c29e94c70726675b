"""A plan that the exact solver may return, with what the simulator says of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from msched.arrays import Int64Array
from msched.plan import Plan, durations_and_demands
from msched.problem import Problem
from msched.simulator import Timeline, start_times
from msched.solvers.limits import broken, overcounted
from msched.solvers.securing import keep_communicators_in_order, secure
from msched.solvers.splitting import split


@dataclass(frozen=True)
class Candidate:
    """A secured plan with its simulated figures: under the dispatch that is asked for, and under `planned`."""

    plan: Plan
    makespan_ns: int
    planned_ns: int
    planned_start_ns: Int64Array
    waits: int
    broken: str
    planned_broken: str
    overcounted: str  # that part of `broken` which the model does not know

    @staticmethod
    def of(problem: Problem, plan: Plan, dispatch: str) -> Candidate:
        """`plan` secured for `dispatch` and simulated; split, or with fewer fences, where only that keeps a limit."""
        ordered = keep_communicators_in_order(problem, plan)
        secured = secure(problem, secure(problem, ordered, "planned"), dispatch)
        best = Candidate._as_it_is(problem, secured, dispatch)
        for other in (split(problem, secured, dispatch), ordered, split(problem, ordered, dispatch)):
            if not best.broken:
                break
            if other is not secured:
                best = min(best, Candidate._as_it_is(problem, other, dispatch), key=lambda c: c.rank)
        return best

    @staticmethod
    def unsecured(problem: Problem, plan: Plan, dispatch: str) -> Candidate:
        """`plan` simulated as it is, but for the order of its communicators."""
        return Candidate._as_it_is(problem, keep_communicators_in_order(problem, plan), dispatch)

    @staticmethod
    def _as_it_is(problem: Problem, plan: Plan, dispatch: str) -> Candidate:
        duration = durations_and_demands(problem, plan)[0]
        start = start_times(problem, plan, "planned")
        planned = Timeline(problem, plan, start, start + duration)
        start = start_times(problem, plan, dispatch)
        timeline = Timeline(problem, plan, start, start + duration)
        return Candidate(
            plan,
            timeline.makespan_ns,
            planned.makespan_ns,
            planned.start_ns,
            len(timeline.waits),
            broken(problem, plan, timeline),
            broken(problem, plan, planned),
            overcounted(problem, plan, timeline.waits),
        )

    @property
    def promise(self) -> int:
        """The makespan in ns that fences can be expected to leave: as planned, or as it comes without them."""
        return 0 if self.broken or self.planned_broken else min(self.makespan_ns, self.planned_ns)

    @property
    def rank(self) -> tuple[bool, int, int, int, int]:
        """Limits kept, then makespan as asked for, then as planned, then events and streams: less is better."""
        return bool(self.broken), self.makespan_ns, self.planned_ns, self.waits, self.plan.streams


def best_of(problem: Problem, plans: Iterable[Plan], dispatch: str, most: int, over: Callable[[], bool]) -> Candidate:
    """The best of the plans, as they are and secured: those that promise most first, at most so many once one keeps all
    limits, and while they promise more than the best and it is not over."""
    known = sorted((Candidate.unsecured(problem, plan, dispatch) for plan in plans), key=lambda c: (c.promise, c.rank))
    best = min(known, key=lambda c: c.rank)
    for i, candidate in enumerate(known):
        if not best.broken and (candidate.promise >= best.makespan_ns or (i and (i >= most or over()))):
            break
        best = min(best, Candidate.of(problem, candidate.plan, dispatch), key=lambda c: c.rank)
    return best
