"""Compiled heads of ops that share a capacity, for a fixed makespan: time-table and energetic reasoning."""

from __future__ import annotations

import numpy as np

from msched.arrays import Int64Array
from msched.compiled import compiled


@compiled
def timetable_heads(
    head: Int64Array, tail: Int64Array, duration: Int64Array, demand: Int64Array, capacity: int, makespan: int
) -> bool:
    """Raise `head` (k,) in place over times that are taken for certain; False where the capacity is exceeded.

    An op surely runs from its latest start to its earliest finish (Lahrichi 1982; Le Pape 1988, time-tables).
    """
    k = head.size
    latest = makespan - tail - duration
    point, change, count = np.empty(2 * k, np.int64), np.empty(2 * k, np.int64), 0
    for v in range(k):
        if latest[v] < head[v]:
            return False
        if latest[v] < head[v] + duration[v]:
            point[count], change[count] = latest[v], demand[v]
            point[count + 1], change[count + 1] = head[v] + duration[v], -demand[v]
            count += 2
    if count == 0:
        return True
    by_point = np.argsort(point[:count], kind="mergesort")
    time, level, steps = np.empty(count, np.int64), np.empty(count, np.int64), 0
    used = 0
    for i in by_point:
        used += change[i]
        if steps and time[steps - 1] == point[i]:
            level[steps - 1] = used
        else:
            time[steps], level[steps] = point[i], used
            steps += 1
    for i in range(steps):
        if level[i] > capacity:
            return False
    time, level = time[:steps], level[:steps]
    for v in range(k):
        certain = head[v] + duration[v] if latest[v] < head[v] + duration[v] else latest[v]
        start = head[v]
        for i in range(max(0, np.searchsorted(time, start, side="right") - 1), steps - 1):
            if time[i] >= start + duration[v]:
                break
            own = demand[v] if latest[v] <= time[i] < certain else 0
            if time[i + 1] > start and level[i] - own + demand[v] > capacity:
                start = time[i + 1]
        if start > latest[v]:
            return False
        head[v] = start
    return True


@compiled
def energetic_heads(
    head: Int64Array, tail: Int64Array, duration: Int64Array, demand: Int64Array, capacity: int, makespan: int,
    begins: Int64Array, ends: Int64Array,
) -> bool:  # fmt: skip
    """Raise `head` (k,) in place by the energy that windows [begin, end) must hold; False where one holds too little.

    Baptiste, Le Pape and Nuijten 1999, sections 3.3 and 4: what an op must spend in a window is the least of what it
    spends when it starts as early, or as late, as it can; an op that spends more there than the others leave, when it
    starts as early as it can, must start so late that it fits. begins, ends: rising.
    """
    k = head.size
    raised = head.copy()
    latest = makespan - tail - duration
    early = np.empty(k, np.int64)
    for begin in begins:
        for v in range(k):
            early[v] = max(0, min(duration[v], head[v] + duration[v] - begin))
        for end in ends:
            if end <= begin:
                continue
            length, energy, most = end - begin, 0, 0
            for v in range(k):
                if early[v] > 0 and latest[v] < end:
                    spent = min(min(early[v], end - max(begin, latest[v])), length)
                    energy += demand[v] * spent
                    if head[v] < end:
                        most = max(most, demand[v] * (min(early[v], end - max(begin, head[v])) - spent))
                elif early[v] > 0 and head[v] < end:
                    most = max(most, demand[v] * min(early[v], end - max(begin, head[v])))
            left = capacity * length - energy
            if left < 0:
                return False
            if most <= left:
                continue
            for v in range(k):
                if early[v] <= 0 or head[v] >= end:
                    continue
                first = min(early[v], end - max(begin, head[v]))
                spent = max(0, min(min(early[v], end - max(begin, latest[v])), length))
                if demand[v] * (first - spent) > left:
                    raised[v] = max(raised[v], end - (left + demand[v] * spent) // demand[v])
    for v in range(k):
        if raised[v] > latest[v]:
            return False
        head[v] = raised[v]
    return True
