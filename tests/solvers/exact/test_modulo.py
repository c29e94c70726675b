"""Modulo scheduling: periods and makespans known by hand, plans of real layers, and what it refuses."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import msched
from msched.bounds import bound
from msched.errors import OptionError
from msched.problem import Problem
from msched.solvers.exact.effort import Effort
from msched.solvers.exact.modulo import Modulo
from msched.solvers.exact.period import resource_period, shortest_period
from msched.solvers.exact.repetition import largest_repetition
from msched.solvers.stream_pool import stream_pool


def _sliced(blocks: int, compute: int, communicate: int, slices: int = 2) -> Problem:
    """Chains that never meet, one a slice: compute, communicate, compute, ... on two engines of one unit."""
    duration, demand, edges = [], [], []
    for s in range(slices):
        for k in range(2 * blocks):
            duration.append(communicate if k % 2 else compute)
            demand.append([0, 1] if k % 2 else [1, 0])
            if k:
                edges.append((s * 2 * blocks + k - 1, s * 2 * blocks + k))
    return Problem.from_arrays(duration=duration, demand=demand, capacity=[1, 1], edges=edges, streams=4)


def _period(problem: Problem) -> Any:
    run = largest_repetition(problem)
    assert run is not None
    pool = stream_pool(problem, problem.streams or 32)
    assert resource_period(problem, run, pool) <= bound(problem).makespan_ns
    return shortest_period(problem, run, pool, np.zeros_like(run.delay), Effort(3))


@pytest.mark.parametrize(
    ("compute", "communicate", "period"),
    [
        (4, 4, 8),  # both engines never idle: one slice computes while the other communicates
        (5, 3, 10),  # two slices compute for 5 each; the link is free for 4 of 10
        (3, 5, 10),  # the link is the bottleneck
    ],
)
def test_the_period_of_two_slices_is_the_load_of_the_busiest_engine(
    compute: int, communicate: int, period: int
) -> None:
    found = _period(_sliced(6, compute, communicate))
    assert found.period_ns == found.lower_ns == period


def test_the_period_of_one_slice_is_its_chain() -> None:
    # Nothing overlaps: 4 + 6 in a row, though no engine is busy for more than 6 of them.
    found = _period(_sliced(6, 4, 6, slices=1))
    assert found.period_ns == found.lower_ns == 10


def test_two_slices_in_turn_lose_nothing_but_the_last_communication() -> None:
    # The cube computes 2 x 5 x 4 ns without a break, then the last slice communicates for 4.
    problem = _sliced(5, 4, 4)
    plan = msched.solve(problem, "modulo", time_limit=4)
    assert msched.simulate(problem, plan).makespan_ns == 2 * 5 * 4 + 4


def test_few_streams_are_kept() -> None:
    # One stream runs everything in a row.
    problem = replace(_sliced(4, 4, 4), streams=1)
    plan = msched.solve(problem, "modulo", time_limit=2)
    assert plan.streams == 1
    assert msched.simulate(problem, plan).makespan_ns == 2 * 4 * 8


@pytest.mark.parametrize("free_events", [True, False])
@pytest.mark.parametrize(("network", "arguments"), [
    ("llama", {"size": "65b", "tensor_parallel": 8, "phase": "prefill", "layers": 4, "slices": 2}),
    ("training", {"size": "7b", "tensor_parallel": 8, "data_parallel": 8, "layers": 5}),
])  # fmt: skip
def test_plans_of_real_layers_are_valid(network: str, arguments: dict[str, Any], free_events: bool) -> None:
    problem = msched.lower(msched.network(network, **arguments), device="atlas_800i_a2", streams=8)
    if free_events:
        problem = replace(problem, record_ns=0, wait_ns=0)
    plan = msched.solve(problem, "modulo", time_limit=2)
    timeline = msched.simulate(problem, plan)
    assert msched.validate(problem, plan, timeline) == []
    assert bound(problem).makespan_ns <= timeline.makespan_ns < problem.duration.sum()


def test_bound_engines_and_gaps_are_kept() -> None:
    problem = replace(_sliced(5, 4, 6), binding="engine", engine_streams=np.array([1, 2]), gap_ns=1, record_ns=1)
    plan = msched.solve(problem, "modulo", time_limit=2)
    assert msched.validate(problem, plan, msched.simulate(problem, plan)) == []


def test_a_network_without_blocks_is_refused_in_words() -> None:
    plan = msched.solve(Problem.from_arrays(duration=[3, 5, 8], edges=[(0, 1)]), Modulo())
    assert plan.status == "invalid"
    assert "repeat" in plan.reason


def test_a_stop_leaves_a_plan() -> None:
    stop = threading.Event()
    stop.set()
    problem = _sliced(5, 4, 4)
    plan = msched.solve(problem, "modulo", time_limit=60, stop=stop)
    assert msched.validate(problem, plan, msched.simulate(problem, plan)) == []


@pytest.mark.parametrize("options", [{"time_share": 0.0}, {"time_share": 1.5}, {"max_streams": 0}])
def test_options_out_of_range_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        Modulo(**options)


def test_a_network_without_blocks_goes_to_the_other_solver() -> None:
    plan = msched.solve(Problem.from_arrays(duration=[3, 5, 8], edges=[(0, 1)]), "modulo")
    assert msched.simulate(Problem.from_arrays(duration=[3, 5, 8], edges=[(0, 1)]), plan).makespan_ns == 8
