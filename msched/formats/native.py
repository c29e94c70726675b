"""msched's own graph JSON, schema `msched.graph/1`: what `OpGraph.to_json` writes."""

from __future__ import annotations

from msched.errors import GraphError
from msched.graph import OpGraph

WHAT = "a graph JSON of msched"
LARGEST_BYTES = 2**30


def recognises(head: bytes) -> bool:
    """A JSON object that names a schema of msched graphs near its beginning (any version: the parser says which)."""
    return head.lstrip().startswith(b"{") and b'"msched.graph/' in head


def parse(data: bytes, name: str) -> OpGraph:
    """The graph, under its own name: `name` (of the file) is not used. Raises GraphError that names the place."""
    graph = OpGraph.from_json(data)
    for op in graph.ops:
        if op.stream is not None and op.stream < 0:
            raise GraphError(f"op {op.name!r}: stream is {op.stream}; recorded streams count from 0")
    return graph
