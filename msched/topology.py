"""Order in a dependency relation: topological order, and the cycle that forbids one."""

from __future__ import annotations

import numpy as np

from msched.arrays import Int64Array, compressed_rows


def topological_order(n: int, edges: Int64Array) -> Int64Array:
    """Ops in topological order, first in first out by index: shape (n,), or shorter when `edges` has a cycle."""
    from msched.topology_kernel import topological_order as kernel

    start, entry = compressed_rows(edges[:, 0], n)
    return kernel(start, np.ascontiguousarray(edges[entry, 1]))


def find_cycle(n: int, edges: Int64Array, order: Int64Array) -> list[int]:
    """One cycle of `edges`, each op once, given the partial topological `order` that leaves it out."""
    left = np.ones(n, np.bool_)
    left[order] = False
    before: dict[int, int] = {}
    for u, v in edges[left[edges[:, 0]] & left[edges[:, 1]]].tolist():
        before.setdefault(v, u)  # every op that is left has a predecessor that is left
    seen: dict[int, int] = {}
    walk: list[int] = []
    op = next(iter(before))
    while op not in seen:
        seen[op] = len(walk)
        walk.append(op)
        op = before[op]
    return walk[seen[op] :][::-1]
