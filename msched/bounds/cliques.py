"""Ops of which no two can run at once, whatever the reason: precedence, an engine too small for both, one stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from msched.arrays import Int64Array
from msched.bounds.paths import shortest_durations
from msched.bounds.resources import resources
from msched.problem import Problem

if TYPE_CHECKING:
    from msched.bounds.cliques_kernel import Bits

_SEEDS = 256  # cliques that are sought at most
_STEPS = 1_000_000  # seeds x ops
_MOST_OPS = 20_000  # the closure takes n^2 / 4 bytes


def exclusive_sets(problem: Problem) -> list[Int64Array]:
    """Maximal sets of ops that pairwise exclude each other in time: cliques of the disjunctive graph.

    Two ops exclude each other where one depends, at any distance, on the other, where an engine has too few units for
    both, and where they share a stream that is the only one for them. Cliques grow greedily, the longest ops first,
    from ops that are in no clique yet and then from the longest ones (Brucker, Knust, Schoo and Thiele 1998, A
    branch-and-bound algorithm for the resource-constrained project scheduling problem, section 3). Ops rise in a set.
    None beyond 20,000 ops: it takes n^2 / 4 bytes.
    """
    from msched.bounds.cliques_kernel import greedy_clique

    if problem.n > _MOST_OPS:
        return []
    duration = shortest_durations(problem)
    adjacent = _exclusions(problem)
    by_weight = np.argsort(-duration, kind="stable")
    by_weight = by_weight[duration[by_weight] > 0]
    seeds = min(_SEEDS, max(16, _STEPS // max(1, problem.n)))
    covered = np.zeros(problem.n, np.bool_)
    found: dict[bytes, Int64Array] = {}
    for repeated in (False, True):
        for seed in by_weight.tolist():
            if seeds == 0:
                break
            if covered[seed] and not repeated:
                continue
            clique = np.sort(greedy_clique(adjacent, by_weight, seed))
            covered[clique] = True
            seeds -= 1
            if clique.size > 1:
                found.setdefault(clique.tobytes(), clique)
    return list(found.values())


def clique_load(problem: Problem, heads: Int64Array, tails: Int64Array) -> int:
    """The best of Jackson's preemptive schedules of ops that exclude each other, in ns. heads, tails: shapes (n,).

    Carlier 1982, section 2, on each of `exclusive_sets`: sets that no single engine explains, such as those of two
    engines that must alternate.
    """
    from msched.bounds.windows_kernel import preemptive

    duration = shortest_durations(problem)
    return max(
        (int(preemptive(heads[ops], tails[ops], duration[ops], 1)) for ops in exclusive_sets(problem)), default=0
    )


def _exclusions(problem: Problem) -> Bits:
    """Bits of the ops that exclude each op: shape (n, words)."""
    from msched.bounds.cliques_kernel import close

    words = -(-problem.n // 64)
    adjacent = close(problem.topological_order, problem.successor_start, problem.successor, words)
    for resource in resources(problem):
        for demand in np.unique(resource.demand).tolist():
            others = np.zeros(64 * words, np.bool_)
            others[resource.op[resource.demand > resource.capacity - demand]] = True
            alike = resource.op[resource.demand == demand]
            adjacent[alike] |= np.packbits(others, bitorder="little").view(np.uint64)
    ops = np.arange(problem.n)
    adjacent[ops, ops >> 6] &= ~(np.uint64(1) << (ops & 63).astype(np.uint64))
    return adjacent
