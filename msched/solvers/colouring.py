"""Streams for ops whose start times are known: intervals on a line, of which few overlap."""

from __future__ import annotations

from msched.arrays import Int64Array
from msched.problem import Problem

_TASKS_AN_OP = 4  # that a stream holds, with records and waits, where ops are to share streams evenly


def coloured(
    problem: Problem, order: Int64Array, start: Int64Array, released: Int64Array, pool: Int64Array, first: Int64Array
) -> Int64Array:
    """A stream for each op, shape (n,), none held by two ops at once; as few as overlaps need.

    Each op holds a stream from `start` to `released` (n,), and never more of them overlap than their pool has streams.
    order (n,): by start. pool (n,) of each op; its streams are first[pool] to first[pool + 1]. Where a stream may hold
    only so many tasks, the ops share the streams evenly.
    """
    from msched.solvers.colouring_kernel import coloured as kernel

    most, limit = problem.n, problem.tasks_per_stream
    if limit is not None and problem.n * _TASKS_AN_OP > limit:
        most = max(limit // _TASKS_AN_OP, -(-problem.n // int(first[-1])))
    return kernel(order, start, released, problem.predecessor_start, problem.predecessor, pool, first, most)
