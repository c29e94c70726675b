"""Compiled heads of ops that run one at a time, for a fixed makespan: detectable precedences and edge finding.

After Vilim 2004, O(n log n) filtering algorithms for unary resource constraint, sections 4 and 5. Tails are the heads
of the reversed problem.
"""

from __future__ import annotations

import numpy as np

from msched.arrays import Int64Array
from msched.bounds.windows_kernel import EMPTY, insert, leaves
from msched.compiled import compiled


@compiled
def disjunctive_heads(head: Int64Array, tail: Int64Array, duration: Int64Array, makespan: int) -> bool:
    """Raise `head` (k,) in place where the other ops of the set force it; False where they cannot all be in time."""
    k = head.size
    size = leaves(k)
    by_head = np.argsort(head, kind="mergesort")
    leaf = np.empty(k, np.int64)
    leaf[by_head] = np.arange(k)
    due = makespan - tail
    raised = head.copy()
    if not _edge_finding(head, due, duration, by_head, leaf, size, raised):
        return False
    _detectable(head, due, duration, leaf, size, raised)
    head[:] = raised
    return True


@compiled
def _detectable(
    head: Int64Array, due: Int64Array, duration: Int64Array, leaf: Int64Array, size: int, raised: Int64Array
) -> None:
    """An op that finishes at the earliest after another must start at the latest runs behind it."""
    total, reach = np.zeros(2 * size, np.int64), np.full(2 * size, EMPTY, np.int64)
    by_latest = np.argsort(due - duration, kind="mergesort")
    inside = np.zeros(head.size, np.bool_)
    j = 0
    for i in np.argsort(head + duration, kind="mergesort"):
        while j < by_latest.size and head[i] + duration[i] > due[by_latest[j]] - duration[by_latest[j]]:
            u = by_latest[j]
            insert(total, reach, leaf[u], head[u], duration[u])
            inside[u] = True
            j += 1
        if inside[i]:
            insert(total, reach, leaf[i], head[i], -1)
        raised[i] = max(raised[i], reach[1])
        if inside[i]:
            insert(total, reach, leaf[i], head[i], duration[i])


@compiled
def _edge_finding(
    head: Int64Array, due: Int64Array, duration: Int64Array, by_head: Int64Array, leaf: Int64Array, size: int,
    raised: Int64Array,
) -> bool:  # fmt: skip
    """An op that no longer fits among those due by some time runs behind all of them."""
    total, reach = np.zeros(2 * size, np.int64), np.full(2 * size, EMPTY, np.int64)
    # As total and reach, with the one grey op that makes most of each, and its leaf.
    grey_total, grey_reach = total.copy(), reach.copy()
    by_total, by_reach = np.full(2 * size, -1, np.int64), np.full(2 * size, -1, np.int64)
    for i in range(head.size):
        v = by_head[i]
        total[size + i] = grey_total[size + i] = duration[v]
        reach[size + i] = grey_reach[size + i] = head[v] + duration[v]
    for i in range(size - 1, 0, -1):
        _join(i, total, reach, grey_total, grey_reach, by_total, by_reach)
    by_due = np.argsort(-due, kind="mergesort")
    for at in range(head.size - 1):
        j = by_due[at]
        if reach[1] > due[j]:
            return False
        i = size + leaf[j]
        total[i], reach[i] = 0, EMPTY
        by_total[i], by_reach[i] = leaf[j], leaf[j]
        _rise(i, total, reach, grey_total, grey_reach, by_total, by_reach)
        while grey_reach[1] > due[by_due[at + 1]] and by_reach[1] >= 0:
            grey = by_reach[1]
            raised[by_head[grey]] = max(raised[by_head[grey]], reach[1])
            i = size + grey
            grey_total[i], grey_reach[i] = 0, EMPTY
            by_total[i], by_reach[i] = -1, -1
            _rise(i, total, reach, grey_total, grey_reach, by_total, by_reach)
    return bool(reach[1] <= due[by_due[-1]])


@compiled
def _rise(
    i: int, total: Int64Array, reach: Int64Array, grey_total: Int64Array, grey_reach: Int64Array,
    by_total: Int64Array, by_reach: Int64Array,
) -> None:  # fmt: skip
    i //= 2
    while i:
        _join(i, total, reach, grey_total, grey_reach, by_total, by_reach)
        i //= 2


@compiled
def _join(
    i: int, total: Int64Array, reach: Int64Array, grey_total: Int64Array, grey_reach: Int64Array,
    by_total: Int64Array, by_reach: Int64Array,
) -> None:  # fmt: skip
    a, b = 2 * i, 2 * i + 1
    total[i] = total[a] + total[b]
    reach[i] = max(reach[b], reach[a] + total[b])
    grey_total[i], by_total[i] = total[i], -1
    if by_total[a] >= 0 and grey_total[a] + total[b] > grey_total[i]:
        grey_total[i], by_total[i] = grey_total[a] + total[b], by_total[a]
    if by_total[b] >= 0 and total[a] + grey_total[b] > grey_total[i]:
        grey_total[i], by_total[i] = total[a] + grey_total[b], by_total[b]
    grey_reach[i], by_reach[i] = reach[i], -1
    if by_reach[b] >= 0 and grey_reach[b] > grey_reach[i]:
        grey_reach[i], by_reach[i] = grey_reach[b], by_reach[b]
    if by_total[b] >= 0 and reach[a] + grey_total[b] > grey_reach[i]:
        grey_reach[i], by_reach[i] = reach[a] + grey_total[b], by_total[b]
    if by_reach[a] >= 0 and grey_reach[a] + total[b] > grey_reach[i]:
        grey_reach[i], by_reach[i] = grey_reach[a] + total[b], by_reach[a]
