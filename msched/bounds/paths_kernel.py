"""Compiled longest paths."""

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
