"""The three dispatch rules as compiled event loops: start time of every op of a plan.

Inside the kernels an op is its issue position, so that ties by issue order are ties by number. An op without units to
hold (no demand, or no duration: its interval is empty) waits in a queue of its own that never blocks.
"""

from __future__ import annotations

import numpy as np

from msched.arrays import Int64Array
from msched.compiled import compiled
from msched.simulator.links_kernel import Links, links_of
from msched.simulator.queues_kernel import enqueue, enqueue_op, pop, push, unlink


@compiled
def planned_starts(
    order: Int64Array,
    stream: Int64Array,
    duration: Int64Array,
    demand: Int64Array,
    capacity: Int64Array,
    edges: Int64Array,
    delay: Int64Array,
    fences: Int64Array,
    gap: int,
    sync: int,
    host: int,
) -> Int64Array:
    """Start of each op, shape (n,), when ops start on every engine in issue order.

    Since nothing later in the issue order can delay an op, one pass over the order suffices: on an engine whose ops
    start in order, units only come free after the last start, so the running ops stand in a heap by finish.
    """
    n, engines = demand.shape
    links = links_of(order, stream, duration, demand, edges, delay, fences, sync)
    first, target, lag, following, held = links.first, links.target, links.lag, links.following, links.held
    engine, units = links.engine, links.units
    room = np.zeros(engines + 1, np.int64)
    for k in range(engine.size):
        room[engine[k]] += 1
    base = np.zeros(engines + 1, np.int64)
    for e in range(engines):
        base[e + 1] = base[e] + room[e]
    finish_heap = np.empty(engine.size, np.int64)
    units_heap = np.empty(engine.size, np.int64)
    size = np.zeros(engines, np.int64)
    free = capacity.copy()
    last_start = np.zeros(engines, np.int64)
    arrival = np.zeros(n, np.int64)
    start = np.empty(n, np.int64)
    for p in range(n):
        v = order[p]
        now = max(arrival[p], (p + 1) * host)
        for k in range(held[p], held[p + 1]):
            if engine[k] < engines:
                now = max(now, last_start[engine[k]])
        for k in range(held[p], held[p + 1]):
            e = engine[k]
            if e == engines:
                continue
            times = finish_heap[base[e] : base[e + 1]]
            items = units_heap[base[e] : base[e + 1]]
            while size[e] > 0 and (free[e] < units[k] or times[0] <= now):
                now = max(now, times[0])
                free[e] += items[0]
                size[e] = pop(times, items, size[e])
        end = now + duration[v]
        for k in range(held[p], held[p + 1]):
            e = engine[k]
            if e < engines:
                free[e] -= units[k]
                last_start[e] = now
                size[e] = push(
                    finish_heap[base[e] : base[e + 1]], units_heap[base[e] : base[e + 1]], size[e], end, units[k]
                )
        start[v] = now
        for k in range(first[p], first[p + 1]):
            arrival[target[k]] = max(arrival[target[k]], end + lag[k])
        if following[p] >= 0:
            arrival[following[p]] = max(arrival[following[p]], end + gap)
    return start


