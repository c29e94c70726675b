"""Which streams serve which ops: pools of streams, an engine's share of them, labels that stay together."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from msched.arrays import Int64Array
from msched.problem import Problem
from msched.solvers.base import UnassignableError
from msched.solvers.limits import misplaced, unbindable


@dataclass(frozen=True)
class StreamPool:
    """Pools of streams: ops of pool p may use streams `first[p]` to `first[p + 1] - 1`.

    of_op (n,): the pool of each op: 0 where binding is free, the op's engine where streams are bound to engines.
    first (P + 1,).
    """

    of_op: Int64Array
    first: Int64Array


def stream_pool(problem: Problem, most: int) -> StreamPool:
    """At most `most` streams, shared out among the engines in use where streams are bound to engines.

    Each engine in use gets one; each further one goes to the engine whose ops hold the most time a stream (then the
    lowest index), while it has more ops than streams and its own limit allows: of all shares of as many streams, one
    with the least time on the busiest stream.

    Raises UnassignableError: fewer streams than engines in use, an engine in use that may have none, a label whose
    ops are bound to different engines.
    """
    if problem.binding == "free":
        return StreamPool(np.zeros(problem.n, np.int64), np.array([0, min(most, problem.n)]))
    if reason := unbindable(problem):
        raise UnassignableError(reason)
    ops = np.bincount(problem.engine, minlength=problem.capacity.size)
    used = np.flatnonzero(ops)
    if used.size > most:
        names = ", ".join(problem.engine_names[e] for e in used)
        raise UnassignableError(f"each of the engines {names} needs a stream of its own, but the solver may use {most}")
    room = np.where(problem.engine_streams < 0, ops, np.minimum(problem.engine_streams, ops))
    load = np.zeros(ops.size, np.int64)
    np.add.at(load, problem.engine, problem.duration)
    share = (ops > 0).astype(np.int64)
    for _ in range(min(most, int(room.sum())) - used.size):
        busiest = max(np.flatnonzero(share < room), key=lambda e: (Fraction(int(load[e]), int(share[e])), -e))
        share[busiest] += 1
    return StreamPool(problem.engine, np.concatenate([[0], np.cumsum(share)]))


def follow_labels(problem: Problem, stream: Int64Array) -> Int64Array:
    """`stream` (n,) with all ops of a label on the stream of the label's first op in topological order."""
    result = stream.copy()
    order = problem.topological_order[problem.label[problem.topological_order] >= 0]
    _, first, group = np.unique(problem.label[order], return_index=True, return_inverse=True)
    result[order] = stream[order[first[group]]]
    return result


def within_limits(problem: Problem, stream: Int64Array) -> Int64Array:
    """`stream` (n,), numbered without holes in the same sequence. Raises UnassignableError for a limit it breaks."""
    numbered = np.unique(stream, return_inverse=True)[1].astype(np.int64)
    if reason := misplaced(problem, numbered):
        raise UnassignableError(reason)
    return numbered
