"""A schedule that neighbourhoods start from: every op as early, and as late, as the others let it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from msched.arrays import Int64Array
from msched.plan import Plan, durations_and_demands
from msched.solvers.exact.scaled import Scaled, Streams


@dataclass(frozen=True)
class Schedule:
    """A plan's start times in grains, with what each op holds. Shapes (n,) where not said otherwise.

    early: starts under `planned`. late: starts after each op has moved right in falling order of finish, so that the
    ops from any place of `by_finish` (rising) on at `late`, and those before it at `early`, make a schedule.
    demand (n, E). lag (m,): from finish to start of each dependency. stream: numbered as the model numbers them.
    """

    scaled: Scaled
    streams: Streams
    plan: Plan
    duration: Int64Array
    demand: Int64Array
    stream: Int64Array
    lag: Int64Array
    early: Int64Array
    late: Int64Array
    by_finish: Int64Array

    @property
    def makespan(self) -> int:
        """In grains."""
        return int((self.early + self.duration).max(initial=0))

    @staticmethod
    def of(scaled: Scaled, streams: Streams, plan: Plan, start_ns: Int64Array) -> Schedule:
        """The schedule of a plan that starts so under `planned`; `streams` is narrowed to what the plan leaves."""
        from msched.solvers.exact.justify_kernel import latest_starts

        problem, n = scaled.problem, scaled.problem.n
        duration_ns, demand = durations_and_demands(problem, plan)
        duration, early = duration_ns // scaled.grain, start_ns // scaled.grain
        streams, stream = _numbered(scaled, streams, plan)
        lag = _lags(scaled, streams, stream)
        by_finish = np.lexsort((early, early + duration))
        needs = _needs(scaled, streams, demand, stream)
        late = latest_starts(
            early, duration, by_finish[::-1].copy(), int((early + duration).max(initial=0)),
            problem.successor_start, problem.successor, lag[problem.successor_edge], *needs,
        )  # fmt: skip
        assert late.size == n
        return Schedule(scaled, streams, plan, duration, demand, stream, lag, early, late, by_finish)


def _numbered(scaled: Scaled, streams: Streams, plan: Plan) -> tuple[Streams, Int64Array]:
    """The plan's streams in the ranges that the model has for them, and ranges that a neighbourhood may use: those
    of the plan, and one more of each kind while the limits allow it."""
    problem = scaled.problem
    row = problem.engine if problem.binding == "engine" else np.zeros(problem.n, np.int64)
    rows = streams.first.size - 1
    used = np.array([np.unique(plan.stream[row == r]).size for r in range(rows)], np.int64)
    most = np.diff(streams.first)
    spare = problem.n if problem.streams is None else problem.streams - int(used.sum())
    wide = np.maximum(used, np.minimum(most, used + 1)) if streams.policy == "choice" else np.maximum(used, most)
    if problem.binding == "engine" and problem.streams is not None and spare < int((wide - used).sum()):
        wide = used
    first = np.concatenate([[0], np.cumsum(wide)]).astype(np.int64)
    stream = np.empty(problem.n, np.int64)
    for r in range(rows):
        mine = row == r
        stream[mine] = first[r] + np.unique(plan.stream[mine], return_inverse=True)[1]
    return Streams(streams.policy, first, streams.complete), stream


def _lags(scaled: Scaled, streams: Streams, stream: Int64Array) -> Int64Array:
    problem = scaled.problem
    u, v = problem.edges[:, 0], problem.edges[:, 1]
    if streams.policy == "choice":
        together = stream[u] == stream[v]
    elif streams.policy == "fixed" and problem.binding == "engine":
        together = problem.engine[u] == problem.engine[v]
    else:
        together = np.full(len(u), streams.policy == "fixed")
    return np.where(together, scaled.gap, scaled.lag)


def _needs(scaled: Scaled, streams: Streams, demand: Int64Array, stream: Int64Array) -> tuple[Int64Array, ...]:
    """Resources of each op as CSR: engines, and behind them its stream, or streams of its kind as one resource."""
    problem, engines = scaled.problem, scaled.problem.capacity.size
    if streams.policy == "choice":
        own, rooms = stream, np.ones(streams.lanes, np.int64)
    else:
        own = problem.engine if problem.binding == "engine" else np.zeros(problem.n, np.int64)
        rooms = np.diff(streams.first)
    held = np.concatenate([demand > 0, np.ones((problem.n, 1), np.bool_)], axis=1)
    op, column = np.nonzero(held)
    is_stream = column == engines
    need = np.where(is_stream, engines + own[op], column)
    units = np.where(is_stream, 1, demand[op, np.minimum(column, engines - 1)]) if engines else np.ones_like(op)
    longer = np.where(is_stream, scaled.gap, 0)
    starts = np.searchsorted(op, np.arange(problem.n + 1))
    capacity = np.concatenate([problem.capacity, rooms])
    return tuple(a.astype(np.int64) for a in (starts, need, units, longer, capacity))
