"""A problem as schedule generation schemes read it, forwards or mirrored in time: resources, modes and streams."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from msched.arrays import Int64Array, compressed_rows
from msched.problem import Problem
from msched.solvers.stream_pool import StreamPool

MOST_STREAMS = 62  # a set of streams is the bits of one integer
FREE, ABSENT = -1, -2


class Scheme(NamedTuple):
    """Ops numbered so that predecessors come first; n ops, R resources, W modes of all ops together.

    mode_start (n + 1,): modes of op v are `mode_start[v]` to `mode_start[v + 1] - 1`. duration (W,) ns.
    need_start (W + 1,), resource, units, hold: what each mode holds, and for how long beyond its duration (ns).
    capacity (R,): of engines that can be short of units, of streams where they are counted, and 1 of each communicator.
    before_start, before, lag, after_start, after: dependencies as CSR, and what each costs between streams (ns).
    allowed (n,): the streams an op may go on, as bits; all bits where streams are counted.
    label (n,): ops of one label share a stream, -1 for none. labels: how many there are. gap: ns after an op.
    head, tail (n,): earliest start, and what must pass after the finish until the end, in ns. at (n,): where an op
    stands that is not to be placed, on its one allowed stream; `FREE` for those that are, `ABSENT` for those left out.
    chosen: whether each op is given a stream; else streams are a resource, and any colouring of the intervals will do.
    """

    mode_start: Int64Array
    duration: Int64Array
    need_start: Int64Array
    resource: Int64Array
    units: Int64Array
    hold: Int64Array
    capacity: Int64Array
    before_start: Int64Array
    before: Int64Array
    lag: Int64Array
    after_start: Int64Array
    after: Int64Array
    allowed: Int64Array
    label: Int64Array
    labels: int
    gap: int
    chosen: bool
    head: Int64Array
    tail: Int64Array
    at: Int64Array


def counts_streams(problem: Problem) -> bool:
    """Whether a number of streams is all that matters: nothing that depends on which ops share one costs time."""
    shared = np.unique(problem.label[problem.label >= 0], return_counts=True)[1]
    return not (problem.record_ns or problem.wait_ns or problem.delay.any() or (shared > 1).any())


def scheme(problem: Problem, pool: StreamPool, *, mirrored: bool = False) -> Scheme:
    """`problem` with op k in place of `problem.topological_order[k]`; if `mirrored`, of the reversed order, with all
    dependencies turned round. pool: the streams; at most `MOST_STREAMS` unless they are counted."""
    order = problem.topological_order[::-1] if mirrored else problem.topological_order
    n = problem.n
    number = np.empty(n, np.int64)
    number[order] = np.arange(n)
    edges = number[problem.edges[:, ::-1] if mirrored else problem.edges]
    before_start, into = compressed_rows(edges[:, 1], n)
    after_start, out = compressed_rows(edges[:, 0], n)
    counted = counts_streams(problem)
    mode_start, duration, demand, capacity, hold = _modes(problem, pool, order, counted)
    holder, resource = np.nonzero(demand)
    label = np.unique(np.append(problem.label[order], -1), return_inverse=True)[1][:-1] - 1
    first, last = pool.first[pool.of_op[order]], pool.first[pool.of_op[order] + 1]
    return Scheme(
        mode_start=mode_start,
        duration=duration,
        need_start=np.searchsorted(holder, np.arange(duration.size + 1)).astype(np.int64),
        resource=resource.astype(np.int64),
        units=demand[holder, resource],
        hold=hold[holder, resource],
        capacity=capacity,
        before_start=before_start,
        before=np.ascontiguousarray(edges[into, 0]),
        lag=(problem.delay + problem.record_ns + problem.wait_ns)[into],
        after_start=after_start,
        after=np.ascontiguousarray(edges[out, 1]),
        allowed=np.full(n, -1) if counted else (1 << last) - (1 << first),
        label=label.astype(np.int64),
        labels=int(label.max(initial=-1)) + 1,
        gap=problem.gap_ns,
        chosen=not counted,
        head=np.zeros(n, np.int64),
        tail=np.zeros(n, np.int64),
        at=np.full(n, FREE),
    )


def _modes(
    problem: Problem, pool: StreamPool, order: Int64Array, counted: bool
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array, Int64Array]:
    """Of all modes: row starts (n + 1,), durations (W,), demands (W, R); capacities (R,); hold (W, R) in ns."""
    n = problem.n
    number = np.empty(n, np.int64)
    number[order] = np.arange(n)
    op = np.concatenate([np.arange(n), number[problem.mode_op]])
    by_op = np.argsort(op, kind="stable")
    owner = order[op[by_op]]
    duration = np.concatenate([problem.duration[order], problem.mode_duration])[by_op]
    demand = np.concatenate([problem.demand[order], problem.mode_demand])[by_op]
    demand = demand * (duration > 0)[:, None]  # an empty interval holds nothing
    most = np.zeros((n, problem.capacity.size), np.int64)
    np.maximum.at(most, op[by_op], demand)
    binding = np.flatnonzero(most.sum(axis=0) > problem.capacity)
    columns, capacity = [demand[:, binding]], [problem.capacity[binding]]
    hold = [np.zeros((duration.size, binding.size), np.int64)]
    if counted:
        takes = (duration > 0) | (problem.gap_ns > 0)
        streams = np.diff(pool.first)
        short = np.flatnonzero(streams < np.bincount(pool.of_op, minlength=streams.size))
        columns.append((pool.of_op[owner][:, None] == short) * takes[:, None])
        capacity.append(streams[short])
        hold.append(np.full((duration.size, short.size), problem.gap_ns))
    groups = np.unique(problem.communicator[problem.communicator >= 0])
    columns.append((problem.communicator[owner][:, None] == groups).astype(np.int64))
    capacity.append(np.ones(groups.size, np.int64))
    # A fence that keeps the order of two collectives costs an event; one without duration still has its own instant.
    event = np.maximum(problem.record_ns + problem.wait_ns, duration == 0)
    hold.append(np.repeat(event[:, None], groups.size, axis=1))
    return (
        np.searchsorted(op[by_op], np.arange(n + 1)).astype(np.int64),
        duration,
        np.concatenate(columns, axis=1).astype(np.int64),
        np.concatenate(capacity).astype(np.int64),
        np.concatenate(hold, axis=1).astype(np.int64),
    )
