"""Op after op to the next stream in turn, as XLA:GPU does with its asynchronous scopes (ExecutionStreamAssignment)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from msched.arrays import Int64Array
from msched.errors import OptionError
from msched.problem import Problem
from msched.solvers.base import Budget
from msched.solvers.stream_pool import follow_labels, stream_pool, within_limits

_STREAMS = 8  # where neither the user nor the problem says how many


@dataclass(frozen=True)
class RoundRobin:
    """The i-th op in topological order goes to stream i mod k; a label's ops follow its first op.

    streams: k; by default as many as the problem allows, or 8. Where streams are bound to engines, each engine has a
    share of the k (`stream_pool`) and takes turns within it.

    Raises OptionError for a k below 1.
    """

    streams: int | None = None

    def __post_init__(self) -> None:
        if self.streams is not None and self.streams < 1:
            raise OptionError(
                f"round_robin: streams is {self.streams}; at least 1 is needed, or null for all there are"
            )

    def assign(self, problem: Problem, budget: Budget) -> Int64Array:
        """The stream of each op, shape (n,). Raises UnassignableError."""
        pool = stream_pool(problem, self.streams or problem.streams or _STREAMS)
        stream = np.empty(problem.n, np.int64)
        for p in np.unique(pool.of_op):
            ops = problem.topological_order[pool.of_op[problem.topological_order] == p]
            stream[ops] = pool.first[p] + np.arange(ops.size) % (pool.first[p + 1] - pool.first[p])
        return within_limits(problem, follow_labels(problem, stream))
