"""A problem as JSON and as a networkx graph, and the fields of a problem back from either."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from msched.arrays import pairs
from msched.errors import ProblemError
from msched.problem_arrays import ProblemArrays, integers, texts

if TYPE_CHECKING:
    import networkx

SCHEMA = "msched.problem/1"
_OF_OPS = ("duration", "engine", "demand", "workspace", "label", "communicator")  # attributes of the nodes


def json_of(problem: ProblemArrays) -> bytes:
    """Every field by its name, and the schema."""
    values = {f.name: getattr(problem, f.name) for f in fields(problem)}
    body = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}
    return msgspec.json.encode({"schema": SCHEMA, **body})


def fields_of_json(data: bytes | str) -> dict[str, Any]:
    """Inverse of `json_of`: the fields by name. Raises ProblemError that names the missing, unknown or broken field."""
    try:
        body = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProblemError(f"not a problem of schema {SCHEMA}: {error}") from error
    if not isinstance(body, dict) or body.pop("schema", None) != SCHEMA:
        raise ProblemError(f"not a problem of schema {SCHEMA}: it says no such schema")
    known = {f.name for f in fields(ProblemArrays)}
    if set(body) != known:
        missing, unknown = sorted(known - set(body)), sorted(set(body) - known)
        raise ProblemError(f"schema {SCHEMA}: missing fields {missing}, unknown fields {unknown}")
    for key in ("op_names", "engine_names", "warnings"):
        body[key] = texts(key, body[key])
    empty_demand = np.zeros((0, len(body["engine_names"])), np.int64)
    for key in ("demand", "mode_demand"):
        body[key] = body[key] if body[key] else empty_demand
    body["edges"] = body["edges"] if body["edges"] else np.zeros((0, 2), np.int64)
    return body


def graph_of(problem: ProblemArrays) -> networkx.DiGraph[int]:
    """Ops as nodes and dependencies as edges, with what belongs to one of them; the rest in `graph.graph`."""
    import networkx

    apart = {"op_names", "delay", *_OF_OPS}
    rest = {f.name: getattr(problem, f.name) for f in fields(problem) if f.name not in apart}
    result: networkx.DiGraph[int] = networkx.DiGraph(name=problem.name, problem=rest)
    for v in range(problem.n):
        result.add_node(
            v,
            name=problem.op_names[v],
            duration=int(problem.duration[v]),
            engine=int(problem.engine[v]),
            demand=tuple(problem.demand[v].tolist()),
            workspace=int(problem.workspace[v]),
            label=int(problem.label[v]),
            communicator=int(problem.communicator[v]),
        )
    for (u, v), d in zip(problem.edges.tolist(), problem.delay.tolist(), strict=True):
        result.add_edge(u, v, delay=d)
    return result


def fields_of_graph(graph: networkx.DiGraph[Any]) -> dict[str, Any]:
    """Inverse of `graph_of`: the fields by name. Raises ProblemError: not such a graph, or a node lacks something."""
    rest = dict(graph.graph.get("problem", {}))
    if not rest:
        raise ProblemError('the graph has no graph.graph["problem"]; lower an OpGraph, or use Problem.from_arrays')
    try:
        nodes = [graph.nodes[v] for v in range(graph.number_of_nodes())]
        rest["op_names"] = tuple(node["name"] for node in nodes)
        for key in _OF_OPS:
            rest[key] = [node[key] for node in nodes]
    except KeyError as error:
        raise ProblemError(f"nodes are ops 0 to n - 1 with all attributes of an op; one lacks {error}") from error
    rest["demand"] = integers("demand", rest["demand"], (0, len(rest["engine_names"])))
    old = [(u, v) for u, v in rest["edges"].tolist() if graph.has_edge(u, v)]
    edges = list(dict.fromkeys([*old, *graph.edges]))
    rest["edges"], rest["delay"] = pairs(edges), [graph.edges[u, v].get("delay", 0) for u, v in edges]
    return rest
