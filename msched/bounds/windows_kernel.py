"""Compiled loads of time windows: the tree of Vilim on ops by head, and energy between all heads and tails."""

from __future__ import annotations

import numpy as np

from msched.arrays import Int64Array
from msched.compiled import compiled

EMPTY = -(2**61)


@compiled
def leaves(k: int) -> int:
    """Number of leaves of a tree for k ops: the next power of two."""
    size = 1
    while size < k:
        size *= 2
    return size


@compiled
def insert(total: Int64Array, reach: Int64Array, leaf: int, head: int, work: int) -> None:
    """Put an op into the tree. reach of a node: max over h of h + work of its ops with head >= h.

    total, reach: shapes (2 size,), root at 1; leaves stand by rising head. A negative `work` takes the op out.
    """
    i = total.size // 2 + leaf
    total[i] = max(work, 0)
    reach[i] = head + work if work >= 0 else EMPTY
    i //= 2
    while i:
        total[i] = total[2 * i] + total[2 * i + 1]
        reach[i] = max(reach[2 * i + 1], reach[2 * i] + total[2 * i + 1])
        i //= 2


@compiled
def preemptive(head: Int64Array, tail: Int64Array, work: Int64Array, units: int) -> int:
    """Max over windows (h, t) of h + ceil(work of ops with head >= h and tail >= t / units) + t.

    For one unit it is the makespan of Jackson's preemptive schedule.
    """
    size = leaves(head.size)
    total, reach = np.zeros(2 * size, np.int64), np.full(2 * size, EMPTY, np.int64)
    by_head = np.argsort(head, kind="mergesort")
    leaf = np.empty(head.size, np.int64)
    leaf[by_head] = np.arange(head.size)
    best = 0
    for v in np.argsort(-tail, kind="mergesort"):
        insert(total, reach, leaf[v], head[v] * units, work[v])
        best = max(best, (reach[1] + units - 1) // units + tail[v])
    return best


@compiled
def energetic(
    begins: Int64Array,
    head: Int64Array,
    tail: Int64Array,
    duration: Int64Array,
    demand: Int64Array,
    capacity: int,
    known: int,
) -> int:
    """Best bound on the makespan from the energy that ops must spend between t1 and makespan - s, for t1 of `begins`.

    An op spends in the window at least what it does when it starts as early, or as late, as it can, whichever is less.
    known: a bound on the makespan, that limits how short the window is. For a given t1 the energy falls with s, in
    pieces: from s = k - left to s = k at the rate of the op's demand.
    """
    n = head.size
    point, change = np.empty(2 * n, np.int64), np.empty(2 * n, np.int64)
    for t1 in begins:
        count, energy = 0, 0
        for v in range(n):
            left = min(duration[v], head[v] + duration[v] - t1)
            last = min(duration[v] + tail[v], known - t1)
            if left <= 0:
                continue
            energy += left * demand[v]
            point[count], change[count] = last - left, demand[v]
            point[count + 1], change[count + 1] = last, -demand[v]
            count += 2
        rate, before = 0, 0
        by_point = np.argsort(point[:count], kind="mergesort")
        for i in by_point:
            energy -= rate * (point[i] - before)
            before = point[i]
            rate += change[i]
            if energy > 0:
                known = max(known, t1 + before + (energy + capacity - 1) // capacity)
    return known
