"""The shortest period in which one block of a repeated network can follow another: modulo scheduling."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from msched.arrays import Int64Array
from msched.problem import Problem
from msched.solvers.exact.effort import Effort, run
from msched.solvers.exact.engine import Answer
from msched.solvers.exact.repetition import Repetition
from msched.solvers.stream_pool import StreamPool

_LEAST_STAGES = 2  # periods that a block may last, or more where the schedule does that the search begins with
_STEPS = 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1, 1.5, 2, 3  # tried above the least
_TRIALS = 20  # placements an op that one of them may take
_FIRST_SLICE_S = 1.0  # that a period is searched for; doubled from one bisection to the next, each with another seed
_FINEST = 1000  # bisection ends within such a part of the period
_LATENCY_SHARE = 0.25  # of the time, for a shorter block once the period is known


@dataclass(frozen=True)
class Period:
    """Block k of a repetition starts the op at position p at start[p] + k x period_ns, for every k.

    period_ns, lower_ns: what was found, and what no periodic schedule of these blocks can beat. start (q,): ns from 0.
    """

    period_ns: int
    lower_ns: int
    start: Int64Array


@dataclass(frozen=True)
class _Block:
    """One block of q ops on R resources, the engines and then the pools of streams.

    duration (q,). held (q, R): ns that an op holds each resource. need (q, R), room (R,). edges, lag: see `Repetition`.
    """

    duration: Int64Array
    held: Int64Array
    need: Int64Array
    room: Int64Array
    edges: Int64Array
    lag: Int64Array

    @staticmethod
    def of(problem: Problem, repetition: Repetition, pool: StreamPool, lag: Int64Array) -> _Block:
        ops = repetition.blocks[0]
        duration = problem.duration[ops]
        rows = np.arange(pool.first.size - 1)
        need = np.column_stack([problem.demand[ops], pool.of_op[ops][:, None] == rows[None, :]]).astype(np.int64)
        held = np.repeat(duration[:, None], need.shape[1], axis=1)
        held[:, problem.capacity.size :] += problem.gap_ns
        room = np.concatenate([problem.capacity, np.diff(pool.first)])
        return _Block(duration, held, need, room, repetition.edges, lag)

    @property
    def least(self) -> int:
        """What the resources need for one block, in ns (Rau 1994, the resource part of the minimum interval)."""
        load = (self.held * self.need).sum(axis=0)
        alone = np.where(self.need * 2 > self.room, self.held, 0).sum(axis=0)
        return int(max([1, *self.held.max(initial=0, axis=1), *alone, *(-(-load // np.maximum(self.room, 1)))]))

    def least_along_cycles(self, most: int) -> int:
        """The least period, from `least` to `most`, at which no cycle of dependencies is longer than its blocks."""
        from msched.solvers.exact.period_kernel import heights

        low, high = self.least, max(most, self.least)
        while low < high:
            middle = (low + high) // 2
            if heights(self.duration, self.edges, self.lag, middle).size:
                high = middle
            else:
                low = middle + 1
        return low

    def heuristic(self, least: int, most: int) -> tuple[int, Int64Array]:
        """A period and the starts that iterative modulo scheduling found for it; most: one that surely holds."""
        from msched.solvers.exact.period_kernel import iterative_modulo

        for period in [least, *(math.ceil(least * (1 + step)) for step in _STEPS), most]:
            found = iterative_modulo(
                self.duration, self.held, self.need, self.room, self.edges, self.lag, period,
                _TRIALS * self.duration.size,
            )  # fmt: skip
            if found.size:
                return period, found
        return most, self.one_by_one

    @property
    def one_by_one(self) -> Int64Array:
        """Starts (q,) of ops that follow each other, each after the lags and the gap; positions are topological."""
        step = self.held.max(axis=1) + self.lag.max(initial=0)
        return np.concatenate([[0], np.cumsum(step)[:-1]])


def resource_period(problem: Problem, repetition: Repetition, pool: StreamPool) -> int:
    """The load of one block on the busiest engine, or on the streams, over its capacity, in ns."""
    return _Block.of(problem, repetition, pool, np.zeros_like(repetition.delay)).least


def shortest_period(
    problem: Problem, repetition: Repetition, pool: StreamPool, lag: Int64Array, effort: Effort
) -> Period:
    """A periodic schedule of the blocks with the least period found, and then the shortest block.

    lag (r,): ns from the end of the first op of each dependency of the block to the start of the second.

    Iterative modulo scheduling (Rau 1994) gives a first one; CP-SAT tries periods between it and the least that the
    resources and the cycles of dependencies allow, by bisection, again and again since how long a search takes varies
    widely with its seed. Modes other than the first are not used.
    """
    block = _Block.of(problem, repetition, pool, lag)
    most = int(block.held.max(axis=1).sum() + lag.max(initial=0) * len(block.duration))
    lower = block.least_along_cycles(most)
    period, start = block.heuristic(lower, max(most, lower))
    search, slice_s, seed = effort.part(effort.left * (1 - _LATENCY_SHARE)), _FIRST_SLICE_S, effort.seed
    spent = 0.0
    while search.left > spent and period > lower:
        low = lower - 1
        while search.left > spent and period - low > max(1, period // _FINEST):
            middle = (low + period) // 2
            trial = replace(search.part(min(slice_s, search.left - spent)), seed=seed)
            spent += trial.seconds if effort.deterministic else 0.0
            answer = _searched(_Unrolled(block, middle, start), trial)
            if answer.found:
                period, start = middle, answer.solution[: start.size]
            else:
                low = middle
        slice_s, seed = 2 * slice_s, seed + 1
    if effort.left > 0:
        unrolled = _Unrolled(block, period, start)
        unrolled.shorten()
        answer = _searched(unrolled, effort.part(effort.seconds * _LATENCY_SHARE))
        if answer.found:
            start = answer.solution[: start.size]
    return Period(period, lower, start - int(start.min(initial=0)))


def _searched(unrolled: _Unrolled, effort: Effort) -> Answer:
    """With conditional precedences and no linear relaxation, one worker found in 0.1 s a period within 3 % of the load
    for which the defaults found none in 15 s; where that switch crashes, the defaults have what time is left."""
    answer = run(
        unrolled.cp, effort, num_workers=1, linearization_level=0,
        use_dynamic_precedence_in_disjunctive=True, use_dynamic_precedence_in_cumulative=True,
    )  # fmt: skip
    return run(unrolled.cp, effort) if answer.status == "CRASHED" and not answer.found else answer


class _Unrolled:
    """The CP-SAT model of as many blocks as can overlap, one `period` apart. Its first variables are the starts (q,).

    A block ends within `stages` periods, so that it meets the next stages - 1 blocks and no others: as many as the
    schedule `known` (q,) needs, and one more period than the shortest block.
    """

    def __init__(self, block: _Block, period: int, known: Int64Array) -> None:
        from ortools.sat.python import cp_model

        self.cp, self.block, self.period = cp_model.CpModel(), block, period
        self.known = known - int(known.min())
        held = block.held.max(axis=1)
        length = int((self.known + held).max())
        self.stages = max(_LEAST_STAGES, -(-length // period))
        end = self.stages * period
        self.start = [self.cp.new_int_var(0, max(end - int(h), 0), f"start{p}") for p, h in enumerate(held)]
        for (u, v, distance), wait in zip(block.edges.tolist(), block.lag.tolist(), strict=True):
            self.cp.add(self.start[v] + distance * period >= self.start[u] + int(block.duration[u]) + wait)
        for r in range(block.room.size):
            self._resource(r)

    def _resource(self, r: int) -> None:
        held, need = self.block.held[:, r].tolist(), self.block.need[:, r].tolist()
        room = int(self.block.room[r])
        ops = [p for p, (size, units) in enumerate(zip(held, need, strict=True)) if size and units]
        if sum(need[p] for p in ops) * self.stages <= room:
            return
        spans = [
            self.cp.new_fixed_size_interval_var(self.start[p] + k * self.period, held[p], f"span{p}_{k}")
            for p in ops
            for k in range(self.stages)
        ]
        if min(need[p] for p in ops) * 2 > room:
            self.cp.add_no_overlap(spans)
        else:
            self.cp.add_cumulative(spans, [need[p] for p in ops for _ in range(self.stages)], room)

    def shorten(self) -> None:
        """Ask for the shortest block, from `known` on."""
        end = self.cp.new_int_var(0, self.stages * self.period, "end")
        self.cp.add_hint(end, int((self.known + self.block.duration).max()))
        for start, at, duration in zip(self.start, self.known.tolist(), self.block.duration.tolist(), strict=True):
            self.cp.add(start + duration <= end)
            self.cp.add_hint(start, at)
        self.cp.minimize(end)
