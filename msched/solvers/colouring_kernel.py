"""Streams for ops whose start times are known, compiled."""

from __future__ import annotations

import numpy as np

from msched.arrays import Int64Array
from msched.compiled import compiled


@compiled
def coloured(
    order: Int64Array, start: Int64Array, released: Int64Array,
    before_start: Int64Array, before: Int64Array,
    pool: Int64Array, first: Int64Array, most: int,
) -> Int64Array:  # fmt: skip
    """Streams for intervals, from `start` to `released` (n,), of which never more overlap than their pool has streams.

    Greedy by start, which is optimal on interval graphs. Of the free streams an op takes one on which a predecessor is
    last, else the one that has been idle the longest; streams with `most` ops only where no other is left.
    order (n,): by start. pool (n,) of each op, first (P + 1,): its streams.
    """
    stream = np.full(order.size, -1)
    last = np.full(first[-1], -1)  # op of each stream
    ops = np.zeros(first[-1], np.int64)
    for v in order:
        best = -1
        for k in range(before_start[v], before_start[v + 1]):
            u = before[k]
            s = stream[u]
            if pool[u] == pool[v] and last[s] == u and released[u] <= start[v] and ops[s] < most:
                best = s
                break
        if best < 0:
            full = -1
            for s in range(first[pool[v]], first[pool[v] + 1]):
                if last[s] < 0:
                    if best < 0:
                        best = s
                    break
                if released[last[s]] > start[v]:
                    continue
                if ops[s] >= most:
                    if full < 0 or ops[s] < ops[full]:
                        full = s
                elif best < 0 or released[last[s]] < released[last[best]]:
                    best = s
            if best < 0:
                best = full
        stream[v] = best
        last[best] = v
        ops[best] += 1
    return stream
