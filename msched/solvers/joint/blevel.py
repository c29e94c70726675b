"""List scheduling by b-level: whenever a stream and the units are free, the op with the longest way to the end goes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from msched.errors import OptionError
from msched.plan import Plan
from msched.problem import Problem
from msched.solvers.base import Budget
from msched.solvers.joint.listing import listing, scheduled
from msched.solvers.joint.stream_choice import shortest
from msched.solvers.stream_pool import StreamPool


@dataclass(frozen=True)
class Blevel:
    """Highest level first (Hu 1961, Operations Research 9(6); Adam, Chandy and Dickson 1974, CACM 17(12)), on streams
    with engine capacity and event costs, which those papers do not have.

    Runs in time: at each instant the op of the highest b-level (longest path to the end in durations, its own
    included; then first in topological order) starts among those whose inputs have reached a free stream and whose
    units are free; until none can. It takes the stream on which it can start, of several that of a predecessor, then
    the lowest. The first op of a label chooses the label's stream. The collectives of one communicator are kept apart
    by the cost of an event, so that fences can hold their order.

    max_streams: most streams where the problem sets no limit. Raises OptionError for one below 1.
    narrower: whether fewer streams are tried as well (`msched.solvers.joint.stream_choice.shortest`).
    """

    max_streams: int = 32
    narrower: bool = True

    def __post_init__(self) -> None:
        if self.max_streams < 1:
            raise OptionError(f"blevel: max_streams is {self.max_streams}; it must be at least 1")
        if not isinstance(self.narrower, bool):
            raise OptionError(f"blevel: narrower is {self.narrower!r}; True or False is needed")

    def solve(self, problem: Problem, budget: Budget) -> Plan:
        """A plan with predicted times that hold under `planned`; in O(m + n log n + n (streams + different demands))
        for each choice of streams.

        Raises UnassignableError for a limit on streams that cannot be kept.
        """
        return shortest(problem, budget, problem.streams or self.max_streams, self.narrower, self._on)

    def _on(self, problem: Problem, pool: StreamPool) -> Plan:
        from msched.solvers.joint.blevel_kernel import schedule

        ops = listing(problem, pool, lag_in_rank=False)
        rows = np.column_stack([ops.pool, ops.communicator, ops.demand])
        kinds, kind = np.unique(rows, axis=0, return_inverse=True)
        start, stream = schedule(
            ops.duration,
            kind.astype(np.int64),
            np.ascontiguousarray(kinds[:, 2:]),
            np.ascontiguousarray(kinds[:, 0]),
            np.ascontiguousarray(kinds[:, 1]),
            ops.label,
            problem.capacity,
            ops.first,
            ops.before_start,
            ops.before,
            ops.before_lag,
            ops.after_start,
            ops.after,
            problem.gap_ns,
            problem.record_ns + problem.wait_ns,
        )
        return scheduled(problem, ops, start, stream)
