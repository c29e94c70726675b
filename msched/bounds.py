"""Lower bounds on the makespan: figures that no plan of a problem can beat, under any dispatch rule.

Each bound is a function of a Problem; `bound` takes the best. They hold for every fidelity that does not shorten ops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from msched.arrays import Int64Array
from msched.problem import UNLIMITED, Problem

_THRESHOLDS = 512  # heads that a window may begin at; beyond that many distinct ones, evenly spaced ones
_MOST_OPS = 10_000  # for arguments that look at all pairs of ops
_LABELS = 8  # labels with the largest loads that are looked at
_OVERLAPS = (1, 2, 3)  # ops so large that at most so many of them fit on an engine at once


@dataclass(frozen=True)
class Bound:
    """A proven lower bound on the makespan in ns, the argument that gave it, and what every argument gave."""

    makespan_ns: int
    argument: str
    each: dict[str, int]


_KNOWN: WeakKeyDictionary[Problem, Bound] = WeakKeyDictionary()


def bound(problem: Problem) -> Bound:
    """The best of critical path, engine load, stream load, host issue, and loads along the precedence order.

    Remembered as long as the problem lives. O(n^2) up to 10,000 ops; beyond, without the last argument.
    """
    if problem not in _KNOWN:
        _KNOWN[problem] = evaluate(problem)
    return _KNOWN[problem]


def evaluate(problem: Problem) -> Bound:
    """`bound` without memory: every argument worked out afresh."""
    if problem.n == 0:
        return Bound(0, "no ops", {})
    heads, tails = heads_and_tails(problem)
    each = {
        "critical path": int((heads + shortest_durations(problem) + tails).max()),
        "engine load": engine_load(problem, heads, tails),
        "stream load": stream_load(problem, heads, tails),
        "host issue": host_issue(problem, tails),
    }
    if problem.n <= _MOST_OPS:
        heads, tails = best_heads_and_tails(problem)
        each["load along paths"] = max(
            int((heads + shortest_durations(problem) + tails).max()),
            engine_load(problem, heads, tails),
            stream_load(problem, heads, tails),
        )
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


def best_heads_and_tails(problem: Problem) -> tuple[Int64Array, Int64Array]:
    """`loaded_heads_and_tails` where the problem is small enough for all pairs of ops, else `heads_and_tails`."""
    return loaded_heads_and_tails(problem) if problem.n <= _MOST_OPS else heads_and_tails(problem)


def loaded_heads_and_tails(problem: Problem) -> tuple[Int64Array, Int64Array]:
    """As `heads_and_tails`, with what the ancestors, or descendants, of an op must carry: shapes (n,).

    Of an op's ancestors those that cannot start before h all run, on each engine and on the streams, between h and the
    op's start; the best such h is taken, and the tails mirrored. The energetic reasoning of cumulative scheduling
    (Baptiste, Le Pape and Nuijten 2001, chapter 3) on the intervals that the precedence order gives.
    """
    from msched.bounds_kernel import energetic_heads

    duration, lag = shortest_durations(problem), least_lags(problem)
    loads = [(work, units, 0) for work, units in _engine_works(problem)]
    loads += [(work, units, credit) for work, units, credit in _stream_works(problem)]
    loads = [load for load in loads if load[0].any()]
    work = np.stack([load[0] for load in loads], axis=1) if loads else np.zeros((problem.n, 0), np.int64)
    units, credit = np.array([load[1:] for load in loads], np.int64).reshape(-1, 2).T.copy()
    into, out = problem.predecessor_edge, problem.successor_edge
    heads = energetic_heads(
        problem.topological_order, duration, problem.predecessor_start, problem.predecessor, lag[into],
        work, units, credit, problem.host_issue_ns,
    )  # fmt: skip
    tails = energetic_heads(
        problem.topological_order[::-1].copy(), duration, problem.successor_start, problem.successor, lag[out],
        work, units, credit, 0,
    )  # fmt: skip
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

    A stream of j ops holds j - 1 gaps, so that k streams save k of them. With binding `engine`, also engine by engine;
    ops of one label share a stream.
    """
    return max((_windowed(heads, tails, *load) for load in _stream_works(problem)), default=0)


def _stream_works(problem: Problem) -> Iterator[tuple[Int64Array, int, int]]:
    """Work of each op, number of streams, and work that need not be carried."""
    work = shortest_durations(problem) + problem.gap_ns
    if problem.streams is not None:
        yield work, problem.streams, problem.gap_ns * problem.streams
    if problem.binding == "engine":
        others = np.unique(problem.engine).size - 1  # each needs a stream of its own
        for e, limit in enumerate(problem.engine_streams.tolist()):
            most = problem.streams - others if problem.streams is not None else None
            most = most if limit == UNLIMITED else limit if most is None else min(limit, most)
            if most is not None and most > 0:
                yield np.where(problem.engine == e, work, 0), most, problem.gap_ns * most
    labels, size = np.unique(problem.label[problem.label != UNLIMITED], return_counts=True)
    load = [int(work[problem.label == label].sum()) if k > 1 else 0 for label, k in zip(labels, size, strict=True)]
    for i in np.argsort(load, kind="stable")[::-1][:_LABELS]:
        yield np.where(problem.label == labels[i], work, 0), 1, problem.gap_ns


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
