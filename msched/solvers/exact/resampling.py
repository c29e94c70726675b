"""A neighbourhood searched by sampling: some ops of a time window and the next ones behind them are placed anew.

As in `window.py` the ops before the window stay, and what lies behind it moves up as one block. Here the first ops of
the block are placed one by one, too; the rest keeps its distance from the end. None of those first ops may end later
than the block would have it, and none starts behind the rest, so that the rest fits wherever it did.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from msched.arrays import BoolArray, Int64Array
from msched.plan import Plan
from msched.problem import Problem
from msched.solvers.colouring import coloured
from msched.solvers.exact.excerpt import excerpt
from msched.solvers.exact.scaled import exact_grain
from msched.solvers.exact.schedule import Schedule
from msched.solvers.exact.solution import issue_order, plan_of, scaled_duration
from msched.solvers.joint.sampled import empty_pool, sides_of
from msched.solvers.joint.schemes import ABSENT, FREE, MOST_STREAMS, Scheme, counts_streams, scheme
from msched.solvers.stream_pool import StreamPool

if TYPE_CHECKING:
    from msched.solvers.joint.sampled_kernel import Pool, Sides

_AT_ONCE = 20_000  # ops placed between two looks at the clock
_SERIAL = 5  # ways of sampling that work with ops that stand


@dataclass(frozen=True)
class Resampling:
    """The neighbourhood. ops (k,): those that it sees, rising; moved (n,): those that it places; rest (n,): the block.

    limits: earliest start of each, and least time from its finish to the end, (n,) ns. least: makespan in ns below
    which the rest cannot move.
    """

    schedule: Schedule
    ops: Int64Array
    free: BoolArray
    moved: BoolArray
    rest: BoolArray
    head: Int64Array
    tail: Int64Array
    least: int

    @staticmethod
    def possible(schedule: Schedule) -> bool:
        """Whether the schemes know all that the problem asks for, and nothing is rounded."""
        problem, grain = schedule.scaled.problem, schedule.scaled.grain
        known = counts_streams(problem) or schedule.streams.lanes <= MOST_STREAMS
        return known and exact_grain(problem) % grain == 0 and not problem.host_issue_ns

    @staticmethod
    def of(schedule: Schedule, free: BoolArray, shifted: BoolArray, least_ns: int) -> Resampling | None:
        """Place the ops of `free` anew, with as many of those of `shifted` behind them; None where nothing can move."""
        problem, grain = schedule.scaled.problem, schedule.scaled.grain
        early, late = schedule.early * grain, schedule.late * grain
        duration, lag, makespan = schedule.duration * grain, schedule.lag * grain, schedule.makespan * grain
        held = problem.gap_ns + np.where(problem.communicator >= 0, problem.record_ns + problem.wait_ns, 0)
        behind = np.flatnonzero(shifted)
        first = behind[np.argsort(late[behind], kind="stable")][: int(free.sum())]
        moved, rest = free.copy(), shifted.copy()
        moved[first], rest[first] = True, False
        still = ~free & ~shifted
        u, v = problem.edges[:, 0], problem.edges[:, 1]
        end = int(late[rest].min(initial=makespan + int(held.max(initial=0))))
        room = end - int((early + duration + held)[still].max(initial=0))
        across = still[u] & rest[v]
        room = min(room, int((late[v] - (early + duration)[u] - lag)[across].min(initial=room)))
        least = max(least_ns, makespan - max(0, room))
        if least >= makespan:
            return None
        begin = int(early[free].min())
        into = still[u] & moved[v]
        head = np.full(problem.n, begin, np.int64)
        np.maximum.at(head, v[into], (early + duration)[u[into]])
        tail = np.maximum(makespan + held - end, 0)
        tail[first] = makespan - (late + duration)[first]
        out = free[u] & rest[v]
        np.maximum.at(tail, u[out], makespan - late[v[out]] + lag[out])
        near = moved | (still & (early + duration + held > begin))
        near[u[into]] = True
        return Resampling(schedule, np.flatnonzero(near), free, moved, rest, head, tail, least)

    def search(
        self, seconds: float, seed: int, stop: Callable[[], bool], rounds: int | None = None
    ) -> tuple[int, Plan | None]:
        """The makespan reached, in ns, and the plan of all ops where it is shorter than the schedule's.

        rounds: schedules to generate instead of the time.
        """
        from msched.solvers.joint.sampled_kernel import search

        ahead, back = self._schemes()
        sides, pool = sides_of(ahead, back), empty_pool(self.ops.size)
        pool.weight[_SERIAL:] = 0
        self._plant(sides, pool)
        end = time.monotonic() + seconds
        rng = np.random.default_rng(seed)
        step = max(8, _AT_ONCE // self.ops.size)
        best = 0
        while not stop() and (time.monotonic() < end if rounds is None else pool.effort[0] < rounds):
            search(self.least, int(pool.effort[0]) + step, sides, pool, rng)
            best = int(np.argmin(np.where(pool.makespan >= 0, pool.makespan, 2**62)))
            if pool.makespan[best] <= self.least:
                break
        makespan = self.schedule.makespan * self.schedule.scaled.grain
        reached = max(int(pool.makespan[best]), self.least)
        if reached >= makespan:
            return makespan, None
        place = np.argsort(self._order)
        return reached, self._plan(
            pool.start[best][place], pool.mode[best][place], pool.stream[best][place], makespan - reached
        )

    @property
    def _order(self) -> Int64Array:
        return self._part.topological_order

    @cached_property
    def _part(self) -> Problem:
        schedule = self.schedule
        duration = schedule.duration * schedule.scaled.grain
        return excerpt(schedule.scaled.problem, self.ops, duration, schedule.demand, self.free)

    def _schemes(self) -> tuple[Scheme, Scheme]:
        schedule, ops = self.schedule, self.ops
        problem, grain = schedule.scaled.problem, schedule.scaled.grain
        row = problem.engine if problem.binding == "engine" else np.zeros(problem.n, np.int64)
        streams = StreamPool(row[ops], schedule.streams.first)
        ahead, back = scheme(self._part, streams), scheme(self._part, streams, mirrored=True)
        stands = ~self.moved[ops]
        at = np.where(stands, schedule.early[ops] * grain, FREE)
        gone = np.where(stands, ABSENT, FREE)
        head, tail = self.head[ops], np.where(stands, 0, self.tail[ops])
        order, turned = self._order, self._order[::-1]
        if ahead.chosen:
            only = np.int64(1) << schedule.stream[ops]
            ahead = ahead._replace(allowed=np.where(self._bound[ops][order], only[order], ahead.allowed))
            back = back._replace(allowed=np.where(self._bound[ops][turned], only[turned], back.allowed))
        return (
            ahead._replace(head=head[order], tail=tail[order], at=at[order]),
            back._replace(head=tail[turned], tail=np.where(stands, 0, head)[turned], at=gone[turned]),
        )

    @property
    def _bound(self) -> BoolArray:
        """Ops that keep their stream: those of the block and what stands, and those that either depends on or that a
        label ties to other ops."""
        problem = self.schedule.scaled.problem
        bound = ~self.free
        u, v = problem.edges[:, 0], problem.edges[:, 1]
        bound[u[self.rest[v]]] = True
        outside = np.unique(problem.label[~self.free])
        return bound | ((problem.label >= 0) & np.isin(problem.label, outside))

    def _plant(self, sides: Sides, pool: Pool) -> None:
        """Begin the pool with the schedule as it is."""
        from msched.solvers.joint.sampled_kernel import generated, justified, keep

        schedule, ops = self.schedule, self.ops[self._order]
        start = np.where(self.free, schedule.early, schedule.late)[ops].astype(np.float64)
        mode = np.zeros(ops.size, np.int64)
        if schedule.plan.mode is not None:
            mode = np.where(self.free, schedule.plan.mode, 0)[ops]
        found, makespan = generated(start, mode, schedule.stream[ops], False, False, sides, pool)
        keep(*justified(found, makespan, sides, pool), pool)

    def _plan(self, start_ns: Int64Array, mode: Int64Array, stream: Int64Array, gain_ns: int) -> Plan:
        """The plan of all ops, from what the ops of the neighbourhood (k,) do and by how much the rest moves up."""
        schedule, ops = self.schedule, self.ops
        scaled, problem = schedule.scaled, schedule.scaled.problem
        start = np.where(self.rest, schedule.late - gain_ns // scaled.grain, schedule.early)
        start[ops] = np.where(self.moved[ops], start_ns // scaled.grain, start[ops])
        modes = np.zeros(problem.n, np.int64) if schedule.plan.mode is None else schedule.plan.mode.copy()
        modes[ops] = np.where(self.free[ops], mode, modes[ops])
        streams = schedule.stream.copy()
        if not counts_streams(problem):
            streams[ops] = stream
        elif schedule.streams.policy == "choice":
            duration = scaled_duration(scaled, modes)
            row = problem.engine if problem.binding == "engine" else np.zeros(problem.n, np.int64)
            order = issue_order(problem, start, duration)
            streams = coloured(problem, order, start, start + duration + scaled.gap, row, schedule.streams.first)
        return plan_of(scaled, schedule.streams, start, modes, streams)
