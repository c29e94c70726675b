"""Iterative modulo scheduling on several cumulative resources, compiled."""

from __future__ import annotations

import numpy as np

from msched.arrays import BoolArray, Int64Array
from msched.compiled import compiled

_FAR = 2**61


@compiled
def heights(duration: Int64Array, edges: Int64Array, lag: Int64Array, period: int) -> Int64Array:
    """Longest path from the start of each op through the dependencies, each block later shorter by a period: (q,).

    Empty where a cycle is longer than its blocks allow: then no schedule has this period.
    """
    height = duration.copy()
    for _ in range(duration.size + 1):
        settled = True
        for k in range(len(edges)):
            u, v, distance = edges[k]
            reached = duration[u] + lag[k] - distance * period + height[v]
            if reached > height[u]:
                height[u] = reached
                settled = False
        if settled:
            return height
    return np.empty(0, np.int64)


@compiled
def _fits(
    p: int, at: int, period: int, held: Int64Array, need: Int64Array, room: Int64Array, start: Int64Array, on: BoolArray
) -> bool:
    """Whether op p may start at `at` beside the ops that are `on`: looked at where an interval of theirs begins."""
    size, resources = need.shape
    for r in range(resources):
        length = held[p, r]
        if need[p, r] == 0 or length == 0:
            continue
        if length > period:
            return False
        for a in range(-1, size):
            if a < 0:
                instant = 0
            elif on[a] and need[a, r] > 0 and held[a, r] > 0:
                instant = (start[a] - at) % period
                if instant >= length:
                    continue
            else:
                continue
            used = need[p, r]
            for b in range(size):
                if on[b] and need[b, r] > 0 and (at + instant - start[b]) % period < held[b, r]:
                    used += need[b, r]
            if used > room[r]:
                return False
    return True


@compiled
def _conflict(
    p: int, q: int, period: int, held: Int64Array, need: Int64Array, room: Int64Array, start: Int64Array
) -> bool:
    """Whether two placed ops overlap on a resource that both use."""
    for r in range(room.size):
        if need[p, r] == 0 or need[q, r] == 0 or held[p, r] == 0 or held[q, r] == 0:
            continue
        if (start[q] - start[p]) % period < held[p, r] or (start[p] - start[q]) % period < held[q, r]:
            return True
    return False


@compiled
def iterative_modulo(
    duration: Int64Array, held: Int64Array, need: Int64Array, room: Int64Array, edges: Int64Array, lag: Int64Array,
    period: int, trials: int,
) -> Int64Array:  # fmt: skip
    """Start (q,) of each op of a block that repeats every `period` ns, or nothing where none was found in so many
    placements (Rau 1994, iterative modulo scheduling).

    held, need (q, R): ns and units of each op on each resource. room (R,). edges (r, 3), lag (r,): see `Repetition`.
    """
    size, links = duration.size, len(edges)
    height = heights(duration, edges, lag, period)
    nothing = np.empty(0, np.int64)
    if height.size < size:
        return nothing
    start = np.zeros(size, np.int64)
    last = np.full(size, -_FAR)
    on = np.zeros(size, np.bool_)
    candidates = np.empty(size * room.size + 1, np.int64)
    for _ in range(trials):
        p = -1
        for v in range(size):
            if not on[v] and (p < 0 or height[v] > height[p]):
                p = v
        if p < 0:
            return start
        earliest = 0
        for k in range(links):
            u, v, distance = edges[k]
            if v == p and on[u]:
                earliest = max(earliest, start[u] + duration[u] + lag[k] - distance * period)
        count = 1
        candidates[0] = earliest
        for b in range(size):
            if on[b]:
                for r in range(room.size):
                    if need[p, r] > 0 and need[b, r] > 0:
                        candidates[count] = earliest + (start[b] + held[b, r] - earliest) % period
                        count += 1
        chosen = -_FAR
        for at in np.sort(candidates[:count]):
            if _fits(p, at, period, held, need, room, start, on):
                chosen = at
                break
        forced = chosen == -_FAR
        start[p] = max(earliest, last[p] + 1) if forced else chosen
        last[p] = start[p]
        if forced:
            for b in range(size):
                if on[b] and _conflict(p, b, period, held, need, room, start):
                    on[b] = False
                    if _fits(p, start[p], period, held, need, room, start, on):
                        break
        on[p] = True
        for k in range(links):
            u, v, distance = edges[k]
            if u == p and v != p and on[v] and start[v] + distance * period < start[p] + duration[p] + lag[k]:
                on[v] = False
    return nothing
