"""Topological issue order, first in first out: what a framework does that does not reorder."""

from __future__ import annotations

from dataclasses import dataclass

from msched.arrays import Int64Array
from msched.problem import Problem
from msched.solvers.base import Budget


@dataclass(frozen=True)
class Topological:
    """The order of Kahn's algorithm (CACM 1962), ready ops first in first out by index."""

    def sequence(self, problem: Problem, stream: Int64Array, budget: Budget) -> Int64Array:
        """Ops in issue order, shape (n,), whatever their streams."""
        return problem.topological_order
