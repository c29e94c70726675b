"""GE's partition into engine clusters, compiled."""

from __future__ import annotations

import numpy as np

from msched.arrays import Int64Array
from msched.compiled import compiled


@compiled
def _find(root: Int64Array, v: int) -> int:
    """The cluster of op v, named by its first op."""
    while root[v] != v:
        root[v] = root[root[v]]
        v = root[v]
    return v


@compiled
def _outputs(cluster: int, first: Int64Array, target: Int64Array, ring: Int64Array, root: Int64Array) -> int:
    """Number of clusters that read from `cluster`."""
    seen = set([cluster])  # noqa: C405 (numba knows sets only by this call)
    v = cluster
    while True:
        for k in range(first[v], first[v + 1]):
            seen.add(_find(root, target[k]))
        v = ring[v]
        if v == cluster:
            return len(seen) - 1


@compiled
def _second_path(
    source: int, goal: int, last: int, first: Int64Array, target: Int64Array, ring: Int64Array, root: Int64Array
) -> bool:
    """Whether a path of two steps or more leads from cluster `source` to `goal`, through ops up to `last` only."""
    seen = set([source])  # noqa: C405
    stack = [source]
    while len(stack) > 0:
        cluster = stack.pop()
        v = cluster
        while True:
            for k in range(first[v], first[v + 1]):
                if target[k] > last:
                    continue
                reached = _find(root, target[k])
                if reached == goal and cluster != source:
                    return True
                if reached != goal and reached not in seen:
                    seen.add(reached)
                    stack.append(reached)
            v = ring[v]
            if v == cluster:
                break
    return False


@compiled
def clusters(
    key: Int64Array,
    predecessor_start: Int64Array,
    predecessor: Int64Array,
    successor_start: Int64Array,
    successor: Int64Array,
) -> Int64Array:
    """Cluster of each op, shape (n,), named by its first op; ops are numbered in topological order.

    Each op in turn is merged with its parents of equal `key`, those with few outputs first, unless a second path from
    the parent would make the clusters cyclic. Ops beyond the one in turn are still alone and lead to nothing before
    it, so paths are looked for among earlier ops only, from whichever end has fewer ops.
    """
    n = key.size
    root = np.arange(n)
    ring = np.arange(n)  # the next op of the same cluster, around
    size = np.ones(n, np.int64)
    for child in range(n):
        parents = [(0, 0) for _ in range(0)]
        for k in range(predecessor_start[child], predecessor_start[child + 1]):
            parent = _find(root, predecessor[k])
            if key[parent] == key[child] and (0, parent) not in parents:
                parents.append((0, parent))
        if len(parents) > 1:
            for i in range(len(parents)):
                parent = parents[i][1]
                parents[i] = (_outputs(parent, successor_start, successor, ring, root), parent)
            parents.sort()
        for _, parent in parents:
            own = _find(root, child)
            if size[parent] <= size[own]:
                cyclic = _second_path(parent, own, child, successor_start, successor, ring, root)
            else:
                cyclic = _second_path(own, parent, child, predecessor_start, predecessor, ring, root)
            if not cyclic:
                low, high = min(own, parent), max(own, parent)
                root[high] = low
                size[low] += size[high]
                ring[low], ring[high] = ring[high], ring[low]
    for v in range(n):
        root[v] = _find(root, v)
    return root
