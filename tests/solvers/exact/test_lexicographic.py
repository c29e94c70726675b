"""Second stages against all plans of small problems."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

import msched
from msched.errors import OptionError
from msched.plan import Plan
from msched.problem import Problem
from msched.solvers.exact.cpsat import CpSat
from msched.solvers.exact.lexicographic import Lexicographic
from msched.solvers.exact.stages.fewest_streams import streams_needed
from msched.solvers.exact.stages.fewest_waits import waits_needed
from msched.validate import validate


def drawn(seed: int) -> Problem:
    """Five ops on an engine of two units, with tensors, events of 1 ns and up to three streams."""
    draw = np.random.default_rng(seed)
    n = 5
    edges = [(u, v) for v in range(n) for u in range(v) if draw.random() < 0.35]
    return Problem.from_arrays(
        duration=draw.integers(1, 6, n), edges=edges, demand=draw.integers(0, 3, (n, 1)), capacity=[2],
        record_ns=int(draw.integers(0, 2)), streams=3,
        tensors=[(v, int(draw.integers(1, 9)), [w for u, w in edges if u == v]) for v in range(n)],
    )  # fmt: skip


def all_plans(problem: Problem) -> list[tuple[int, int, int, int]]:
    """Makespan, waits, streams and peak of every plan without fences, as planned."""
    found, n = [], problem.n
    streams = {tuple(np.unique(x, return_inverse=True)[1].tolist()) for x in product(range(3), repeat=n)}
    edges = problem.edges.tolist()
    for order in permutations(range(n)):
        if any(order.index(u) > order.index(v) for u, v in edges):
            continue
        for stream in streams:
            plan = Plan(stream=np.array(stream), order=np.array(order))
            timeline = msched.simulate(problem, plan, "planned")
            found.append((timeline.makespan_ns, len(timeline.waits), plan.streams, timeline.peak_bytes))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_every_stage_lies_between_its_bound_and_what_it_found(seed: int) -> None:
    problem = drawn(seed)
    plan = msched.solve(problem, "lexicographic", time_limit=3, dispatch="planned")
    timeline = msched.simulate(problem, plan, "planned")
    assert validate(problem, plan, timeline, "planned") == []
    every = all_plans(problem)
    least = min(makespan for makespan, *_ in every)
    assert timeline.makespan_ns == least
    every = [row for row in every if row[0] == least]
    waits, streams, peak = plan.stages
    assert [stage.figure for stage in plan.stages] == ["waits", "streams", "peak_bytes"]
    assert (waits.value, streams.value, peak.value) == (len(timeline.waits), plan.streams, timeline.peak_bytes)
    fewest = min(row[1] for row in every)
    assert waits.bound <= fewest == waits.value
    every = [row for row in every if row[1] == fewest]
    fewest = min(row[2] for row in every)
    assert streams.bound <= fewest == streams.value
    every = [row for row in every if row[2] == fewest]
    lowest = min(row[3] for row in every)
    assert peak.bound <= peak.value <= lowest  # a fence, which these plans lack, may hold bytes down


def test_the_figures_of_a_fork_by_hand() -> None:
    # a (2) forks into b (4) and c (4), which join in d (2): 8 ns on two streams; 12 ns of work take two streams in 8,
    # and two streams of one graph take a wait at least. One of b, c goes apart: it waits for a, and d for it.
    problem = Problem.from_arrays(duration=[2, 4, 4, 2], edges=[(0, 1), (0, 2), (1, 3), (2, 3)], streams=4)
    assert (streams_needed(problem, 8), streams_needed(problem, 12), waits_needed(problem, 8)) == (2, 1, 1)
    plan = msched.solve(problem, "lexicographic", time_limit=2)
    assert [(stage.figure, stage.value, stage.bound) for stage in plan.stages[:2]] == [
        ("waits", 2, 1),
        ("streams", 2, 2),
    ]
    assert msched.simulate(problem, plan).makespan_ns == 8
    assert Plan.from_json(plan.to_json()).stages == plan.stages


def test_deterministic_work_gives_one_plan() -> None:
    plans = [msched.solve(drawn(1), "lexicographic", time_limit=2, deterministic=True) for _ in range(2)]
    assert plans[0].stages == plans[1].stages
    assert plans[0].stream.tolist() == plans[1].stream.tolist()
    assert plans[0].order.tolist() == plans[1].order.tolist()


@pytest.mark.parametrize("share", [0, 1.5, True, "half"])
def test_a_share_that_is_none_is_named(share: object) -> None:
    with pytest.raises(OptionError, match="share is"):
        Lexicographic(CpSat(), (), share)  # type: ignore[arg-type]


def test_a_stage_that_is_none_is_named() -> None:
    with pytest.raises(OptionError, match="stage 'wait' is not known; there are: waits, streams, peak_bytes"):
        Lexicographic(CpSat(), ("wait",))
