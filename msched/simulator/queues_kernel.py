"""Compiled queues: a heap of instants, and lists of what has arrived."""

from __future__ import annotations

from msched.arrays import Int64Array
from msched.compiled import compiled


@compiled
def push(time: Int64Array, item: Int64Array, size: int, key: int, value: int) -> int:
    """Put `value` at `key` into a heap of `size` entries; the new size."""
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
def pop(time: Int64Array, item: Int64Array, size: int) -> int:
    """Drop the smallest entry, which the caller has read at index 0; the new size."""
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
def enqueue_op(
    head: Int64Array, tail: Int64Array, ahead: Int64Array, behind: Int64Array, arrival: Int64Array, p: int
) -> None:
    """Put op p, which arrives now, into the single list: behind all but later-issued ops that arrived now as well."""
    after = tail[0]
    while after >= 0 and arrival[after] == arrival[p] and after > p:
        after = ahead[after]
    _link(head, tail, ahead, behind, 0, after, p)


@compiled
def enqueue(
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
def unlink(head: Int64Array, tail: Int64Array, ahead: Int64Array, behind: Int64Array, e: int, entry: int) -> None:
    """Take an entry out of the list of engine e."""
    before, follower = ahead[entry], behind[entry]
    if before < 0:
        head[e] = follower
    else:
        behind[before] = follower
    if follower < 0:
        tail[e] = before
    else:
        ahead[follower] = before
