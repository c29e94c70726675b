"""Vector clocks over streams: which cross-stream orderings need an event."""

from __future__ import annotations

import numpy as np

from msched.arrays import BoolArray, Int64Array, compressed_rows
from msched.compiled import compiled

_CLOCK_ENTRIES = 2**25  # 256 MiB of clocks at a time; streams beyond that are taken in blocks


def minimal_waits(order: Int64Array, stream: Int64Array, rows: Int64Array) -> Int64Array:
    """Cross-stream edges of the transitive reduction of `rows` and the order inside each stream: shape (w, 2).

    order (n,): ops in issue order. stream (n,). rows (m, 2): (before, after), each in issue order, repeats allowed.
    """
    n = order.size
    position = np.empty(n, np.int64)
    position[order] = np.arange(n)
    crossing = rows[stream[rows[:, 0]] != stream[rows[:, 1]]]
    # Everything is renumbered by issue position: op p is issued p-th, so that edges go from low to high.
    before, after = position[crossing[:, 0]], position[crossing[:, 1]]
    entry = np.lexsort((-before, after))  # predecessors of each op, latest issued first
    start, _ = compressed_rows(after, n)
    before = np.ascontiguousarray(before[entry])
    lane = stream[order]
    lanes = int(lane.max(initial=-1)) + 1
    kept = np.zeros(before.size, np.bool_)
    block = max(1, min(lanes, _CLOCK_ENTRIES // max(n, 1)))
    for first in range(0, lanes, block):
        _mark(lane, start, before, first, min(first + block, lanes), kept)
    after = np.repeat(np.arange(n), np.diff(start))
    return np.stack([order[before[kept]], order[after[kept]]], axis=1)


@compiled
def _mark(lane: Int64Array, start: Int64Array, before: Int64Array, first: int, last: int, kept: BoolArray) -> None:
    """Set `kept` for the minimal waits whose producer is on streams first..last-1.

    clock[p, s] is the latest position on stream s that happens before p or is p. Taken latest first, a predecessor can
    be implied only by predecessors that were merged already, so one pass suffices; a column never looks at another.
    """
    n = lane.size
    width = last - first
    clock = np.full((n, width), -1, np.int32)
    tail = np.full(lane.max() + 1 if n else 0, -1, np.int64)
    for p in range(n):
        mine = clock[p]
        s = lane[p]
        if tail[s] >= 0:
            mine[:] = clock[tail[s]]
        tail[s] = p
        for k in range(start[p], start[p + 1]):
            u = before[k]
            column = lane[u] - first
            if 0 <= column < width:
                if mine[column] >= u:
                    continue  # implied, and so is all that happens before it
                kept[k] = True
            theirs = clock[u]
            for c in range(width):
                if theirs[c] > mine[c]:
                    mine[c] = theirs[c]
        if first <= s < last:
            mine[s - first] = p
