"""The exact solver: never worse than its seeds, stoppable, honest about what it could not prove."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import msched
from msched import config
from msched.errors import OptionError
from msched.plan import Incumbent, Plan
from msched.problem import Problem
from msched.solvers.base import Budget
from msched.solvers.exact.cpsat import CpSat
from msched.solvers.limits import memory_needs


def drawn(seed: int, n: int = 40, **changes: Any) -> Problem:
    """A layered problem with two engines, partial demands and event costs."""
    rng = np.random.default_rng(seed)
    edges = [(u, v) for v in range(n) for u in range(max(0, v - 8), v) if rng.random() < 0.2]
    capacity = np.array([4, 3])
    demand = np.zeros((n, 2), np.int64)
    engine = rng.integers(0, 2, n)
    demand[np.arange(n), engine] = rng.integers(1, capacity[engine] + 1)
    given: dict[str, Any] = {
        "duration": rng.integers(3, 40, n), "edges": edges, "demand": demand, "capacity": capacity,
        "streams": 3, "gap_ns": 1, "record_ns": 1, "wait_ns": 2,
    }  # fmt: skip
    return Problem.from_arrays(**{**given, **changes})


@pytest.mark.parametrize("dispatch", ["arrival", "planned", "greedy"])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_never_worse_than_any_seed(seed: int, dispatch: Any) -> None:
    problem = drawn(seed)
    exact = msched.solve(problem, "cpsat", time_limit=1, dispatch=dispatch)
    makespan = msched.simulate(problem, exact, dispatch).makespan_ns
    for name in ("blevel", "heft", "single", "memory_list"):
        other = msched.solve(problem, name, dispatch=dispatch)
        assert makespan <= msched.simulate(problem, other, dispatch).makespan_ns
    assert exact.bound_ns is not None
    assert exact.bound_ns <= makespan
    assert msched.validate(problem, exact, msched.simulate(problem, exact, dispatch), dispatch) == []


@dataclass(frozen=True)
class Fixed:
    """A solver that returns the plan it was given."""

    plan: Plan

    def solve(self, problem: Problem, budget: Budget) -> Plan:
        return self.plan


def test_a_seed_wins_where_the_search_has_no_time() -> None:
    problem = drawn(5)
    good = msched.solve(problem, "cpsat", time_limit=2)
    again = msched.solve(problem, CpSat(seeds=(Fixed(good),)), time_limit=0)
    assert msched.simulate(problem, again).makespan_ns <= msched.simulate(problem, good).makespan_ns


def test_it_stops_when_told_and_keeps_what_it_has() -> None:
    problem = drawn(6, n=80)
    stop = threading.Event()
    seen: list[Incumbent] = []

    def progress(incumbent: Incumbent) -> None:
        seen.append(incumbent)
        stop.set()

    plan = msched.solve(problem, "cpsat", time_limit=3600, on_progress=progress, stop=stop)
    assert seen
    assert plan.status in ("feasible", "optimal")
    assert msched.simulate(problem, plan).makespan_ns >= (plan.bound_ns or 0)


def test_its_log_only_improves() -> None:
    plan = msched.solve(drawn(7), "cpsat", time_limit=2)
    spans = [i.makespan_ns for i in plan.log if i.makespan_ns is not None]
    bounds = [i.bound_ns for i in plan.log if i.bound_ns is not None]
    assert spans == sorted(spans, reverse=True)
    assert bounds == sorted(bounds)
    assert spans


@pytest.mark.parametrize("workers", [1, 2])
def test_with_deterministic_work_equal_inputs_give_equal_plans(workers: int) -> None:
    problem = drawn(8)
    first, second = (
        msched.solve(problem, "cpsat", time_limit=1, workers=workers, seed=3, deterministic=True) for _ in range(2)
    )
    assert first.stream.tolist() == second.stream.tolist()
    assert first.order.tolist() == second.order.tolist()
    assert first.fences.tolist() == second.fences.tolist()
    assert first.bound_ns == second.bound_ns


def fork_with_memory(memory_bytes: int | None) -> Problem:
    """Op 0 feeds ops 1 and 2 (a byte each), whose outputs of 4 bytes op 3 and op 4 consume, one each."""
    return Problem.from_arrays(
        duration=[1, 5, 5, 2, 2],
        edges=[(0, 1), (0, 2), (1, 3), (2, 4)],
        tensors=[(0, 1, [1, 2]), (1, 4, [3]), (2, 4, [4])],
        streams=2,
        memory_bytes=memory_bytes,
    )


@pytest.mark.parametrize(
    ("memory_bytes", "makespan"),
    [
        (None, 8),  # both branches side by side: 1 + 5 + 2
        (9, 8),  # 1 + 4 + 4 live at once
        (
            8,
            15,
        ),  # one branch after the other: op 2 (4 beside the byte of op 0) must wait for op 3's end at 8: 8 + 5 + 2
        (5, 15),
    ],
)
def test_a_memory_limit_takes_its_time(memory_bytes: int | None, makespan: int) -> None:
    problem = fork_with_memory(memory_bytes)
    plan = msched.solve(problem, "cpsat", time_limit=5)
    for dispatch in ("arrival", "planned", "greedy"):
        timeline = msched.simulate(problem, plan, dispatch)
        assert timeline.makespan_ns == makespan
        assert memory_bytes is None or timeline.peak_bytes <= memory_bytes
    assert plan.status == "optimal"


def test_a_limit_below_one_op_is_infeasible_with_the_op_named() -> None:
    problem = fork_with_memory(4)
    assert memory_needs(problem).tolist() == [1, 5, 5, 4, 4]
    plan = msched.solve(problem, "cpsat", time_limit=5)
    assert plan.status == "infeasible"
    assert "'op1' alone needs 5 live bytes" in plan.reason
    with pytest.raises(msched.errors.PlanError, match="carries no schedule: infeasible"):
        msched.simulate(problem, plan)


def test_a_limit_that_only_the_search_can_refute_is_infeasible() -> None:
    # Two tensors of 4 bytes must both live until op 2 takes them: 8 bytes, though each op alone needs less than that
    # but for op 2 itself, which is cut into two readers that order nothing between them and so hold both open.
    problem = Problem.from_arrays(
        duration=[1, 1, 1, 1],
        edges=[(0, 2), (1, 2), (0, 3), (1, 3), (2, 3)],
        tensors=[(0, 4, [2, 3]), (1, 4, [3])],
        workspace=[0, 0, 1, 0],
        streams=2,
        memory_bytes=8,
    )
    # While op 2 runs, tensor 0 (read by 3 later), tensor 1 (read by 3) and a workspace byte live: 9 > 8 in every plan.
    plan = msched.solve(problem, "cpsat", time_limit=5)
    assert plan.status == "infeasible"
    assert plan.reason


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"streams": 1, "binding": "engine"}, "needs a stream for each of the 2 engines"),
        ({"streams": 2, "binding": "engine", "engine_streams": [0, None]}, "may have no stream"),
        ({"streams": 2, "tasks_per_stream": 19}, "do not fit on 2 streams"),
        ({"label": np.zeros(40), "binding": "engine"}, "label"),
        ({"label": np.zeros(40), "tasks_per_stream": 39}, "joins 40 ops on one stream"),
        ({"workspace": [7] * 40, "memory_bytes": 6}, "alone needs 7 live bytes"),
    ],
)
def test_limits_that_nothing_can_meet_come_back_with_a_reason(arguments: dict[str, Any], reason: str) -> None:
    if "label" in arguments:
        arguments = {**arguments, "label": arguments["label"].astype(np.int64)}
    plan = msched.solve(drawn(0, **arguments), "cpsat", time_limit=1)
    assert plan.status == "infeasible"
    assert reason in plan.reason


def test_a_plan_that_breaks_a_limit_is_invalid_not_infeasible() -> None:
    problem = drawn(0, streams=2, events=0)
    plan = msched.solve(problem, "round_robin")
    assert plan.status == "invalid"
    assert "events, the limit is 0" in plan.reason
    exact = msched.solve(problem, "cpsat", time_limit=2)
    assert exact.status in ("feasible", "optimal")
    assert len(msched.simulate(problem, exact).waits) == 0


def test_more_streams_than_the_model_can_hold_claim_nothing() -> None:
    # 400 ops on any number of streams with event costs: 160,000 literals. The model takes fewer streams, so its bound
    # says nothing about plans with more, and the bound stays the combinatorial one.
    problem = drawn(9, n=400, streams=None)
    plan = msched.solve(problem, "cpsat", time_limit=3)
    assert plan.bound_ns == msched.bound(problem).makespan_ns


def test_solvers_are_named_and_built_from_their_configs() -> None:
    assert {"single", "engine", "round_robin", "blevel", "heft", "ge", "cpsat"} <= set(msched.solvers())
    assert config.build(config.load("solver", "cpsat")).grain_ns == 0
    problem = drawn(1)
    assert msched.solve(problem, "round_robin", assign={"streams": 2}).streams == 2
    with pytest.raises(OptionError, match="unexpected keyword argument 'sreams'"):
        msched.solve(problem, "cpsat", sreams=2)
    with pytest.raises(OptionError, match="solver 'cpsta' is not known; there are: blevel, cpsat"):
        msched.solve(problem, "cpsta")
    with pytest.raises(OptionError, match="dispatch 'fifo' is not known"):
        msched.solve(problem, "single", dispatch="fifo")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="workers is 0"):
        msched.solve(problem, "single", workers=0)
