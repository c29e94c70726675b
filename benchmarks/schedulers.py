"""List scheduling and bounds on large problems, beside their targets."""

from __future__ import annotations

from collections.abc import Iterator

import msched
from benchmarks.timing import Row, layered, seconds
from msched import bounds, config
from msched.solvers.base import Budget


def rows() -> Iterator[Row]:
    for name, ops in (("blevel", 100_000), ("heft", 10_000)):
        problem, _ = layered(ops, 8)
        solver = config.build(config.load("solver", name))
        took = seconds(lambda solver=solver, problem=problem: solver.solve(problem, Budget()), 3)
        yield Row(f"{name}, {ops:,} ops, 8 streams", f"{took:.2f} s", "1 s", 1 / took)
    for ops in (1_800, 7_000, 100_000):
        problem, _ = layered(ops, 8)
        took = seconds(lambda problem=problem: bounds.evaluate(problem), 3)
        beside = {1_800: 0.3, 7_000: 2.0}.get(ops, 2.0)
        yield Row(f"bounds, {ops:,} ops", f"{took:.3f} s", f"{beside} s", beside / took)
    graph = msched.network("llama")
    took = seconds(lambda: msched.lower(graph, "atlas_800i_a2"), 3)
    yield Row(f"lower LLaMA-65B, {len(graph.ops):,} ops", f"{took:.3f} s", "1 s", 1 / took)
