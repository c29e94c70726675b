"""Compiled sets of ops that run one at a time: the precedence closure as bits, and greedy cliques."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from msched.arrays import Int64Array
from msched.compiled import compiled

Bits = NDArray[np.uint64]
ONE = np.uint64(1)


@compiled
def close(order: Int64Array, after_start: Int64Array, after: Int64Array, words: int) -> Bits:
    """Bits of all descendants and ancestors of each op: shape (n, words) of 64 bits."""
    n = order.size
    below, above = np.zeros((n, words), np.uint64), np.zeros((n, words), np.uint64)
    for i in range(n - 1, -1, -1):
        u = order[i]
        for k in range(after_start[u], after_start[u + 1]):
            v = after[k]
            below[u] |= below[v]
            below[u, v >> 6] |= ONE << np.uint64(v & 63)
    for u in order:
        for k in range(after_start[u], after_start[u + 1]):
            v = after[k]
            above[v] |= above[u]
            above[v, u >> 6] |= ONE << np.uint64(u & 63)
    below |= above
    return below


@compiled
def greedy_clique(adjacent: Bits, by_weight: Int64Array, seed: int) -> Int64Array:
    """A maximal set of pairwise adjacent ops with `seed` in it, taken in the order of `by_weight`."""
    left = adjacent[seed].copy()
    chosen = np.empty(by_weight.size, np.int64)
    chosen[0] = seed
    count = 1
    for v in by_weight:
        if (left[v >> 6] >> np.uint64(v & 63)) & ONE:
            chosen[count] = v
            count += 1
            left &= adjacent[v]
    return chosen[:count]
