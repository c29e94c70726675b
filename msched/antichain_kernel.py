"""Compiled kernels of `msched.antichain`: fewest paths that visit every op, kept fewest op by op.

The paths are a flow on the dependencies. In its residual graph every op has two nodes: *out* (numbered v), where paths
that come to the op are to be had, and *in* (numbered n + v), where one is wanted. A path wanted at the in node of v may
come from the out node of any predecessor, or from the op itself if others come there too. The out node of u, once its
paths have gone on, gets one back from any successor that does without, or from another path that comes to u.
"""

from __future__ import annotations

import numpy as np

from msched.arrays import BoolArray, Int64Array
from msched.compiled import compiled

Arcs = tuple[Int64Array, Int64Array, Int64Array, Int64Array, Int64Array]


@compiled
def fewest_paths(order: Int64Array, arcs: Arcs) -> tuple[Int64Array, Int64Array, BoolArray]:
    """Paths that visit every op, shared ops allowed: along each dependency (m,), and begun at each op (n,).

    arcs: successors as CSR (row starts, ops), predecessors as CSR (row starts, ops), and the place among the successors
    of each entry of the predecessors, shape (m,).
    Ops come in topological order; each looks for a path that can be led to it, and begins one if there is none. Nodes
    that such a vain search saw can never help again, since nothing leads to them: they are returned as a mask (2n,).
    """
    successor_start, successor, predecessor_start, predecessor, arc = arcs
    n = order.size
    flow = np.zeros(successor.size, np.int64)
    through = np.zeros(n, np.int64)  # paths that visit an op
    held = np.zeros(n, np.int64)  # of these, paths that end there
    begun = np.zeros(n, np.int64)
    seen = np.full(2 * n, -1, np.int64)  # the op for which a search last came by; n if that was in vain
    toward, via = np.empty(2 * n, np.int64), np.empty(2 * n, np.int64)
    queue = np.empty(2 * n, np.int64)
    left = successor_start[1:] - successor_start[:-1]
    for v in order:
        found, met = _nearest(v, arcs, flow, through, held, seen, toward, via, queue)
        if found < 0:
            seen[queue[:met]] = n
            begun[v] = 1
        else:
            _lead(found, n + v, flow, through, held, toward, via)
        through[v] = 1
        held[v] = 1
        for k in range(predecessor_start[v], predecessor_start[v + 1]):
            u = predecessor[k]
            left[u] -= 1
            # Paths that end behind the last successor are far from whoever may need them.
            if left[u] == 0 and held[u] > 0 and successor_start[v] < successor_start[v + 1]:
                flow[arc[k]] += held[u]
                through[v] += held[u]
                held[v] += held[u]
                held[u] = 0
    return flow, begun, seen == n


@compiled
def _nearest(
    v: int,
    arcs: Arcs,
    flow: Int64Array,
    through: Int64Array,
    held: Int64Array,
    seen: Int64Array,
    toward: Int64Array,
    via: Int64Array,
    queue: Int64Array,
) -> tuple[int, int]:
    """The out node, nearest to the in node of v, of an op where a path ends, or -1; and how many nodes were met.

    Breadth first. `toward` is filled with the next node on the way to v, `via` with the dependency to it.
    """
    successor_start, successor, predecessor_start, predecessor, arc = arcs
    n = through.size
    queue[0] = n + v
    seen[n + v] = v
    head, tail = 0, 1
    while head < tail:
        node = queue[head]
        head += 1
        begin = tail
        if node >= n:
            w = node - n
            for k in range(predecessor_start[w], predecessor_start[w + 1]):
                u = predecessor[k]
                if seen[u] != v and seen[u] != n:
                    queue[tail] = u
                    via[u] = arc[k]
                    seen[u] = v
                    tail += 1
            if through[w] > 1 and seen[w] != v and seen[w] != n:
                queue[tail] = w
                via[w] = -1
                seen[w] = v
                tail += 1
            for i in range(begin, tail):
                toward[queue[i]] = node
                if held[queue[i]] > 0:
                    return queue[i], tail
        else:
            if seen[n + node] != v and seen[n + node] != n:
                queue[tail] = n + node
                via[n + node] = -1
                seen[n + node] = v
                tail += 1
            for k in range(successor_start[node], successor_start[node + 1]):
                w = n + successor[k]
                if flow[k] > 0 and seen[w] != v and seen[w] != n:
                    queue[tail] = w
                    via[w] = k
                    seen[w] = v
                    tail += 1
            for i in range(begin, tail):
                toward[queue[i]] = node
    return -1, tail


@compiled
def _lead(
    node: int,
    goal: int,
    flow: Int64Array,
    through: Int64Array,
    held: Int64Array,
    toward: Int64Array,
    via: Int64Array,
) -> None:
    """Lead a path that ends at the out node `node` to the in node `goal`, along `toward`."""
    n = through.size
    held[node] -= 1
    while node != goal:
        away = 1 if node < n else -1
        if via[node] >= 0:
            flow[via[node]] += away
        else:
            through[node % n] -= away
        node = toward[node]


@compiled
def chains(order: Int64Array, arcs: Arcs, flow: Int64Array, begun: Int64Array) -> Int64Array:
    """The path that each op stands for, shape (n,), numbered as they begin, where `fewest_paths` gave the paths."""
    successor_start, successor, _, _, _ = arcs
    n = order.size
    chain = np.empty(n, np.int64)
    first = np.full(n, -1, np.int64)  # of the paths that have come to an op, as a linked list
    following = np.full(n, -1, np.int64)
    count = 0
    for v in order:
        if begun[v]:
            following[count] = first[v]
            first[v] = count
            count += 1
        chain[v] = first[v]
        for k in range(successor_start[v], successor_start[v + 1]):
            w = successor[k]
            for _ in range(flow[k]):
                moved = first[v]
                first[v] = following[moved]
                following[moved] = first[w]
                first[w] = moved
    return chain
