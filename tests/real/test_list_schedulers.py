"""List scheduling of the PipeDream profiles, against figures found with another program.

Expected: ../shared/reference/allocators.md, section 2b (no engines, no costs, time of the network's input not counted):
the speed-up over one stream that the critical path allows, and what a b-level list scheduler in plain Python reached
on 2, 3 and 4 streams. Lists differ among ops of equal level, so that one is to be reached within one per cent.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from msched import formats
from msched.problem import Problem
from msched.solvers.base import Budget
from msched.solvers.joint.blevel import Blevel
from msched.solvers.joint.heft import Heft

PROFILES = Path(__file__).resolve().parents[3] / "shared" / "data" / "pipedream"


@pytest.mark.skipif(not PROFILES.is_dir(), reason="../shared/data/pipedream is not there")
@pytest.mark.parametrize("solver", [Blevel(), Heft()])
@pytest.mark.parametrize(
    ("name", "most", "reached"),
    [
        ("inception_v3", 1.67, {2: 1.54, 3: 1.66, 4: 1.67}),
        ("nasnetalarge", 3.61, {2: 1.96, 3: 2.75, 4: 3.40}),
        ("resnet50", 1.08, {2: 1.08}),
    ],
)
def test_speed_up_of_profiled_networks(
    solver: Blevel | Heft, name: str, most: float, reached: dict[int, float]
) -> None:
    graph = formats.read(PROFILES / f"{name}.graph.txt")
    duration = np.array([0 if op.kind == "Input" else op.duration_ns for op in graph.ops])

    def speed_up(streams: int) -> float:
        plan = solver.solve(Problem.from_arrays(duration=duration, edges=graph.edges, streams=streams), Budget())
        assert plan.predicted_makespan_ns is not None
        return float(duration.sum()) / plan.predicted_makespan_ns

    assert speed_up(8) == pytest.approx(most, abs=0.006)
    for streams, figure in reached.items():
        assert 0.99 * figure <= speed_up(streams) <= min(streams, most + 0.006)
