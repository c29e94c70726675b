"""msched's own graph JSON, schema `msched.graph/1`: what `OpGraph.to_json` writes."""

from __future__ import annotations

from msched.graph import OpGraph

WHAT = "a graph JSON of msched"
LARGEST_BYTES = 2**30


def recognises(head: bytes) -> bool:
    """A JSON object that names a schema of msched graphs near its beginning (any version: the parser says which)."""
    return head.lstrip().startswith(b"{") and b'"msched.graph/' in head


def parse(data: bytes, name: str) -> OpGraph:
    """The graph, under its own name: `name` (of the file) is not used. Raises GraphError that names the place."""
    return OpGraph.from_json(data)
