"""A problem on the coarse time grain that CP-SAT works on, and how its streams enter the model.

Every figure is rounded down. A schedule in nanoseconds, its times divided by the grain and rounded down, then meets
every rounded constraint: finish <= start survives the division, and ops that overlap on the grain overlapped in truth.
So the model's bound, times the grain, holds for the problem; and the order and streams of its solution make a plan
whose simulation in nanoseconds is the claim.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from msched.arrays import Int64Array
from msched.bounds import best_heads_and_tails, bound
from msched.problem import UNLIMITED, Problem

Policy = Literal["count", "fixed", "choice"]
_ENERGY = 2**50  # units x grains of one resource that CP-SAT is trusted with; from 2^58 on it loses solutions
_LANES = 60_000  # op-by-stream literals that a model may hold; beyond, fewer streams and no claim of optimality
_CROWDED = 1000  # ops up to which the limit on tasks is in the model; beyond, plans that break it are split


@dataclass(frozen=True)
class Scaled:
    """Figures of a problem in grains, shapes as in Problem. lag (m,): between streams, event and delay together."""

    problem: Problem
    grain: int
    duration: Int64Array
    mode_duration: Int64Array
    lag: Int64Array
    fence_lag: int
    gap: int
    host: int
    head: Int64Array
    tail: Int64Array
    bound: int

    @staticmethod
    def of(problem: Problem, grain: int) -> Scaled:
        """The problem on a grain of so many ns."""
        head, tail = best_heads_and_tails(problem)
        sync = problem.record_ns + problem.wait_ns
        return Scaled(
            problem,
            grain,
            problem.duration // grain,
            problem.mode_duration // grain,
            (problem.delay + sync) // grain,
            sync // grain,
            problem.gap_ns // grain,
            problem.host_issue_ns // grain,
            head // grain,
            tail // grain,
            bound(problem).makespan_ns // grain,
        )

    @property
    def latest(self) -> int:
        """A makespan that suffices for some optimal schedule: all work and all lags one after another."""
        work = self.duration.copy()
        np.maximum.at(work, self.problem.mode_op, self.mode_duration)
        each = self.gap + self.host + self.fence_lag
        return int(work.sum() + self.lag.sum() + each * self.problem.n) + 1


@dataclass(frozen=True)
class Streams:
    """How streams enter the model.

    count: only their number matters (events are free and streams alike). fixed: one stream an engine, or one in all.
    choice: a literal for each op and each of `lanes`; `first[e]` to `first[e + 1]` are the streams of engine e when
    bound, all of them otherwise. complete: no plan needs more streams than the model has.
    """

    policy: Policy
    first: Int64Array
    complete: bool

    @property
    def lanes(self) -> int:
        """Streams in the model."""
        return int(self.first[-1])

    @staticmethod
    def of(problem: Problem, *, chosen: bool = False) -> Streams:
        """The lightest policy that is exact for the problem; `choice` where the streams must be `chosen`."""
        n, engines = problem.n, problem.capacity.size
        used = np.unique(problem.engine)
        limit = n if problem.streams is None else min(problem.streams, n)
        if problem.binding == "free":
            most = np.array([limit], np.int64)
        else:
            ops = np.bincount(problem.engine, minlength=engines)
            own = np.where(problem.engine_streams == UNLIMITED, n, problem.engine_streams)
            most = np.minimum(np.minimum(own, ops), max(1, limit - used.size + 1))
        first = np.concatenate([[0], np.cumsum(most)]).astype(np.int64)
        if (most <= 1).all() and not chosen:
            return Streams("fixed", first, True)
        if not chosen and not _needs_choice(problem):
            return Streams("count", first, True)
        ops = np.array([n]) if problem.binding == "free" else np.bincount(problem.engine, minlength=engines)
        capped = most
        while (capped * ops).sum() > _LANES and capped.max() > 1:
            capped = np.minimum(most, capped.max() // 2)
        return Streams(
            "choice", np.concatenate([[0], np.cumsum(capped)]).astype(np.int64), bool((capped == most).all())
        )

    def options(self, problem: Problem, op: int) -> range:
        """Streams that the op may go to."""
        row = int(problem.engine[op]) if problem.binding == "engine" else 0
        return range(int(self.first[row]), int(self.first[row + 1]))

    def fit(self, problem: Problem, stream: Int64Array) -> bool:
        """Whether a plan with these streams, shape (n,), is within the model."""
        row = problem.engine if problem.binding == "engine" else np.zeros(problem.n, np.int64)
        used = [np.unique(stream[row == r]).size for r in range(self.first.size - 1)]
        return bool((np.array(used) <= np.diff(self.first)).all())


def _needs_choice(problem: Problem) -> bool:
    """Whether it matters which op shares a stream with which, beyond how many streams are busy."""
    events_cost = problem.record_ns + problem.wait_ns > 0 or bool(problem.delay.any())
    grouped = bool((problem.label >= 0).any())
    limit = problem.tasks_per_stream
    crowded = limit is not None and limit < problem.n <= _CROWDED
    # An op without duration fits where a stream changes hands: only where it may take any stream is that always so.
    empty = problem.gap_ns == 0 and bool((problem.duration == 0).any() or (problem.mode_duration == 0).any())
    return events_cost or grouped or crowded or (empty and (problem.binding == "engine" or problem.host_issue_ns > 0))


def exact_grain(problem: Problem) -> int:
    """The greatest common divisor of all durations and costs in ns: on it, nothing is rounded. 0 if all are 0."""
    costs = (problem.gap_ns, problem.record_ns + problem.wait_ns, problem.host_issue_ns)
    figures = np.concatenate([problem.duration, problem.mode_duration, problem.delay, np.array(costs, np.int64)])
    return int(np.gcd.reduce(figures))


def counted(amounts: list[list[int]], capacity: int, horizon: int) -> tuple[list[list[int]], int, int, bool]:
    """Amounts of one resource, a list for each op, and its capacity in a unit so coarse that CP-SAT cannot overflow.

    The greatest common divisor loses nothing. Where the figures stay too large they are divided and rounded down, which
    keeps every schedule of the problem: sums of rounded amounts never exceed the rounded sum. Third
    and fourth: that unit, and whether nothing was lost.
    """
    unit = math.gcd(capacity, *(amount for row in amounts for amount in row)) or 1
    most = max(capacity, sum(max(row) for row in amounts)) // unit
    coarser = -(-most * max(1, horizon) // _ENERGY)
    unit *= max(1, coarser)
    return [[amount // unit for amount in row] for row in amounts], capacity // unit, unit, coarser <= 1
