"""How the benchmarks time: the best of several runs after one that compiles."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from msched.plan import Plan
from msched.problem import Problem


@dataclass(frozen=True)
class Row:
    """One line: what was measured, the figure, what stands beside it, and how many times better than that it is."""

    what: str
    measured: str
    beside: str
    ratio: float


def seconds(run: Callable[[], Any], runs: int = 5) -> float:
    """Least wall time of `runs` calls, after one call that compiles and warms up."""
    run()
    return min(_once(run) for _ in range(runs))


def _once(run: Callable[[], Any]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def layered(ops: int, streams: int, seed: int = 0) -> tuple[Problem, Plan]:
    """A problem of `ops` ops, 1.9 dependencies an op and four engines of 4 units, and a random plan of it."""
    rng = np.random.default_rng(seed)
    before = rng.integers(0, ops - 1, int(1.9 * ops))
    after = np.minimum(before + rng.integers(1, 64, before.size), ops - 1)
    edges = np.stack([before, after], axis=1)[before < after]
    demand = np.eye(4, dtype=np.int64)[rng.integers(0, 4, ops)] * rng.integers(1, 4, ops)[:, None]
    problem = Problem.from_arrays(
        duration=rng.integers(1_000, 100_000, ops), edges=edges, demand=demand, capacity=[4] * 4, streams=streams
    )
    return problem, Plan(stream=rng.integers(0, streams, ops), order=np.arange(ops))
