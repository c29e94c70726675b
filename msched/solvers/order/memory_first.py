"""Issue order with a low peak: after each op, the ready op that leaves the fewest bytes live."""

from __future__ import annotations

from dataclasses import dataclass

from msched.arrays import Int64Array
from msched.problem import Problem
from msched.solvers.base import Budget
from msched.solvers.low_peak import low_peak_order


@dataclass(frozen=True)
class MemoryFirst:
    """The order of `msched.solvers.low_peak.low_peak_order`, where its method and source stand."""

    def sequence(self, problem: Problem, stream: Int64Array, budget: Budget) -> Int64Array:
        """Ops in issue order, shape (n,); the streams are not looked at."""
        return low_peak_order(problem)
