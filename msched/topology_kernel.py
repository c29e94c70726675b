"""Compiled kernels on a dependency relation in compressed sparse row (CSR) form."""

from __future__ import annotations

import numpy as np

from msched.arrays import Int64Array
from msched.compiled import compiled


@compiled
def topological_order(successor_start: Int64Array, successor: Int64Array) -> Int64Array:
    """Kahn's algorithm, first in first out, sources by index: shape (n,), shorter when there is a cycle."""
    n = successor_start.size - 1
    pending = np.zeros(n, np.int64)
    for k in range(successor.size):
        pending[successor[k]] += 1
    order = np.empty(n, np.int64)
    tail = 0
    for v in range(n):
        if pending[v] == 0:
            order[tail] = v
            tail += 1
    head = 0
    while head < tail:
        u = order[head]
        head += 1
        for k in range(successor_start[u], successor_start[u + 1]):
            v = successor[k]
            pending[v] -= 1
            if pending[v] == 0:
                order[tail] = v
                tail += 1
    return order[:tail]


@compiled
def levels(order: Int64Array, successor_start: Int64Array, successor: Int64Array) -> Int64Array:
    """Longest path from a source in hops: shape (n,)."""
    level = np.zeros(order.size, np.int64)
    for u in order:
        for k in range(successor_start[u], successor_start[u + 1]):
            v = successor[k]
            if level[v] < level[u] + 1:
                level[v] = level[u] + 1
    return level
