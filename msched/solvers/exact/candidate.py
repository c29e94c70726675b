"""A plan that the exact solver may return, with what the simulator says of it."""

from __future__ import annotations

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
        for other in (split(problem, secured), ordered, split(problem, ordered)):
            if not best.broken:
                break
            if other is not secured:
                best = min(best, Candidate._as_it_is(problem, other, dispatch), key=lambda c: c.rank)
        return best

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
    def rank(self) -> tuple[bool, int, int, int, int]:
        """Limits kept, then makespan as asked for, then as planned, then events and streams: less is better."""
        return bool(self.broken), self.makespan_ns, self.planned_ns, self.waits, self.plan.streams
