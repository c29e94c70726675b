"""The fewest waits with which a makespan can be kept."""

from __future__ import annotations

from dataclasses import replace

import networkx

from msched.plan import Plan, Stage, durations_and_demands
from msched.plan import waits as waits_of
from msched.problem import Problem
from msched.simulator import start_times
from msched.solvers.exact.stages.fewest_streams import streams_needed
from msched.solvers.exact.stages.handovers import handed_over
from msched.solvers.exact.stages.stage import Ground, least
from msched.solvers.securing import secure


def waits_needed(problem: Problem, makespan_ns: int) -> int:
    """Waits of every plan of at most this makespan in ns: streams that run ops of one connected part of the graph are
    connected by waits, so that as many streams as are needed take one wait for each but the first of a part."""
    graph: networkx.Graph[int] = networkx.Graph(problem.edges.tolist())
    parts = networkx.number_connected_components(graph) + problem.n - len(graph)
    return max(0, streams_needed(problem, makespan_ns) - parts)


def fewest_waits(ground: Ground, plan: Plan, seconds: float) -> tuple[Plan, Stage]:
    """The plan with the fewest waits found, and the figure with its bound.

    Fewer waits: streams anew for the times at which the ops run (`handovers`), then a search with fewer events.
    """
    problem = ground.problem

    def waits(some: Plan) -> int:
        return len(waits_of(problem, some))

    while (fewer := _recoloured(ground, plan)) is not None and waits(fewer) < waits(plan):
        plan = fewer
    return least(
        ground,
        plan,
        "waits",
        waits,
        lambda limit: replace(problem, events=limit),
        waits_needed(problem, ground.makespan_ns),
        seconds,
    )


def _recoloured(ground: Ground, plan: Plan) -> Plan | None:
    """The plan with the fewest waits among those of other streams, as they are or secured, that keep the makespan."""
    problem, dispatch = ground.problem, ground.budget.dispatch
    duration = durations_and_demands(problem, plan)[0]
    tried = []
    for rule in dict.fromkeys((dispatch, "planned")):
        start = start_times(problem, plan, rule)
        if (stream := handed_over(problem, plan, start, start + duration)) is None:
            continue
        same = replace(plan, stream=stream)
        tried += [same, secure(problem, same, dispatch)]
    return min(filter(ground.keeps, tried), key=lambda some: len(waits_of(problem, some)), default=None)
