"""What ops share: engines and streams, as work to be done at a limited rate and as rectangles under a capacity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from msched.arrays import BoolArray, Int64Array
from msched.bounds.paths import shortest_durations
from msched.problem import UNLIMITED, Problem

_LABELS = 8  # labels with the largest loads that are looked at
_OVERLAPS = (1, 2, 3)  # ops so large that at most so many of them fit on an engine at once


@dataclass(frozen=True)
class Load:
    """Work (n,) of each op, of which at most `units` are done in a nanosecond.

    gap: part of an op's work that may lie after its finish, per unit: the pause of a stream behind each op, of which
    the last is not needed. kind: "engine" or "stream".
    """

    kind: str
    work: Int64Array
    units: int
    gap: int = 0


@dataclass(frozen=True)
class Resource:
    """Ops (k,) that hold `demand` (k,) of `capacity` units for `duration` (k,) ns from their start on.

    An op ends `gap` ns before it lets its units go. Figures are the least over the modes of each op.
    """

    kind: str
    op: Int64Array
    duration: Int64Array
    demand: Int64Array
    capacity: int
    gap: int = 0


def loads(problem: Problem) -> Iterator[Load]:
    """Energy of each engine; large ops of an engine, of which at most k fit at once, as 1/k of it each; streams.

    Large ops: Carlier and Neron 2007, on redundant resources of cumulative scheduling.
    """
    energy, duration, demand = _least(problem)
    for e, capacity in enumerate(problem.capacity.tolist()):
        if capacity == 0:
            continue
        before = -1
        for fitting in _OVERLAPS:
            large = demand[:, e] > capacity // (fitting + 1)
            count = int(np.count_nonzero(large))
            more = count > max(before, fitting)  # the same ops, more of them at once, tell nothing new
            if more and (fitting < capacity or fitting == 1):
                yield Load("engine", np.where(large, duration, 0), fitting)
                before = count
        if (demand[:, e] > 0).sum() > (demand[:, e] > capacity // 2).sum():  # else the large ops are all there are
            yield Load("engine", energy[:, e], capacity)
    for chosen, count in _stream_groups(problem):
        if np.count_nonzero(chosen) > count:
            yield Load("stream", np.where(chosen, duration + problem.gap_ns, 0), count, problem.gap_ns)


def resources(problem: Problem) -> Iterator[Resource]:
    """Engines with the demands of ops, and streams, on each of which one op runs at a time.

    Only those that can hold somebody up: whose ops do not all fit at once.
    """
    _, duration, demand = _least(problem)
    for e, capacity in enumerate(problem.capacity.tolist()):
        op = np.flatnonzero((demand[:, e] > 0) & (duration > 0))
        if int(demand[op, e].sum()) > capacity:
            yield Resource("engine", op, duration[op], demand[op, e], capacity)
    for chosen, count in _stream_groups(problem):
        op = np.flatnonzero(chosen & (duration + problem.gap_ns > 0))
        if op.size > count:
            yield Resource(
                "stream", op, duration[op] + problem.gap_ns, np.ones(op.size, np.int64), count, problem.gap_ns
            )


def _least(problem: Problem) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Energy (n, E), duration (n,) and demand (n, E) of each op, each the least over its modes."""
    energy = problem.duration[:, None] * problem.demand
    demand = problem.demand
    if problem.mode_op.size:
        np.minimum.at(energy, problem.mode_op, problem.mode_duration[:, None] * problem.mode_demand)
        demand = demand.copy()
        np.minimum.at(demand, problem.mode_op, problem.mode_demand)
    return energy, shortest_durations(problem), demand


def _stream_groups(problem: Problem) -> Iterator[tuple[BoolArray, int]]:
    """Ops as a mask (n,), and the number of streams that they share: all, those of an engine, those of a label."""
    if problem.streams is not None:
        yield np.ones(problem.n, np.bool_), problem.streams
    if problem.binding == "engine":
        others = np.unique(problem.engine).size - 1  # each needs a stream of its own
        for e, limit in enumerate(problem.engine_streams.tolist()):
            most = problem.streams - others if problem.streams is not None else None
            most = most if limit == UNLIMITED else limit if most is None else min(limit, most)
            if most is not None and most > 0:
                yield problem.engine == e, most
    labels, size = np.unique(problem.label[problem.label != UNLIMITED], return_counts=True)
    work = shortest_durations(problem) + problem.gap_ns
    load = [int(work[problem.label == label].sum()) if k > 1 else 0 for label, k in zip(labels, size, strict=True)]
    for i in np.argsort(load, kind="stable")[::-1][:_LABELS]:
        if load[i]:
            yield problem.label == labels[i], 1
