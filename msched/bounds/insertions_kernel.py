"""Compiled dynamic programme over a chain and the number of other ops that have run beside it."""

from __future__ import annotations

import numpy as np

from msched.arrays import Int64Array
from msched.compiled import compiled

_NEVER = np.iinfo(np.int64).max


@compiled
def last_stops(
    order: Int64Array, number: Int64Array, duration: Int64Array, after_start: Int64Array, after: Int64Array,
    after_lag: Int64Array,
) -> tuple[Int64Array, Int64Array]:  # fmt: skip
    """Of each op the largest number among its ancestors, -1 for none, and the longest path from there: shapes (n,).

    number (n,): of the ops that are stops of a path, rising along it; else -1. Paths run from the finish of the stop to
    the start of the op.
    """
    stop, away = np.full(order.size, -1, np.int64), np.zeros(order.size, np.int64)
    for u in order:
        own, end = number[u], 0
        if own < 0:
            own, end = stop[u], away[u] + duration[u]
        for k in range(after_start[u], after_start[u + 1]):
            v = after[k]
            if own > stop[v]:
                stop[v], away[v] = own, end + after_lag[k]
            elif own == stop[v] and own >= 0:
                away[v] = max(away[v], end + after_lag[k])
    return stop, away


@compiled
def earliest_end(
    head: Int64Array, duration: Int64Array, tail: Int64Array, gap: Int64Array, length: Int64Array,
    released: Int64Array, due: Int64Array, delay: Int64Array, others_tail: Int64Array,
) -> int:  # fmt: skip
    """The least end of a chain of stops (c,) and of the ops of each kind (k,) that run between them.

    gap (c,): from the finish of the stop before to the start of each, at least. length (k,): duration of a kind.
    released, due (c + 1, k): how many may, and must, have run before stop i starts (the last row: behind all stops).
    delay (c + 1, k): from the finish of the stop before, or from the start of all, to the first of those that become
    free there. others_tail (k,): what follows each op of a kind at least.
    """
    stops, kinds = duration.size, length.size
    most = released[stops]
    stride = np.ones(kinds + 1, np.int64)
    for k in range(kinds):
        stride[k + 1] = stride[k] * (most[k] + 1)
    states = stride[kinds]
    count = np.zeros((states, kinds), np.int64)
    work = np.zeros(states, np.int64)
    for s in range(states):
        for k in range(kinds):
            count[s, k] = s // stride[k] % (most[k] + 1)
            work[s] += count[s, k] * length[k]
    end = np.full(states, _NEVER)  # of the stop before, by what has run before it
    end[0] = 0
    start = np.full(states, _NEVER)
    early = np.zeros(kinds, np.int64)
    for i in range(stops):
        start[:] = _NEVER
        for k in range(kinds):
            early[k] = released[i - 1, k] if i else 0
        for s in range(states):
            if end[s] == _NEVER:
                continue
            for t in range(s, states):
                wait = _begin(count, s, t, early, released[i], due[i], delay[i])
                if wait >= 0:
                    at = max(head[i], end[s] + gap[i], end[s] + wait + work[t] - work[s])
                    start[t] = min(start[t], at)
        for s in range(states):
            end[s] = start[s] + duration[i] if start[s] < _NEVER else _NEVER
    best = _NEVER
    for k in range(kinds):
        early[k] = released[stops - 1, k]
    for s in range(states):
        if end[s] < _NEVER:
            last = end[s] + tail[stops - 1]
            if s < states - 1:
                wait = _begin(count, s, states - 1, early, released[stops], due[stops], delay[stops])
                least = _NEVER
                for k in range(kinds):
                    if count[s, k] < most[k]:
                        least = min(least, others_tail[k])
                last = max(last, end[s] + wait + work[states - 1] - work[s] + least)
            best = min(best, last)
    return best


@compiled
def _begin(
    count: Int64Array, s: int, t: int, early: Int64Array, released: Int64Array, due: Int64Array, delay: Int64Array
) -> int:
    """Time from the stop before to the first op that runs when state s becomes t; -1 where that cannot be."""
    least = _NEVER
    for k in range(released.size):
        if count[t, k] < count[s, k] or count[t, k] > released[k] or count[t, k] < due[k]:
            return -1
        if count[t, k] > count[s, k]:
            least = min(least, 0 if count[s, k] < early[k] else delay[k])
    return 0 if least == _NEVER else least
