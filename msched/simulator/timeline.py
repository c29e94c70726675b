"""Timeline: when every op of a plan ran, and what follows from that."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from msched.arrays import Int64Array
from msched.plan import Plan, durations_and_demands, waits
from msched.problem import Problem


@dataclass(frozen=True, eq=False)
class Timeline:
    """One simulated execution. start_ns (n,), finish_ns (n,) of every op; the other figures are computed when read."""

    problem: Problem
    plan: Plan
    start_ns: Int64Array
    finish_ns: Int64Array

    @cached_property
    def makespan_ns(self) -> int:
        """The last finish: the score of a plan."""
        return int(self.finish_ns.max(initial=0))

    @cached_property
    def peak_bytes(self) -> int:
        """Most bytes live at once (contract, section 4), persistent tensors included."""
        problem, kept = self.problem, ~self.problem.tensor_persistent
        begin, end = self.tensor_lifetimes
        begin = np.concatenate([begin[kept], self.start_ns])
        end = np.concatenate([end[kept], self.finish_ns])
        size = np.concatenate([problem.tensor_bytes[kept], problem.workspace])
        used = size > 0
        begin, end, size = begin[used], end[used], size[used]
        # Lifetimes are half-open: at one instant, what ends is released before what begins is taken.
        instant = np.concatenate([end, begin])
        change = np.concatenate([-size, size])
        by_time = np.argsort(instant, kind="stable")
        live = np.cumsum(change[by_time]).max(initial=0)
        return int(live + problem.tensor_bytes[problem.tensor_persistent].sum())

    @cached_property
    def tensor_lifetimes(self) -> tuple[Int64Array, Int64Array]:
        """Begin and end of each tensor in ns: shapes (T,). Persistent tensors: 0 and the makespan."""
        problem = self.problem
        produced = problem.tensor_producer >= 0
        begin = np.where(produced, self.start_ns[problem.tensor_producer], 0) if problem.n else problem.tensor_producer
        end = np.where(produced, self.finish_ns[problem.tensor_producer], 0) if problem.n else problem.tensor_producer
        owner = np.repeat(np.arange(end.size), np.diff(problem.tensor_consumer_start))
        np.maximum.at(end, owner, self.finish_ns[problem.tensor_consumer])
        always = problem.tensor_persistent
        return np.where(always, 0, begin), np.where(always | problem.tensor_output, self.makespan_ns, end)

    @cached_property
    def utilisation(self) -> NDArray[np.float64]:
        """Share of each engine's unit-time that ops held, 0 to 1: shape (E,)."""
        duration, demand = durations_and_demands(self.problem, self.plan)
        held = duration.astype(np.float64) @ demand.astype(np.float64)
        offered = self.problem.capacity.astype(np.float64) * self.makespan_ns
        return np.divide(held, offered, out=np.zeros_like(held), where=offered > 0)

    @cached_property
    def exposed_communication_ns(self) -> int:
        """Time in which communication ran and no computation did."""
        talks = self.problem.communication[self.problem.engine]
        return self._covered(np.ones_like(talks)) - self._covered(~talks)

    @cached_property
    def waits(self) -> Int64Array:
        """The events that the plan needs, as (before, after): shape (w, 2)."""
        return waits(self.problem, self.plan)

    @cached_property
    def critical_ops(self) -> Int64Array:
        """One chain of ops, in time order, each of which starts when the one before lets it; the last ends the step."""
        from msched.simulator.critical import critical_chain

        return critical_chain(self.problem, self.plan, self.start_ns, self.finish_ns)

    def _covered(self, chosen: NDArray[np.bool_]) -> int:
        """Length of the union of the intervals of the chosen ops."""
        by_start = np.argsort(self.start_ns[chosen], kind="stable")
        begin, end = self.start_ns[chosen][by_start], self.finish_ns[chosen][by_start]
        if not begin.size:
            return 0
        reach = np.maximum.accumulate(end)
        return int((reach - np.maximum(begin, np.concatenate([begin[:1], reach[:-1]]))).clip(0).sum())
