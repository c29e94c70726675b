"""Lower bounds on the makespan: figures that no plan of a problem can beat, under any dispatch rule.

Each bound is a function of a Problem; `bound` takes the best. They hold for every fidelity that does not shorten ops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from msched.arrays import Int64Array
from msched.problem import UNLIMITED, Problem

_THRESHOLDS = 512  # heads that a window may begin at; beyond that many distinct ones, evenly spaced ones
_OVERLAPS = (1, 2, 3)  # ops so large that at most so many of them fit on an engine at once


@dataclass(frozen=True)
class Bound:
    """A proven lower bound on the makespan in ns, the argument that gave it, and what every argument gave."""

    makespan_ns: int
    argument: str
    each: dict[str, int]


def bound(problem: Problem) -> Bound:
    """The best of critical path, engine load, stream load and host issue."""
    if problem.n == 0:
        return Bound(0, "no ops", {})
    heads, tails = heads_and_tails(problem)
    each = {
        "critical path": int((heads + shortest_durations(problem) + tails).max()),
        "engine load": engine_load(problem, heads, tails),
        "stream load": stream_load(problem, heads, tails),
        "host issue": host_issue(problem, tails),
    }
    argument = max(each, key=lambda key: each[key])
    return Bound(each[argument], argument, each)


def shortest_durations(problem: Problem) -> Int64Array:
    """The least duration over the modes of each op: shape (n,)."""
    if not problem.mode_op.size:
        return problem.duration
    shortest = problem.duration.copy()
    np.minimum.at(shortest, problem.mode_op, problem.mode_duration)
    return shortest


def least_lags(problem: Problem) -> Int64Array:
    """The least time between the finish of the one and the start of the other end of each dependency: shape (m,).

    On one stream it is at least the gap, between two streams the event and the delay; ops that can never share a
    stream (bound to different engines) pay the latter.
    """
    between = problem.record_ns + problem.wait_ns + problem.delay
    within = np.full_like(between, problem.gap_ns)
    if problem.streams == 1:
        return within
    lag = np.minimum(between, within)
    if problem.binding == "engine":
        ends = problem.engine[problem.edges]
        lag = np.where(ends[:, 0] != ends[:, 1], between, lag)
        lag = np.where((ends[:, 0] == ends[:, 1]) & (problem.engine_streams[ends[:, 0]] == 1), within, lag)
    together = problem.label[problem.edges]
    return np.where((together[:, 0] == together[:, 1]) & (together[:, 0] >= 0), within, lag)


def heads_and_tails(problem: Problem) -> tuple[Int64Array, Int64Array]:
    """Earliest start of each op, and least time from its finish to the end of the step: shapes (n,)."""
    from msched.bounds_kernel import longest_heads

    duration, lag = shortest_durations(problem), least_lags(problem)
    into, out = problem.predecessor_edge, problem.successor_edge
    heads = longest_heads(problem.topological_order, duration, problem.successor_start, problem.successor, lag[out])
    tails = longest_heads(
        problem.topological_order[::-1].copy(), duration, problem.predecessor_start, problem.predecessor, lag[into]
    )
    if problem.host_issue_ns:
        heads = np.maximum(heads, problem.host_issue_ns)
    return heads, tails


def critical_path(problem: Problem) -> int:
    """Longest chain of durations and unavoidable lags, in ns."""
    heads, tails = heads_and_tails(problem)
    return int((heads + shortest_durations(problem) + tails).max(initial=0))


def engine_load(problem: Problem, heads: Int64Array, tails: Int64Array) -> int:
    """Units x time that ops hold on an engine, over its capacity, between the earliest head and the least tail.

    For every window (ops with head >= h and tail >= t) and every engine: h + energy / capacity + t; and the same with
    ops so large that at most k of them fit at once counted as 1/k of the engine each (Carlier and Neron 2007, on
    redundant resources of cumulative scheduling).
    """
    return max((_windowed(heads, tails, work, units) for work, units in _engine_works(problem)), default=0)


def _engine_works(problem: Problem) -> Iterator[tuple[Int64Array, int]]:
    duration, demand = problem.duration, problem.demand
    energy = duration[:, None] * demand
    if problem.mode_op.size:
        np.minimum.at(energy, problem.mode_op, problem.mode_duration[:, None] * problem.mode_demand)
        demand = demand.copy()
        np.minimum.at(demand, problem.mode_op, problem.mode_demand)
        duration = shortest_durations(problem)
    for e, capacity in enumerate(problem.capacity.tolist()):
        if capacity == 0:
            continue
        yield energy[:, e], capacity
        for fitting in _OVERLAPS:
            if fitting < capacity:
                yield np.where(demand[:, e] > capacity // (fitting + 1), duration, 0), fitting


def stream_load(problem: Problem, heads: Int64Array, tails: Int64Array) -> int:
    """Durations and gaps that streams must carry, over the number of streams, in the windows of `engine_load`.

    A stream of j ops holds j - 1 gaps, so that k streams save k of them. With binding `engine`, also engine by engine.
    """
    work = shortest_durations(problem) + problem.gap_ns
    best = 0
    if problem.streams is not None:
        best = _windowed(heads, tails, work, problem.streams, problem.gap_ns * problem.streams)
    if problem.binding == "engine":
        others = np.unique(problem.engine).size - 1  # each needs a stream of its own
        for e, limit in enumerate(problem.engine_streams.tolist()):
            most = problem.streams - others if problem.streams is not None else None
            most = most if limit == UNLIMITED else limit if most is None else min(limit, most)
            if most is not None and most > 0:
                here = np.where(problem.engine == e, work, 0)
                best = max(best, _windowed(heads, tails, here, most, problem.gap_ns * most))
    return best


def host_issue(problem: Problem, tails: Int64Array) -> int:
    """The host issues one op after another: the k-th from last cannot start before all before it are issued."""
    cost = problem.host_issue_ns
    if not cost:
        return 0
    rest = np.sort(shortest_durations(problem) + tails)[::-1]  # some op with at least the k-th largest comes k-th
    return int((rest + cost * np.arange(1, rest.size + 1)).max())


def _windowed(heads: Int64Array, tails: Int64Array, work: Int64Array, units: int, credit: int = 0) -> int:
    from msched.bounds_kernel import window_load

    used = np.flatnonzero(work > 0)
    if not used.size:
        return 0
    head, tail, load = heads[used], tails[used], np.ascontiguousarray(work[used])
    thresholds = np.unique(head)
    if thresholds.size > _THRESHOLDS:
        thresholds = thresholds[np.linspace(0, thresholds.size - 1, _THRESHOLDS).astype(np.int64)]
    return int(window_load(thresholds, head, tail, load, np.argsort(-tail, kind="stable"), units, credit))
