"""Ranks of ops, and when an op's inputs reach a stream: the compiled base of the list schedulers."""

from __future__ import annotations

from msched.arrays import Int64Array
from msched.compiled import compiled


@compiled
def upward_ranks(
    order: Int64Array, duration: Int64Array, successor_start: Int64Array, successor: Int64Array, lag: Int64Array
) -> Int64Array:
    """Longest path from each op to an exit, in durations (its own included) and lags of dependencies: (n,) ns."""
    rank = duration.copy()
    for p in range(order.size - 1, -1, -1):
        u = order[p]
        for k in range(successor_start[u], successor_start[u + 1]):
            rank[u] = max(rank[u], duration[u] + lag[k] + rank[successor[k]])
    return rank


@compiled
def reach(
    v: int, finish: Int64Array, stream: Int64Array, before_start: Int64Array, before: Int64Array, lag: Int64Array
) -> tuple[int, int, int]:
    """When the inputs of op v reach any stream, the one stream that they may reach sooner (-1), and when that.

    Only the stream of the input that comes last can gain: on every other one that input still has to cross.
    """
    everywhere, near = 0, -1
    for k in range(before_start[v], before_start[v + 1]):
        u = before[k]
        if finish[u] + lag[k] > everywhere:
            everywhere, near = finish[u] + lag[k], stream[u]
    sooner = 0
    for k in range(before_start[v], before_start[v + 1]):
        u = before[k]
        sooner = max(sooner, finish[u] if stream[u] == near else finish[u] + lag[k])
    return everywhere, near, sooner
