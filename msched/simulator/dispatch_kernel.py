"""The three dispatch rules as compiled event loops: start time of every op of a plan.

Inside the kernels an op is its issue position, so that ties by issue order are ties by number. An op without units to
hold (no demand, or no duration: its interval is empty) waits in a queue of its own that never blocks.
"""

from __future__ import annotations

import numpy as np

from msched.arrays import Int64Array
from msched.compiled import compiled


@compiled
def positions(order: Int64Array) -> Int64Array:
    """Issue position of each op: shape (n,)."""
    position = np.empty(order.size, np.int64)
    for p in range(order.size):
        position[order[p]] = p
    return position


@compiled
def _crossings(
    position: Int64Array, stream: Int64Array, edges: Int64Array, delay: Int64Array, fences: Int64Array, sync: int
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """Orderings between streams as CSR by issue position of the earlier op; and how many each later op waits for."""
    n = position.size
    pending = np.zeros(n, np.int64)
    first = np.zeros(n + 1, np.int64)
    for k in range(edges.shape[0]):
        u, v = edges[k, 0], edges[k, 1]
        if stream[u] != stream[v]:
            first[position[u] + 1] += 1
            pending[position[v]] += 1
    for k in range(fences.shape[0]):
        u, v = fences[k, 0], fences[k, 1]
        if stream[u] != stream[v]:
            first[position[u] + 1] += 1
            pending[position[v]] += 1
    for p in range(n):
        first[p + 1] += first[p]
    fill = first[:-1].copy()
    target = np.empty(first[n], np.int64)
    lag = np.empty(first[n], np.int64)
    for k in range(edges.shape[0]):
        u, v = edges[k, 0], edges[k, 1]
        if stream[u] != stream[v]:
            at = fill[position[u]]
            target[at] = position[v]
            lag[at] = sync + delay[k]
            fill[position[u]] = at + 1
    for k in range(fences.shape[0]):
        u, v = fences[k, 0], fences[k, 1]
        if stream[u] != stream[v]:
            at = fill[position[u]]
            target[at] = position[v]
            lag[at] = sync
            fill[position[u]] = at + 1
    return first, target, lag, pending


@compiled
def _next_in_stream(order: Int64Array, stream: Int64Array, pending: Int64Array) -> Int64Array:
    """The op after each in its stream, -1 for none, by issue position; counts it in `pending`."""
    n = order.size
    following = np.full(n, -1, np.int64)
    last = np.full((stream.max() if n else 0) + 1, -1, np.int64)
    for p in range(n):
        s = stream[order[p]]
        if last[s] >= 0:
            following[last[s]] = p
            pending[p] += 1
        last[s] = p
    return following


@compiled
def _holdings(order: Int64Array, duration: Int64Array, demand: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Engines and units of each op as CSR by issue position; the engine beyond the last is the queue of free ops."""
    n, engines = demand.shape
    first = np.zeros(n + 1, np.int64)
    entries = 0
    for p in range(n):
        v = order[p]
        held = 0
        if duration[v] > 0:
            for e in range(engines):
                if demand[v, e] > 0:
                    held += 1
        entries += max(held, 1)
        first[p + 1] = entries
    engine = np.full(entries, engines, np.int64)
    units = np.zeros(entries, np.int64)
    for p in range(n):
        v = order[p]
        at = first[p]
        if duration[v] > 0:
            for e in range(engines):
                if demand[v, e] > 0:
                    engine[at] = e
                    units[at] = demand[v, e]
                    at += 1
    return first, engine, units


@compiled
def _push(time: Int64Array, item: Int64Array, size: int, key: int, value: int) -> int:
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        if time[parent] <= key:
            break
        time[at] = time[parent]
        item[at] = item[parent]
        at = parent
    time[at] = key
    item[at] = value
    return size + 1


@compiled
def _pop(time: Int64Array, item: Int64Array, size: int) -> int:
    """Drop the smallest entry, which the caller has read at index 0."""
    size -= 1
    key, value = time[size], item[size]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and time[child + 1] < time[child]:
            child += 1
        if time[child] >= key:
            break
        time[at] = time[child]
        item[at] = item[child]
        at = child
    time[at] = key
    item[at] = value
    return size


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
    position = positions(order)
    first, target, lag, pending = _crossings(position, stream, edges, delay, fences, sync)
    following = _next_in_stream(order, stream, pending)
    held, engine, units = _holdings(order, duration, demand)
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
                size[e] = _pop(times, items, size[e])
        end = now + duration[v]
        for k in range(held[p], held[p + 1]):
            e = engine[k]
            if e < engines:
                free[e] -= units[k]
                last_start[e] = now
                size[e] = _push(
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
    position = positions(order)
    first, target, lag, pending = _crossings(position, stream, edges, delay, fences, sync)
    following = _next_in_stream(order, stream, pending)
    held, engine, units = _holdings(order, duration, demand)
    queues = 1 if greedy else engines + 1
    head = np.full(queues, -1, np.int64)
    tail = np.full(queues, -1, np.int64)
    behind = np.empty(n if greedy else engine.size, np.int64)  # entries of the lists: next and previous
    ahead = np.empty(n if greedy else engine.size, np.int64)
    owner = np.empty(0 if greedy else engine.size, np.int64)
    if not greedy:
        for p in range(n):
            for k in range(held[p], held[p + 1]):
                owner[k] = p
    free = np.zeros(engines + 1, np.int64)
    free[:engines] = capacity
    arrival = np.zeros(n, np.int64)
    time = np.empty(n + 1, np.int64)
    item = np.empty(n + 1, np.int64)  # p for an arrival, n + p for a finish
    size = 0
    for p in range(n):
        arrival[p] = (p + 1) * host
        if pending[p] == 0:
            size = _push(time, item, size, arrival[p], p)
    start = np.empty(n, np.int64)
    due = np.empty(n + 1, np.int64)  # ops that arrive at this very instant
    while size > 0:
        now = time[0]
        while True:
            arrivals = 0
            while size > 0 and time[0] == now:
                event = item[0]
                size = _pop(time, item, size)
                if event < n:
                    due[arrivals] = event
                    arrivals += 1
                    continue
                p = event - n
                for k in range(held[p], held[p + 1]):
                    free[engine[k]] += units[k]
                for k in range(first[p], first[p + 1]):
                    q = target[k]
                    arrival[q] = max(arrival[q], now + lag[k])
                    pending[q] -= 1
                    if pending[q] == 0:
                        if arrival[q] <= now:
                            due[arrivals] = q
                            arrivals += 1
                        else:
                            size = _push(time, item, size, arrival[q], q)
                q = following[p]
                if q >= 0:
                    arrival[q] = max(arrival[q], now + gap)
                    pending[q] -= 1
                    if pending[q] == 0:
                        if arrival[q] <= now:
                            due[arrivals] = q
                            arrivals += 1
                        else:
                            size = _push(time, item, size, arrival[q], q)
            for a in range(arrivals):
                p = due[a]
                arrival[p] = now
                if greedy:
                    _enqueue_one(head, tail, ahead, behind, arrival, p)
                else:
                    for k in range(held[p], held[p + 1]):
                        _enqueue(head, tail, ahead, behind, owner, arrival, engine[k], k)
            chosen = -1
            if greedy:
                q = head[0]
                while q >= 0:
                    fits = True
                    for k in range(held[q], held[q + 1]):
                        if free[engine[k]] < units[k]:
                            fits = False
                            break
                    if fits:
                        chosen = q
                        break
                    q = behind[q]
            else:
                for e in range(engines + 1):
                    if head[e] < 0:
                        continue
                    q = owner[head[e]]
                    if chosen >= 0 and (
                        arrival[q] > arrival[chosen] or (arrival[q] == arrival[chosen] and q >= chosen)
                    ):
                        continue
                    fits = True
                    for k in range(held[q], held[q + 1]):
                        if free[engine[k]] < units[k] or head[engine[k]] != k:
                            fits = False
                            break
                    if fits:
                        chosen = q
            if chosen < 0:
                break
            if greedy:
                _unlink(head, tail, ahead, behind, 0, chosen)
            else:
                for k in range(held[chosen], held[chosen + 1]):
                    _unlink(head, tail, ahead, behind, engine[k], k)
            for k in range(held[chosen], held[chosen + 1]):
                free[engine[k]] -= units[k]
            v = order[chosen]
            start[v] = now
            size = _push(time, item, size, now + duration[v], n + chosen)
    return start


@compiled
def _enqueue_one(
    head: Int64Array, tail: Int64Array, ahead: Int64Array, behind: Int64Array, arrival: Int64Array, p: int
) -> None:
    """Put op p, which arrives now, into the single list: behind all but later-issued ops that arrived now as well."""
    after = tail[0]
    while after >= 0 and arrival[after] == arrival[p] and after > p:
        after = ahead[after]
    _link(head, tail, ahead, behind, 0, after, p)


@compiled
def _enqueue(
    head: Int64Array,
    tail: Int64Array,
    ahead: Int64Array,
    behind: Int64Array,
    owner: Int64Array,
    arrival: Int64Array,
    e: int,
    entry: int,
) -> None:
    """Put an entry into the list of engine e: behind all but later-issued ops that arrived at the same instant."""
    p = owner[entry]
    after = tail[e]
    while after >= 0 and arrival[owner[after]] == arrival[p] and owner[after] > p:
        after = ahead[after]
    _link(head, tail, ahead, behind, e, after, entry)


@compiled
def _link(
    head: Int64Array, tail: Int64Array, ahead: Int64Array, behind: Int64Array, e: int, after: int, entry: int
) -> None:
    follower = head[e] if after < 0 else behind[after]
    ahead[entry] = after
    behind[entry] = follower
    if after < 0:
        head[e] = entry
    else:
        behind[after] = entry
    if follower < 0:
        tail[e] = entry
    else:
        ahead[follower] = entry


@compiled
def _unlink(head: Int64Array, tail: Int64Array, ahead: Int64Array, behind: Int64Array, e: int, entry: int) -> None:
    before, follower = ahead[entry], behind[entry]
    if before < 0:
        head[e] = follower
    else:
        behind[before] = follower
    if follower < 0:
        tail[e] = before
    else:
        ahead[follower] = before
