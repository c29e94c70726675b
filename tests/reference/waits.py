"""Waits by the definition of section 2: the edges between streams of a general transitive reduction."""

from __future__ import annotations

import networkx

from msched.plan import Plan
from msched.problem import Problem


def happens_before(problem: Problem, plan: Plan) -> networkx.DiGraph[int]:
    """Dependencies, fences and stream order together."""
    graph: networkx.DiGraph[int] = networkx.DiGraph()
    graph.add_nodes_from(range(problem.n))
    graph.add_edges_from(problem.edges.tolist())
    graph.add_edges_from(plan.fences.tolist())
    last: dict[int, int] = {}
    for op in plan.order.tolist():
        stream = int(plan.stream[op])
        if stream in last:
            graph.add_edge(last[stream], op)
        last[stream] = op
    return graph


def waits(problem: Problem, plan: Plan) -> set[tuple[int, int]]:
    reduced = networkx.transitive_reduction(happens_before(problem, plan))
    return {(u, v) for u, v in reduced.edges if plan.stream[u] != plan.stream[v]}
