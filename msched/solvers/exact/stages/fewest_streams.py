"""The fewest streams with which a makespan can be kept."""

from __future__ import annotations

from dataclasses import replace

from msched.bounds.paths import shortest_durations
from msched.plan import Plan, Stage
from msched.problem import Problem
from msched.solvers.exact.stages.stage import Ground, least


def streams_needed(problem: Problem, makespan_ns: int) -> int:
    """Streams that every plan of at most this makespan in ns uses: all ops, each with the gap behind it, but for the
    last of each stream, lie one after the other on their streams."""
    work = int(shortest_durations(problem).sum()) + problem.gap_ns * problem.n
    return max(min(1, problem.n), -(-work // max(1, makespan_ns + problem.gap_ns)))


def fewest_streams(ground: Ground, plan: Plan, seconds: float) -> tuple[Plan, Stage]:
    """The plan with the fewest streams found, and the figure with its bound.

    Plans with fewer streams, by a search with one stream less, or as many less as have been refuted.
    """
    problem = ground.problem
    return least(
        ground,
        plan,
        "streams",
        lambda some: some.streams,
        lambda limit: replace(problem, streams=limit),
        streams_needed(problem, ground.makespan_ns),
        seconds,
    )
