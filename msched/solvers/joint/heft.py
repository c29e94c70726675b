"""HEFT: ops by upward rank, each inserted where it finishes first."""

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
class Heft:
    """Heterogeneous earliest finish time (Topcuoglu, Hariri and Wu 2002, IEEE TPDS 13(3)), streams as processors.

    The streams are identical, so the earliest finish is the earliest start; of equal ones the stream of a predecessor
    is taken, then the lowest. Ranks and starts charge record, wait and delay between streams. The first op of a label
    chooses the label's stream; the collectives of one communicator are kept apart by the cost of an event.

    engine_capacity: HEFT as published knows processors only. With it an op is inserted where the stream and all its
    engines have room for its whole duration; without it the plan ignores engines, and so claims no times.
    max_streams: most streams where the problem sets no limit. Raises OptionError for one below 1.
    narrower: whether fewer streams are tried as well (`msched.solvers.joint.stream_choice.shortest`).
    """

    engine_capacity: bool = True
    max_streams: int = 32
    narrower: bool = True

    def __post_init__(self) -> None:
        if self.max_streams < 1:
            raise OptionError(f"heft: max_streams is {self.max_streams}; it must be at least 1")
        if not isinstance(self.narrower, bool):
            raise OptionError(f"heft: narrower is {self.narrower!r}; True or False is needed")

    def solve(self, problem: Problem, budget: Budget) -> Plan:
        """A plan whose predicted times hold under `planned`; in O(m + n streams) as long as insertions are near the
        end of what is scheduled, O(n^2 streams) at worst, for each choice of streams.

        Raises UnassignableError for a limit that cannot be kept.
        """
        return shortest(problem, budget, problem.streams or self.max_streams, self.narrower, self._on)

    def _on(self, problem: Problem, pool: StreamPool) -> Plan:
        from msched.solvers.joint.heft_kernel import schedule

        ops = listing(problem, pool, lag_in_rank=True)
        start, stream = schedule(
            ops.duration,
            ops.demand if self.engine_capacity else np.zeros_like(ops.demand),
            ops.pool,
            ops.label,
            ops.communicator,
            problem.capacity,
            ops.first,
            ops.before_start,
            ops.before,
            ops.before_lag,
            problem.gap_ns,
            problem.record_ns + problem.wait_ns,
        )
        return scheduled(problem, ops, start, stream, claim=self.engine_capacity)
