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
