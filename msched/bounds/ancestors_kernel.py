"""Compiled heads by the load of ancestors: ops by rising head, ancestors as bit sets over that order.

The ops are taken as by Dijkstra: of those whose predecessors are done, the one with the least head is next. Heads never
fall along a dependency, so that this is the order of heads, and an op's rank in it is its place in the bit sets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from msched.arrays import BoolArray, Int64Array
from msched.bounds.windows_kernel import EMPTY, insert, leaves
from msched.compiled import compiled

Bits = NDArray[np.uint64]
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
ONE = np.uint64(1)
_WORDS = 2**24  # of bit sets in all: 128 MiB; what no longer fits is left out, which weakens the heads


class Graph(NamedTuple):
    """Durations (n,), successors and predecessors as CSR with the lags of both, work of ops as CSR over loads.

    item_load, item_work: load and work, of op v from item_start[v] on. units, gap: of each load, shapes (R,).
    """

    duration: Int64Array
    after_start: Int64Array
    after: Int64Array
    after_lag: Int64Array
    before_start: Int64Array
    before: Int64Array
    before_lag: Int64Array
    item_start: Int64Array
    item_load: Int64Array
    item_work: Int64Array
    units: Int64Array
    gap: Int64Array


@compiled
def loaded_heads(graph: Graph, astray: BoolArray, floor: int, host: int, recent: int) -> Int64Array:
    """Earliest start of each op by precedence and by the load of its ancestors, shape (n,).

    astray (n,): ops that are left out of the bit sets, because what they lead to ends soon: words in which all ops are
        ancestors are handled as one, and these would keep nearly all words from that.
    floor: least head. host: time to issue an op, paid by all ancestors before it. recent: number of ancestors, those
    with the largest heads, that are sequenced with their paths to the op as tails.
    """
    n, loads = graph.duration.size, graph.units.size
    words = n // 64 + 2
    head, by_rank = np.full(n, floor, np.int64), np.empty(n, np.int64)
    place, by_place = np.full(n, -1, np.int64), np.empty(n, np.int64)  # ranks in the bit sets
    arena = np.empty(min(_WORDS, 64 + 4 * n), np.uint64)
    used = 0
    first, low, high = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)  # a set's words
    # Of each word of ranks, and of all ranks below it: work, and the best of head x units + work behind that head.
    inside, inside_reach = np.zeros((words, loads), np.int64), np.full((words, loads), EMPTY, np.int64)
    below_reach = np.full((words, loads), EMPTY, np.int64)
    seen, path = np.full(n, -1, np.int64), np.empty(n, np.int64)
    pending = graph.before_start[1:] - graph.before_start[:-1]
    key, item = np.empty(n, np.int64), np.empty(n, np.int64)
    size, done, placed = 0, 0, 0
    for v in range(n):
        if pending[v] == 0:
            size = _push(key, item, size, head[v], v)
    while size:
        u = item[0]
        size = _pop(key, item, size)
        by_rank[done] = u
        done += 1
        if not astray[u]:
            place[u], by_place[placed] = placed, u
            _summarise(graph, u, head[u], placed >> 6, inside, inside_reach)
            placed += 1
            if placed & 63 == 0:
                w = placed >> 6
                for r in range(loads):
                    below_reach[w, r] = max(inside_reach[w - 1, r], below_reach[w - 1, r] + inside[w - 1, r])
        for k in range(graph.after_start[u], graph.after_start[u + 1]):
            v = graph.after[k]
            head[v] = max(head[v], head[u] + graph.duration[u] + graph.after_lag[k])
            pending[v] -= 1
            if pending[v]:
                continue
            need = _words_needed(graph, v, place, low, high)
            if used + need > arena.size and arena.size < _WORDS:
                larger = np.empty(min(_WORDS, 2 * arena.size + need), np.uint64)
                larger[:used] = arena[:used]
                arena = larger
            if used + need <= arena.size:
                first[v] = used
                used += _unite(graph, v, place, arena, first, low, high)
            else:
                low[v] = high[v] = _lowest(graph, v, low)
            mine = arena[first[v] : first[v] + high[v] - low[v]]
            if host:
                head[v] = max(head[v], host * (1 + _count(mine, low[v])))
            if graph.before_start[v + 1] - graph.before_start[v] > 1:  # behind a single op, loads add nothing to paths
                head[v] = _by_load(graph, head, v, by_place, mine, low[v], inside, inside_reach, below_reach)
                if recent:
                    head[v] = _by_sequence(graph, head, v, done, by_rank, seen, path, recent)
            size = _push(key, item, size, head[v], v)
    return head


@compiled
def _summarise(graph: Graph, u: int, head: int, w: int, inside: Int64Array, reach: Int64Array) -> None:
    for r in range(graph.units.size):
        reach[w, r] = max(reach[w, r], head * graph.units[r])
    for k in range(graph.item_start[u], graph.item_start[u + 1]):
        inside[w, graph.item_load[k]] += graph.item_work[k]
        reach[w, graph.item_load[k]] += graph.item_work[k]


@compiled
def _lowest(graph: Graph, v: int, low: Int64Array) -> int:
    """Words of ranks, from the first on, that are ancestors of v altogether."""
    result = 0
    for k in range(graph.before_start[v], graph.before_start[v + 1]):
        result = max(result, low[graph.before[k]])
    return result


@compiled
def _words_needed(graph: Graph, v: int, place: Int64Array, low: Int64Array, high: Int64Array) -> int:
    top = 0
    for k in range(graph.before_start[v], graph.before_start[v + 1]):
        u = graph.before[k]
        top = max(top, max(high[u], (place[u] >> 6) + 1))
    return max(0, top - _lowest(graph, v, low))


@compiled
def _unite(
    graph: Graph, v: int, place: Int64Array, arena: Bits, first: Int64Array, low: Int64Array, high: Int64Array
) -> int:
    """Write the ancestors of v behind each other; gives the number of words written."""
    bottom = _lowest(graph, v, low)
    need = _words_needed(graph, v, place, low, high)
    base = first[v]
    arena[base : base + need] = 0
    for k in range(graph.before_start[v], graph.before_start[v + 1]):
        u = graph.before[k]
        for w in range(max(bottom, low[u]), high[u]):
            arena[base + w - bottom] |= arena[first[u] + w - low[u]]
        if place[u] >= 64 * bottom:
            arena[base + (place[u] >> 6) - bottom] |= ONE << np.uint64(place[u] & 63)
    full = 0
    while full < need and arena[base + full] == ALL:
        full += 1
    for w in range(full, need):
        arena[base + w - full] = arena[base + w]
    low[v], high[v] = bottom + full, bottom + need
    return need - full


@compiled
def _count(mine: Bits, low: int) -> int:
    count = 64 * low
    for word in mine:
        while word:
            word &= word - ONE
            count += 1
    return count


@compiled
def _by_load(
    graph: Graph, head: Int64Array, v: int, by_place: Int64Array, mine: Bits, low: int,
    inside: Int64Array, inside_reach: Int64Array, below_reach: Int64Array,
) -> int:  # fmt: skip
    """Head of v by all its ancestors: those that cannot start before h all run between h and v's start, for every h."""
    units, loads = graph.units, graph.units.size
    start: int = head[v]
    total = np.zeros(loads, np.int64)
    active, alive = np.zeros(loads, np.bool_), 0
    for r in range(loads):
        active[r] = True
        alive += 1
    for i in range(mine.size - 1, -1, -1):
        w, word = low + i, mine[i]
        if word == 0:
            continue
        if word == ALL:
            for r in range(loads):
                if active[r]:
                    spent = total[r] + inside_reach[w, r] - graph.gap[r] * units[r]
                    start = max(start, (spent + units[r] - 1) // units[r])
                    total[r] += inside[w, r]
        else:
            for bit in range(63, -1, -1):
                if not (word >> np.uint64(bit)) & ONE:
                    continue
                u = by_place[64 * w + bit]
                for k in range(graph.item_start[u], graph.item_start[u + 1]):
                    r = graph.item_load[k]
                    total[r] += graph.item_work[k]
                    spent = total[r] - graph.gap[r] * units[r]
                    if spent > 0:
                        start = max(start, head[u] + (spent + units[r] - 1) // units[r])
        for r in range(loads):  # no more than if all ops of lower rank were ancestors
            if active[r] and total[r] + below_reach[w, r] - graph.gap[r] * units[r] <= start * units[r]:
                active[r] = False
                alive -= 1
        if alive == 0:
            return start
    for r in range(loads):
        if active[r] and low > 0:
            spent = total[r] + below_reach[low, r] - graph.gap[r] * units[r]
            start = max(start, (spent + units[r] - 1) // units[r])
    return start


@compiled
def _by_sequence(
    graph: Graph, head: Int64Array, v: int, done: int, by_rank: Int64Array, seen: Int64Array, path: Int64Array,
    recent: int,
) -> int:  # fmt: skip
    """Head of v by its last ancestors, each load a machine on which they are preempted, with their paths to v as tails.

    seen: v for what is known to be an ancestor of it; path (n,): least time from its finish to v's start.
    """
    chosen, count = np.empty(recent, np.int64), 0
    for k in range(graph.before_start[v], graph.before_start[v + 1]):
        seen[graph.before[k]], path[graph.before[k]] = v, graph.before_lag[k]
    for a in range(done - 1, max(-1, done - 1 - 4 * recent), -1):
        u = by_rank[a]
        if seen[u] != v:
            continue
        chosen[count] = u
        count += 1
        if count == recent:
            break
        behind = path[u] + graph.duration[u]
        for k in range(graph.before_start[u], graph.before_start[u + 1]):
            b = graph.before[k]
            path[b] = behind + graph.before_lag[k] if seen[b] != v else max(path[b], behind + graph.before_lag[k])
            seen[b] = v
    size = leaves(count)
    total, reach = np.empty(2 * size, np.int64), np.empty(2 * size, np.int64)
    tails = np.empty(count, np.int64)
    for i in range(count):
        tails[i] = -path[chosen[i]]
    by_tail = np.argsort(tails, kind="mergesort")
    start: int = head[v]
    for r in range(graph.units.size):
        units, gap = graph.units[r], graph.gap[r]
        total[:], reach[:] = 0, EMPTY
        for i in by_tail:
            u = chosen[i]
            for k in range(graph.item_start[u], graph.item_start[u + 1]):
                if graph.item_load[k] == r:
                    insert(total, reach, count - 1 - i, head[u] * units, graph.item_work[k])
                    start = max(start, (reach[1] + units - 1) // units + path[u] - gap)
    return start


@compiled
def _push(key: Int64Array, item: Int64Array, size: int, time: int, v: int) -> int:
    at = size
    while at and (key[(at - 1) // 2] > time or (key[(at - 1) // 2] == time and item[(at - 1) // 2] > v)):
        key[at], item[at] = key[(at - 1) // 2], item[(at - 1) // 2]
        at = (at - 1) // 2
    key[at], item[at] = time, v
    return size + 1


@compiled
def _pop(key: Int64Array, item: Int64Array, size: int) -> int:
    size -= 1
    time, v = key[size], item[size]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and (key[child + 1], item[child + 1]) < (key[child], item[child]):
            child += 1
        if (key[child], item[child]) >= (time, v):
            break
        key[at], item[at] = key[child], item[child]
        at = child
    if size:
        key[at], item[at] = time, v
    return size
