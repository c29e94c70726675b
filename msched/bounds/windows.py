"""Bounds by the work that engines, streams and the host must do between the heads and the tails of ops."""

from __future__ import annotations

import numpy as np

from msched.arrays import Int64Array
from msched.bounds.paths import shortest_durations
from msched.bounds.resources import Load, Resource, loads, resources
from msched.problem import Problem

_PLACES = 2**61  # heads times units stay below: no int64 overflow
_STEPS = 200_000  # window begins x ops that are looked at on one resource


def engine_load(problem: Problem, heads: Int64Array, tails: Int64Array) -> int:
    """Units x time that ops hold on an engine, over its capacity, between the earliest head and the least tail, in ns.

    For every window (ops with head >= h and tail >= t) and every engine: h + energy / capacity + t; and the same with
    ops so large that at most k of them fit at once counted as 1/k of the engine each. For k = 1 it is Jackson's
    preemptive schedule (Carlier 1982, The one-machine sequencing problem, section 2), computed by a tree over the heads
    (Vilim 2004) in O(n log n). heads, tails: shapes (n,).
    """
    return max((_windowed(heads, tails, load) for load in loads(problem) if load.kind == "engine"), default=0)


def stream_load(problem: Problem, heads: Int64Array, tails: Int64Array) -> int:
    """Durations and gaps that streams must carry, over the number of streams, in the windows of `engine_load`, in ns.

    A stream of j ops holds j - 1 gaps, so that k streams save k of them. With binding `engine`, also engine by engine;
    ops of one label share a stream.
    """
    return max((_windowed(heads, tails, load) for load in loads(problem) if load.kind == "stream"), default=0)


def energetic_windows(problem: Problem, heads: Int64Array, tails: Int64Array, known: int) -> int:
    """Energy that ops must spend in a window of time even when they lie as far outside as they can, in ns.

    The left-shift, right-shift energy of Baptiste, Le Pape and Nuijten 1999 (Satisfiability tests and time-bound
    adjustments for cumulative scheduling problems, section 3) on windows [t1, makespan - s], for every s and t1 at the
    heads and earliest finishes of ops, evenly spaced ones where they are many. On m machines it does the service of
    Jackson's pseudo-preemptive schedule (Carlier and Pinson 1998). known: a bound on the makespan. heads, tails: (n,).
    """
    return max((_energetic(resource, heads, tails, known) for resource in resources(problem)), default=0)


def host_issue(problem: Problem, tails: Int64Array) -> int:
    """The host issues one op after another: the k-th from last cannot start before all before it are issued; in ns."""
    cost = problem.host_issue_ns
    if not cost:
        return 0
    rest = np.sort(shortest_durations(problem) + tails)[::-1]  # some op with at least the k-th largest comes k-th
    return int((rest + cost * np.arange(1, rest.size + 1)).max())


def _windowed(heads: Int64Array, tails: Int64Array, load: Load) -> int:
    from msched.bounds.windows_kernel import preemptive

    used = np.flatnonzero(load.work > 0)
    if not used.size:
        return 0
    head, tail, work = heads[used], tails[used] - load.gap, np.ascontiguousarray(load.work[used])
    if int(head.max()) >= _PLACES // load.units:
        return int(head.min()) - int(-work.sum() // load.units) + int(tail.min())
    return int(preemptive(head, tail, work, load.units))


def _energetic(resource: Resource, heads: Int64Array, tails: Int64Array, known: int) -> int:
    from msched.bounds.windows_kernel import energetic

    head, tail = heads[resource.op], tails[resource.op] - resource.gap
    begins = np.unique(np.concatenate([head, head + resource.duration]))
    most = max(8, _STEPS // resource.op.size)
    if begins.size > most:
        begins = begins[np.linspace(0, begins.size - 1, most).astype(np.int64)]
    return int(energetic(begins, head, tail, resource.duration, resource.demand, resource.capacity, known))