@compiled
def queued_starts(
    order: Int64Array,
    stream: Int64Array,
    duration: Int64Array,
    demand: Int64Array,
    capacity: Int64Array,
    edges: Int64Array,
    delay: Int64Array,
    fences: Int64Array,
    gap: int,
    sync: int,
    host: int,
    greedy: bool,
) -> Int64Array:
    """Start of each op, shape (n,), first come first served: `arrival`, or `greedy` where whoever fits may start.

    Arrived ops stand, by (arrival, issue position), in one list an engine; under `greedy` in a single one.
    """
    n, engines = demand.shape
    links = links_of(order, stream, duration, demand, edges, delay, fences, sync)
    held, engine, units = links.held, links.engine, links.units
    head = np.full(1 if greedy else engines + 1, -1, np.int64)
    tail = head.copy()
    behind = np.empty(n if greedy else engine.size, np.int64)  # entries of the lists: next and previous
    ahead = np.empty(n if greedy else engine.size, np.int64)
    owner = np.empty(0, np.int64) if greedy else _owners(held)
    free = np.zeros(engines + 1, np.int64)
    free[:engines] = capacity
    arrival = np.zeros(n, np.int64)
    time, item = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)  # the heap: p arrives, n + p finishes
    size = _first_arrivals(links.pending, host, arrival, time, item)
    start = np.empty(n, np.int64)
    due = np.empty(n + 1, np.int64)  # ops that arrive at this very instant
    while size > 0:
        now = time[0]
        while True:
            arrivals = 0
            while size > 0 and time[0] == now:
                event = item[0]
                size = pop(time, item, size)
                if event < n:
                    due[arrivals] = event
                    arrivals += 1
                else:
                    size, arrivals = _finish(event - n, now, links, gap, free, arrival, time, item, size, due, arrivals)
            for a in range(arrivals):
                p = due[a]
                arrival[p] = now
                if greedy:
                    enqueue_op(head, tail, ahead, behind, arrival, p)
                else:
                    for k in range(held[p], held[p + 1]):
                        enqueue(head, tail, ahead, behind, owner, arrival, engine[k], k)
            if greedy:
                chosen = _first_that_fits(head, behind, links, free)
            else:
                chosen = -1  # here and not in a function, which costs a fifth of the speed
                for e in range(engines + 1):
                    if head[e] < 0:
                        continue
                    q = owner[head[e]]
                    if chosen >= 0 and (arrival[q], q) >= (arrival[chosen], chosen):
                        continue
                    for k in range(held[q], held[q + 1]):
                        if free[engine[k]] < units[k] or head[engine[k]] != k:
                            break
                    else:
                        chosen = q
            if chosen < 0:
                break
            if greedy:
                unlink(head, tail, ahead, behind, 0, chosen)
            for k in range(held[chosen], held[chosen + 1]):
                if not greedy:
                    unlink(head, tail, ahead, behind, engine[k], k)
                free[engine[k]] -= units[k]
            start[order[chosen]] = now
            size = push(time, item, size, now + duration[order[chosen]], n + chosen)
    return start


@compiled
def _owners(held: Int64Array) -> Int64Array:
    """The op of each entry of its holdings."""
    owner = np.empty(held[-1], np.int64)
    for p in range(held.size - 1):
        for k in range(held[p], held[p + 1]):
            owner[k] = p
    return owner


@compiled
def _first_arrivals(pending: Int64Array, host: int, arrival: Int64Array, time: Int64Array, item: Int64Array) -> int:
    """Put into the heap what waits for nothing but the host, which lets no op arrive before it is issued; its size."""
    size = 0
    for p in range(pending.size):
        arrival[p] = (p + 1) * host
        if pending[p] == 0:
            size = push(time, item, size, arrival[p], p)
    return size


@compiled
def _finish(
    p: int,
    now: int,
    links: Links,
    gap: int,
    free: Int64Array,
    arrival: Int64Array,
    time: Int64Array,
    item: Int64Array,
    size: int,
    due: Int64Array,
    arrivals: int,
) -> tuple[int, int]:
    """Free the units of op p, and let arrive, now or later, what waited for it alone; the sizes of heap and `due`."""
    for k in range(links.held[p], links.held[p + 1]):
        free[links.engine[k]] += links.units[k]
    last = links.first[p + 1]
    for k in range(links.first[p], last + 1):
        q = links.target[k] if k < last else links.following[p]
        if q < 0:
            continue
        arrival[q] = max(arrival[q], now + (links.lag[k] if k < last else gap))
        links.pending[q] -= 1
        if links.pending[q] > 0:
            continue
        if arrival[q] <= now:
            due[arrivals] = q
            arrivals += 1
        else:
            size = push(time, item, size, arrival[q], q)
    return size, arrivals


@compiled
def _first_that_fits(head: Int64Array, behind: Int64Array, links: Links, free: Int64Array) -> int:
    """The first op of the single list whose units are free, -1 for none."""
    q = int(head[0])
    while q >= 0:
        for k in range(links.held[q], links.held[q + 1]):
            if free[links.engine[k]] < links.units[k]:
                break
        else:
            return q
        q = int(behind[q])
    return -1
