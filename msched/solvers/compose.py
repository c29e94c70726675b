"""A solver from an assignment of streams and an issue order that know nothing of each other."""

from __future__ import annotations

from dataclasses import dataclass

from msched.plan import Plan
from msched.problem import Problem
from msched.solvers.base import Assigner, Budget, Sequencer


@dataclass(frozen=True)
class Compose:
    """First `assign` chooses the streams, then `order` the issue order. The plan claims no times."""

    assign: Assigner
    order: Sequencer

    def solve(self, problem: Problem, budget: Budget) -> Plan:
        """The composed plan. Raises UnassignableError for a limit that the assignment cannot keep."""
        stream = self.assign.assign(problem, budget)
        return Plan(stream, self.order.sequence(problem, stream, budget))
