"""Compiled parts of the lower bounds."""

from __future__ import annotations

import numpy as np

from msched.arrays import Int64Array
from msched.compiled import compiled


@compiled
def longest_heads(
    order: Int64Array, duration: Int64Array, edges_start: Int64Array, target: Int64Array, lag: Int64Array
) -> Int64Array:
    """Earliest start of each op by precedence alone, shape (n,): the longest path of durations and lags to it."""
    head = np.zeros(order.size, np.int64)
    for u in order:
        end = head[u] + duration[u]
        for k in range(edges_start[u], edges_start[u + 1]):
            head[target[k]] = max(head[target[k]], end + lag[k])
    return head


@compiled
def window_load(
    thresholds: Int64Array, head: Int64Array, tail: Int64Array, work: Int64Array, by_tail: Int64Array, units: int,
    credit: int,
) -> int:  # fmt: skip
    """Best of h + ceil((sum of work of ops with head >= h and tail >= t) - credit) / units) + t over pairs (h, t).

    by_tail: ops by falling tail. thresholds: the h to try. credit: work that the bound may not count (trailing gaps).
    """
    best = 0
    for h in thresholds:
        total = 0
        for v in by_tail:
            if head[v] < h:
                continue
            total += work[v]
            if total > credit:
                best = max(best, h + (total - credit + units - 1) // units + tail[v])
    return best


@compiled
def energetic_heads(
    order: Int64Array,
    duration: Int64Array,
    before_start: Int64Array,
    before: Int64Array,
    lag: Int64Array,
    work: Int64Array,
    units: Int64Array,
    credit: Int64Array,
    floor: int,
) -> Int64Array:
    """Earliest start of each op by precedence and by the load of its ancestors, shape (n,).

    Of the ancestors of v, those that cannot start before h must all run between h and v's start: for every h and every
    resource r, head(v) >= h + (their work on r - credit(r)) / units(r). Ancestors stand in bit sets.

    order: topological. before_start, before, lag: predecessors as CSR. work (n, R), units (R,), credit (R,).
    """
    n, resources = work.shape
    words = (n + 63) // 64
    ancestors = np.zeros((n, words), np.uint64)
    head = np.full(n, floor, np.int64)
    by_head = np.empty(n, np.int64)  # ops done so far, by rising head
    done = 0
    total = np.empty(resources, np.int64)
    for v in order:
        mine = ancestors[v]
        for k in range(before_start[v], before_start[v + 1]):
            u = before[k]
            head[v] = max(head[v], head[u] + duration[u] + lag[k])
            for w in range(words):
                mine[w] |= ancestors[u, w]
            mine[u >> 6] |= np.uint64(1) << np.uint64(u & 63)
        total[:] = 0
        for a in range(done - 1, -1, -1):
            u = by_head[a]
            if not (mine[u >> 6] >> np.uint64(u & 63)) & np.uint64(1):
                continue
            for r in range(resources):
                if work[u, r] > 0:
                    total[r] += work[u, r]
                    if total[r] > credit[r]:
                        head[v] = max(head[v], head[u] + (total[r] - credit[r] + units[r] - 1) // units[r])
        a = done
        while a > 0 and head[by_head[a - 1]] > head[v]:
            by_head[a] = by_head[a - 1]
            a -= 1
        by_head[a] = v
        done += 1
    return head
