"""Bounds by precedence alone: shortest durations, unavoidable lags, and the longest paths of both."""

from __future__ import annotations

import numpy as np

from msched.arrays import Int64Array
from msched.problem import Problem


def shortest_durations(problem: Problem) -> Int64Array:
    """The least duration over the modes of each op, in ns: shape (n,)."""
    if not problem.mode_op.size:
        return problem.duration
    shortest = problem.duration.copy()
    np.minimum.at(shortest, problem.mode_op, problem.mode_duration)
    return shortest


def least_lags(problem: Problem) -> Int64Array:
    """The least time between the finish of the one and the start of the other end of each dependency, in ns: (m,).

    On one stream it is at least the gap, between two streams the event and the delay; ops that can never share a
    stream (bound to different engines) pay the latter.
    """
    between = problem.record_ns + problem.wait_ns + problem.delay
    within = np.full_like(between, problem.gap_ns)
    if problem.streams == 1:
        return within
    lag = np.minimum(between, within)
    if problem.binding == "engine":
        ends = problem.engine[problem.edges]
        lag = np.where(ends[:, 0] != ends[:, 1], between, lag)
        lag = np.where((ends[:, 0] == ends[:, 1]) & (problem.engine_streams[ends[:, 0]] == 1), within, lag)
    together = problem.label[problem.edges]
    return np.where((together[:, 0] == together[:, 1]) & (together[:, 0] >= 0), within, lag)


def heads_and_tails(problem: Problem) -> tuple[Int64Array, Int64Array]:
    """Earliest start of each op, and least time from its finish to the end of the step, in ns: shapes (n,)."""
    from msched.bounds.paths_kernel import longest_heads

    duration, lag = shortest_durations(problem), least_lags(problem)
    into, out = problem.predecessor_edge, problem.successor_edge
    heads = longest_heads(problem.topological_order, duration, problem.successor_start, problem.successor, lag[out])
    tails = longest_heads(
        problem.topological_order[::-1].copy(), duration, problem.predecessor_start, problem.predecessor, lag[into]
    )
    if problem.host_issue_ns:
        heads = np.maximum(heads, problem.host_issue_ns)
    return heads, tails


def critical_path(problem: Problem) -> int:
    """Longest chain of durations and unavoidable lags, in ns."""
    heads, tails = heads_and_tails(problem)
    return int((heads + shortest_durations(problem) + tails).max(initial=0))
