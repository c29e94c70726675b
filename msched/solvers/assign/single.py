"""Everything on one stream: what a framework does by default, and the yardstick of every speed-up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from msched.arrays import Int64Array
from msched.problem import Problem
from msched.solvers.base import Budget
from msched.solvers.stream_pool import within_limits


@dataclass(frozen=True)
class Single:
    """One stream for all ops."""

    def assign(self, problem: Problem, budget: Budget) -> Int64Array:
        """Zeros, shape (n,). Raises UnassignableError where streams are bound to engines and several are in use."""
        return within_limits(problem, np.zeros(problem.n, np.int64))
