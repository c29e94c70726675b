"""Simulated ops a second on 100,000 ops and 8 streams, beside the target of 4,000,000 and the plain reference."""

from __future__ import annotations

from collections.abc import Iterator

import msched
from benchmarks.timing import Row, layered, seconds
from tests.reference import simulator as reference


def rows() -> Iterator[Row]:
    problem, plan = layered(100_000, 8)
    small, small_plan = layered(200, 8)
    for dispatch in ("arrival", "planned", "greedy"):
        rate = problem.n / seconds(lambda dispatch=dispatch: msched.simulate(problem, plan, dispatch))
        yield Row(f"{dispatch}, 100,000 ops", f"{rate / 1e6:.2f} M ops/s", "4 M ops/s", rate / 4e6)
        fast = small.n / seconds(lambda dispatch=dispatch: msched.simulate(small, small_plan, dispatch))
        slow = small.n / seconds(lambda dispatch=dispatch: reference.start_times(small, small_plan, dispatch), 1)
        yield Row(f"{dispatch}, 200 ops", f"{fast / 1e6:.2f} M ops/s", f"oracle {slow / 1e6:.4f} M ops/s", fast / slow)
