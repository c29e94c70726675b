"""Compiled right-justification of a schedule: each op in turn moves to the latest start that nothing forbids."""

from __future__ import annotations

import numpy as np

from msched.arrays import Int64Array
from msched.compiled import compiled


@compiled
def _at(times: Int64Array, count: int, time: int) -> int:
    """Index of the last step at or before `time`; the first step lies before all times."""
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        if times[middle] <= time:
            low = middle
        else:
            high = middle
    return low


@compiled
def _cut(times: Int64Array, used: Int64Array, count: int, time: int) -> tuple[int, int]:
    """Begin a step at `time`: its index and the number of steps."""
    k = _at(times, count, time)
    if times[k] == time:
        return k, count
    for i in range(count, k + 1, -1):
        times[i] = times[i - 1]
        used[i] = used[i - 1]
    times[k + 1] = time
    used[k + 1] = used[k]
    return k + 1, count + 1


@compiled
def _join(times: Int64Array, used: Int64Array, count: int, k: int) -> int:
    """Drop step k where the one before it uses as much: the number of steps."""
    if k <= 0 or k >= count or used[k] != used[k - 1]:
        return count
    for i in range(k, count - 1):
        times[i] = times[i + 1]
        used[i] = used[i + 1]
    return count - 1


@compiled
def _take(times: Int64Array, used: Int64Array, count: int, begin: int, end: int, units: int) -> int:
    """Add units over [begin, end): the number of steps."""
    if begin >= end:
        return count
    first, count = _cut(times, used, count, begin)
    last, count = _cut(times, used, count, end)
    for k in range(first, last):
        used[k] += units
    count = _join(times, used, count, last)
    return _join(times, used, count, first)


@compiled
def latest_starts(
    start: Int64Array, duration: Int64Array, by_finish: Int64Array, deadline: int,
    after_start: Int64Array, after: Int64Array, lag: Int64Array,
    need_start: Int64Array, need: Int64Array, units: Int64Array, longer: Int64Array, capacity: Int64Array,
) -> Int64Array:  # fmt: skip
    """Start of each op once all ops of `by_finish` (falling) have moved right, those before it first: shape (n,).

    Every state on the way is a schedule (Valls, Ballestin and Quintanilla 2005, justification): the first k ops of
    `by_finish` at their new starts and the others at their old ones keep all constraints.

    after_start, after, lag: successors as CSR, with the time from finish to start. need_start, need, units, longer:
    the resources that an op holds, the units of each and how long after its end. capacity (R,).
    """
    resources = capacity.size
    held = np.zeros(resources, np.int64)
    for k in range(need.size):
        held[need[k]] += 1
    most = 2 * held.max() + 4 if resources else 4
    times = np.empty((resources, most), np.int64)
    used = np.zeros((resources, most), np.int64)
    count = np.ones(resources, np.int64)
    times[:, 0] = -(2**62)
    for v in by_finish[::-1]:
        for k in range(need_start[v], need_start[v + 1]):
            r = need[k]
            end = start[v] + duration[v] + longer[k]
            count[r] = _take(times[r], used[r], count[r], start[v], end, units[k])
    new = start.copy()
    for v in by_finish:
        latest = deadline
        for k in range(after_start[v], after_start[v + 1]):
            latest = min(latest, new[after[k]] - lag[k])
        if latest - duration[v] <= start[v]:
            continue
        for k in range(need_start[v], need_start[v + 1]):
            r = need[k]
            end = start[v] + duration[v] + longer[k]
            count[r] = _take(times[r], used[r], count[r], start[v], end, -units[k])
        end = latest
        moved = True
        while moved and end - duration[v] > start[v]:
            moved = False
            for k in range(need_start[v], need_start[v + 1]):
                r = need[k]
                if duration[v] + longer[k] == 0:
                    continue
                at = _at(times[r], count[r], end - duration[v])
                while at < count[r] and times[r, at] < end + longer[k]:
                    if used[r, at] + units[k] > capacity[r]:
                        end = times[r, at] - longer[k]
                        moved = True
                        break
                    at += 1
                if moved:
                    break
        new[v] = max(start[v], end - duration[v])
        for k in range(need_start[v], need_start[v + 1]):
            r = need[k]
            end = new[v] + duration[v] + longer[k]
            count[r] = _take(times[r], used[r], count[r], new[v], end, units[k])
    return new
