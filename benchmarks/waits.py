"""Minimal waits by vector clocks, beside the target of 0.2 s and networkx's transitive reduction."""

from __future__ import annotations

from collections.abc import Iterator

import networkx

import msched
from benchmarks.timing import Row, layered, seconds


def rows() -> Iterator[Row]:
    for ops in (7_000, 100_000):
        problem, plan = layered(ops, 8)
        took = seconds(lambda problem=problem, plan=plan: msched.waits(problem, plan))
        yield Row(f"{ops:,} ops, 8 streams", f"{took * 1e3:.1f} ms", "200 ms for 7,000 ops", 0.2 / took * ops / 7_000)
    problem, plan = layered(2_000, 8)
    graph = networkx.DiGraph(problem.edges.tolist())
    took = seconds(lambda: msched.waits(problem, plan))
    other = seconds(lambda: networkx.transitive_reduction(graph), 1)
    yield Row("2,000 ops, 8 streams", f"{took * 1e3:.2f} ms", f"networkx {other * 1e3:.0f} ms", other / took)
