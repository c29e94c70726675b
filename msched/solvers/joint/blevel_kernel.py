"""Event-driven list scheduling on streams and engines, compiled.

Ops that differ neither in pool, communicator nor demand are of one kind: either all of them fit at an instant or none
does, so only the first of each kind has to be looked at. Ops are numbered by decreasing priority.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from msched.arrays import Int64Array
from msched.compiled import compiled
from msched.solvers.joint.list_kernel import reach

_FINISH, _NEAR, _ANYWHERE, _WAKE = 0, 1, 2, 3  # units come free; inputs reach one stream, all; a resource is free


@compiled
def _meld(left: Int64Array, right: Int64Array, n: int, a: int, b: int) -> int:
    """Join two skew heaps (Sleator and Tarjan 1986) of nodes that stand for op `node % n`; -1 is the empty one."""
    if a < 0 or b < 0:
        return int(max(a, b))
    if b % n < a % n:
        a, b = b, a
    top = a
    while True:
        rest = right[a]
        right[a] = left[a]
        if rest < 0:
            left[a] = b
            return top
        if b % n < rest % n:
            rest, b = b, rest
        left[a] = rest
        a = rest


@compiled
def _first_of(
    q: int,
    s: int,
    head: Int64Array,
    left: Int64Array,
    right: Int64Array,
    start: Int64Array,
    label: Int64Array,
    home: Int64Array,
    kind: Int64Array,
    queued: Int64Array,
    width: int,
) -> int:
    """The first op of queue q that may go on stream s (any, for -1), n for none; what may not leaves the queue."""
    n = start.size
    while head[q] >= 0:
        node = head[q]
        v = int(node % n)
        bound = home[label[v]] if label[v] >= 0 else -1
        if start[v] < 0 and (bound < 0 or bound == s):
            return v
        head[q] = _meld(left, right, n, left[node], right[node])
        queued[kind[v]] -= 1
        if start[v] < 0 and s < 0:  # its label has chosen a stream since: it waits there from now on
            own = kind[v] * width + bound
            head[own] = _meld(left, right, n, head[own], 2 * n + v)
            queued[kind[v]] += 1
    return n


@compiled
def schedule(
    duration: Int64Array,
    kind: Int64Array,
    demand: Int64Array,
    pool: Int64Array,
    communicator: Int64Array,
    label: Int64Array,
    capacity: Int64Array,
    first: Int64Array,
    before_start: Int64Array,
    before: Int64Array,
    lag: Int64Array,
    after_start: Int64Array,
    after: Int64Array,
    gap: int,
    sync: int,
) -> tuple[Int64Array, Int64Array]:
    """Start (n,) in ns and stream (n,) of each op. demand (K, E), pool (K,), communicator (K,): of each kind of op."""
    n, (kinds, engines) = duration.size, demand.shape
    width = first[-1] + 1  # for each kind a queue a stream, and the last for ops that may go on any
    head = np.full(kinds * width, -1)
    queued = np.zeros(kinds, np.int64)  # entries of the queues of each kind
    left = np.full(3 * n, -1)
    right = np.full(3 * n, -1)
    start = np.full(n, -1)
    finish = np.zeros(n, np.int64)
    stream = np.full(n, -1)
    free = capacity.copy()
    free_from = np.zeros(width, np.int64)  # of each stream
    quiet_from = np.zeros(communicator.max() + 1 if kinds else 0, np.int64)  # of each communicator
    home = np.full(label.max() + 1 if n else 0, -1)  # the stream of each label
    until = np.minimum(first[:-1] + 1, first[1:])  # streams of a pool beyond the first unused one are like that one
    everywhere = np.zeros(n, np.int64)
    near = np.full(n, -1)
    pending = before_start[1:] - before_start[:-1]
    events = [(0, _ANYWHERE * n + v) for v in range(n) if pending[v] == 0]
    now = 0
    while True:
        while len(events) > 0 and events[0][0] <= now:
            what, v = divmod(heappop(events)[1], n)
            if what == _FINISH:
                for e in range(engines):
                    free[e] += demand[kind[v], e]
            elif what == _NEAR:
                q = kind[v] * width + near[v]
                head[q] = _meld(left, right, n, head[q], v)
                queued[kind[v]] += 1
            elif what == _ANYWHERE:
                q = (kind[v] + 1) * width - 1
                head[q] = _meld(left, right, n, head[q], n + v)
                queued[kind[v]] += 1
        v = n
        for c in range(kinds):
            if queued[c] == 0:
                continue
            fits = communicator[c] < 0 or quiet_from[communicator[c]] <= now
            for e in range(engines):
                fits &= demand[c, e] <= free[e]
            low, high = first[pool[c]], until[pool[c]]
            if not fits or free_from[low:high].min() > now:
                continue
            q = (c + 1) * width - 1
            v = min(v, _first_of(q, -1, head, left, right, start, label, home, kind, queued, width))
            for s in range(low, high):
                if free_from[s] <= now and head[c * width + s] >= 0:
                    v = min(v, _first_of(c * width + s, s, head, left, right, start, label, home, kind, queued, width))
        if v == n:
            if len(events) == 0:
                return start, stream
            now = events[0][0]
            continue

        c = kind[v]
        low, high = first[pool[c]], until[pool[c]]
        s = high
        if label[v] >= 0 and home[label[v]] >= 0:
            s = home[label[v]]
        elif everywhere[v] > now:
            s = near[v]
        else:
            for k in range(before_start[v], before_start[v + 1]):
                candidate = stream[before[k]]
                if low <= candidate < high and free_from[candidate] <= now:
                    s = min(s, candidate)
            if s == high:
                s = low
                while free_from[s] > now:
                    s += 1
        if s == high - 1 and high < first[pool[c] + 1]:
            until[pool[c]] += 1
        if label[v] >= 0:
            home[label[v]] = s
        start[v], finish[v], stream[v] = now, now + duration[v], s
        free_from[s] = finish[v] + gap
        for e in range(engines):
            free[e] -= demand[c, e]
        heappush(events, (finish[v], _FINISH * n + v))
        if gap > 0:
            heappush(events, (finish[v] + gap, _WAKE * n + v))
        if communicator[c] >= 0:
            quiet_from[communicator[c]] = finish[v] + sync
            heappush(events, (finish[v] + sync, _WAKE * n + v))
        for k in range(after_start[v], after_start[v + 1]):
            w = after[k]
            pending[w] -= 1
            if pending[w] == 0:
                everywhere[w], near[w], sooner = reach(w, finish, stream, before_start, before, lag)
                heappush(events, (everywhere[w], _ANYWHERE * n + w))
                inside = first[pool[kind[w]]] <= near[w] < first[pool[kind[w]] + 1]
                if sooner < everywhere[w] and inside:
                    heappush(events, (sooner, _NEAR * n + w))
