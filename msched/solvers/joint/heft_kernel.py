"""Insertion of ops into streams and engines, compiled.

The load of the engines is a list of instants, in time: what is held from each to the next. Streams and communicators
are lists of ops, in time, with a least pause between neighbours. Nothing that was placed is ever moved.
"""

from __future__ import annotations

import numpy as np

from msched.arrays import Int64Array
from msched.compiled import compiled
from msched.solvers.joint.list_kernel import reach

_NONE = -1


@compiled
def _opening(
    time: int,
    length: int,
    pause: int,
    last: int,
    previous: Int64Array,
    following: Int64Array,
    start: Int64Array,
    finish: Int64Array,
) -> tuple[int, int]:
    """The earliest instant from `time` on at which `length` fits into a list of ops, and the op that it comes after.

    `last`: the end of the list. Looks from there backwards to the first opening that ends late enough.
    """
    after, follower = last, _NONE
    while after != _NONE and start[after] >= time + length + pause:
        after, follower = previous[after], after
    while True:
        begin = time if after == _NONE else max(time, finish[after] + pause)
        if follower == _NONE or begin + length + pause <= start[follower]:
            return begin, after
        after, follower = follower, following[follower]


@compiled
def _insert(
    v: int, after: int, row: int, first: Int64Array, last: Int64Array, previous: Int64Array, following: Int64Array
) -> None:
    """Put op v behind op `after` (at the head, for none) of list `row`."""
    follower = first[row] if after == _NONE else following[after]
    previous[v], following[v] = after, follower
    if after == _NONE:
        first[row] = v
    else:
        following[after] = v
    if follower == _NONE:
        last[row] = v
    else:
        previous[follower] = v


@compiled
def _room(
    time: int,
    length: int,
    units: Int64Array,
    at: int,
    instant: Int64Array,
    beyond: Int64Array,
    load: Int64Array,
    capacity: Int64Array,
) -> tuple[int, int]:
    """The earliest time from `time` on at which `units` are free for `length`, and the last instant up to it.

    `at`: an instant not after `time`, from which to look.
    """
    while beyond[at] != _NONE and instant[beyond[at]] <= time:
        at = beyond[at]
    probe = at
    while probe != _NONE and instant[probe] < time + length:
        full = False
        for e in range(units.size):
            full |= load[probe, e] + units[e] > capacity[e]
        probe = beyond[probe]
        if full:  # the last instant holds nothing, so there is one beyond
            at, time = probe, instant[probe]
    return time, at


@compiled
def _instant(
    time: int, at: int, instants: int, instant: Int64Array, beyond: Int64Array, load: Int64Array
) -> tuple[int, int]:
    """The instant at `time`, made where there is none, and how many there are then; `at` is not after it."""
    while beyond[at] != _NONE and instant[beyond[at]] <= time:
        at = beyond[at]
    if instant[at] == time:
        return at, instants
    instant[instants], beyond[instants] = time, beyond[at]
    load[instants] = load[at]
    beyond[at] = instants
    return instants, instants + 1


@compiled
def schedule(
    duration: Int64Array,
    demand: Int64Array,
    pool: Int64Array,
    label: Int64Array,
    communicator: Int64Array,
    capacity: Int64Array,
    first: Int64Array,
    before_start: Int64Array,
    before: Int64Array,
    lag: Int64Array,
    gap: int,
    sync: int,
) -> tuple[Int64Array, Int64Array]:
    """Start (n,) in ns and stream (n,) of each op, placed one after the other in the sequence of their numbers."""
    n, engines = demand.shape
    start = np.zeros(n, np.int64)
    finish = np.zeros(n, np.int64)
    stream = np.full(n, _NONE)
    streams = first[-1]
    groups = communicator.max() + 1 if n else 0
    head, tail = np.full(streams, _NONE), np.full(streams, _NONE)
    group_head, group_tail = np.full(groups, _NONE), np.full(groups, _NONE)
    previous, following = np.full(n, _NONE), np.full(n, _NONE)
    group_previous, group_following = np.full(n, _NONE), np.full(n, _NONE)
    home = np.full(label.max() + 1 if n else 0, _NONE)
    until = np.minimum(first[:-1] + 1, first[1:])  # streams of a pool beyond the first unused one are like that one
    instant = np.zeros(2 * n + 1, np.int64)
    beyond = np.full(2 * n + 1, _NONE)
    load = np.zeros((2 * n + 1, engines), np.int64)
    instants = 1
    mark = np.zeros(n, np.int64)  # an instant not after the finish of each op
    of_input = np.full(streams, _NONE)  # the op for which the stream was last seen to hold an input
    for v in range(n):
        everywhere, near, sooner = reach(v, finish, stream, before_start, before, lag)
        known = 0
        for k in range(before_start[v], before_start[v + 1]):
            of_input[stream[before[k]]] = v
            if instant[mark[before[k]]] > instant[known]:
                known = mark[before[k]]
        low, high = first[pool[v]], until[pool[v]]
        if label[v] >= 0 and home[label[v]] != _NONE:
            low, high = home[label[v]], home[label[v]] + 1
        busy = demand[v].any()
        best, best_time, best_after, best_group_after, best_at = _NONE, 0, _NONE, _NONE, 0
        for s in range(low, high):
            time = sooner if s == near else everywhere
            at, group_after = known, _NONE
            while True:
                time, after = _opening(time, duration[v], gap, tail[s], previous, following, start, finish)
                settled = time
                if communicator[v] >= 0:
                    last = group_tail[communicator[v]]
                    time, group_after = _opening(
                        time, duration[v], sync, last, group_previous, group_following, start, finish
                    )
                if busy:
                    if after != _NONE and instant[mark[after]] > instant[at]:
                        at = mark[after]
                    time, at = _room(time, duration[v], demand[v], at, instant, beyond, load, capacity)
                if time == settled:
                    break
            better = best == _NONE or time < best_time
            nearer = time == best_time and of_input[s] == v and best != _NONE and of_input[best] != v
            if better or nearer:
                best, best_time, best_after, best_group_after, best_at = s, time, after, group_after, at
        start[v], finish[v], stream[v] = best_time, best_time + duration[v], best
        mark[v] = best_at
        if label[v] >= 0:
            home[label[v]] = best
        if best == until[pool[v]] - 1 and best + 1 < first[pool[v] + 1]:
            until[pool[v]] += 1
        _insert(v, best_after, best, head, tail, previous, following)
        if communicator[v] >= 0:
            _insert(v, best_group_after, communicator[v], group_head, group_tail, group_previous, group_following)
        if busy:
            begin, instants = _instant(start[v], best_at, instants, instant, beyond, load)
            end, instants = _instant(finish[v], begin, instants, instant, beyond, load)
            at = begin
            while at != end:
                load[at] += demand[v]
                at = beyond[at]
            mark[v] = end
    return start, stream
