"""Width of a problem: most ops that no dependency orders, so that they may all run at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from msched.arrays import Int64Array
from msched.problem import Problem

if TYPE_CHECKING:
    from msched.antichain_kernel import Arcs


def width(problem: Problem) -> tuple[int, Int64Array]:
    """The size of a widest antichain of the dependencies and its ops, shape (width,), by rising index; exact.

    By Dilworth (1950) it is the least number of paths, shared ops allowed, that visit every op: a least flow with one
    unit at least through each op (Ntafos and Hakimi 1979), found on the dependencies themselves and not on their
    transitive closure. Ops join in topological order, each with one search for a path that can be led to it; a search
    in vain proves that one more path is needed, and what it saw is never looked at again, as the Hungarian trees of
    bipartite matching (Kuhn 1955). Where these trees end is the antichain. O(n (n + m)) at worst; close to O(n + m) on
    networks.
    """
    from msched.antichain_kernel import fewest_paths

    _, _, closed = fewest_paths(problem.topological_order, _arcs(problem))
    members = np.flatnonzero(closed[problem.n :] & ~closed[: problem.n])
    return members.size, members


def minimum_chain_cover(problem: Problem) -> Int64Array:
    """The chain of each op, shape (n,): numbers 0 to width - 1. Ops of one chain are ordered by the dependencies.

    The proof of `width` from above, by the same flow.
    """
    from msched.antichain_kernel import chains, fewest_paths

    flow, begun, _ = fewest_paths(problem.topological_order, _arcs(problem))
    return chains(problem.topological_order, _arcs(problem), flow, begun)


def _arcs(problem: Problem) -> Arcs:
    place = np.empty(len(problem.edges), np.int64)
    place[problem.successor_edge] = np.arange(len(problem.edges))
    return (
        problem.successor_start,
        problem.successor,
        problem.predecessor_start,
        problem.predecessor,
        place[problem.predecessor_edge],
    )
