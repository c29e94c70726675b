"""Compiled loops of the validator; written apart from those of the simulator and the solvers, on purpose."""

from __future__ import annotations

import numpy as np

from msched.arrays import BoolArray, Int64Array
from msched.compiled import compiled

WORDS = 128  # of 64 ancestors that are followed at once: 100,000 ops then need 100 MB, not 1.2 GB


@compiled
def two_steps_lead(n: int, steps: Int64Array, asked: Int64Array, words: int) -> BoolArray:
    """Whether a path of two steps or more leads from the first to the second of each pair: shape (k,).

    steps (s, 2), asked (k, 2): pairs of whole numbers 0 to n - 1, the first the less; asked sorted by the second.
    The ancestors of a number are bits, 64 `words` of them at a time.
    """
    first = np.zeros(n + 1, np.int64)
    for i in range(steps.shape[0]):
        first[steps[i, 1] + 1] += 1
    for v in range(n):
        first[v + 1] += first[v]
    fill = first[:-1].copy()
    into = np.empty(steps.shape[0], np.int64)
    for i in range(steps.shape[0]):
        v = steps[i, 1]
        into[fill[v]] = steps[i, 0]
        fill[v] += 1
    found = np.zeros(asked.shape[0], np.bool_)
    span = 64 * words
    for base in range(0, n, span):
        width = min(words, (n - base + 63) >> 6)
        ancestors = np.zeros((n - base, width), np.uint64)
        row = 0
        while row < asked.shape[0] and asked[row, 1] < base:
            row += 1
        for v in range(base, n):
            mine = ancestors[v - base]
            for k in range(first[v], first[v + 1]):
                if into[k] > base:
                    theirs = ancestors[into[k] - base]
                    # An op's ancestors come before it.
                    for w in range(min(width, ((into[k] - base) >> 6) + 1)):
                        mine[w] |= theirs[w]
            while row < asked.shape[0] and asked[row, 1] == v:
                u = asked[row, 0] - base
                if 0 <= u < span:
                    found[row] = (mine[u >> 6] >> np.uint64(u & 63)) & np.uint64(1) == np.uint64(1)
                row += 1
            for k in range(first[v], first[v + 1]):
                u = into[k] - base
                if 0 <= u < span:
                    mine[u >> 6] |= np.uint64(1) << np.uint64(u & 63)
    return found


@compiled
def passed_over(
    start: Int64Array,
    finish: Int64Array,
    arrival: Int64Array,
    turn: Int64Array,
    held: Int64Array,
    capacity: Int64Array,
    instants: Int64Array,
    starts: Int64Array,
    ends: Int64Array,
    first: Int64Array,
    late: Int64Array,
) -> BoolArray:
    """Whether each op waited on, under `greedy`, at an instant at which all its units were free at its turn: (n,).

    instants: at which anything starts, ends or arrives, rising. starts, ends: ops by (start, turn) and by finish.
    late, first: ops that waited, by turn, kind by kind (ops that hold the same), and where each kind begins. Of a kind
    the first in turn that has arrived and not started could start first, so only it is looked at.
    """
    n, engines = held.shape
    kinds = first.size - 1
    found = np.zeros(n, np.bool_)
    head = first.copy()
    free = capacity.copy()
    begun = 0
    ended = 0
    waiting = np.empty(kinds, np.int64)
    for i in range(instants.size):
        now = instants[i]
        while ended < n and finish[ends[ended]] <= now:
            for e in range(engines):
                free[e] += held[ends[ended], e]
            ended += 1
        count = 0
        for k in range(kinds):
            while head[k] < first[k + 1] and start[late[head[k]]] <= now:
                head[k] += 1
            if head[k] < first[k + 1] and arrival[late[head[k]]] <= now:
                v = late[head[k]]
                at = count
                while at > 0 and turn[waiting[at - 1]] > turn[v]:
                    waiting[at] = waiting[at - 1]
                    at -= 1
                waiting[at] = v
                count += 1
        for j in range(count + 1):
            while begun < n and start[starts[begun]] <= now:
                if j < count and turn[starts[begun]] > turn[waiting[j]]:
                    break
                for e in range(engines):
                    free[e] -= held[starts[begun], e]
                begun += 1
            if j < count:
                fits = True
                for e in range(engines):
                    if held[waiting[j], e] > free[e]:
                        fits = False
                if fits:
                    found[waiting[j]] = True
    return found
