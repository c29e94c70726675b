"""CP-SAT in a process of its own: answers, stops, crashes, overruns."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import numpy as np
import pytest
from ortools.sat.python import cp_model

from msched.solvers.exact import engine
from msched.solvers.exact.effort import Effort, run
from msched.solvers.exact.engine import Task, search


def small() -> tuple[cp_model.CpModel, Any, Any]:
    """x + y >= 3 with x <= 5 and y a literal, x + 2 y least: x = 3, y = 0."""
    model = cp_model.CpModel()
    x, y = model.new_int_var(0, 5, "x"), model.new_bool_var("y")
    model.add(x + y >= 3)
    model.minimize(x + 2 * y)
    return model, x, y


def hard() -> cp_model.CpModel:
    """Sixty intervals on seven units: plans at once, no proof in minutes."""
    model = cp_model.CpModel()
    starts = [model.new_int_var(0, 1000, f"start{i}") for i in range(60)]
    intervals = [model.new_fixed_size_interval_var(s, 3 + i % 7, f"op{i}") for i, s in enumerate(starts)]
    model.add_cumulative(intervals, [1 + i % 5 for i in range(60)], 7)
    makespan = model.new_int_var(0, 1000, "makespan")
    for i, start in enumerate(starts):
        model.add(makespan >= start + 3 + i % 7)
    model.minimize(makespan)
    return model


def test_an_answer_has_values_of_variables_literals_and_numbers() -> None:
    model, x, y = small()
    answer = run(model, Effort(5))
    assert (answer.status, answer.objective, answer.bound) == ("OPTIMAL", 3, 3)
    assert [answer.value(v) for v in (x, y, y.negated(), 7)] == [3, 0, 1, 7]


def test_solutions_and_bounds_are_reported_on_the_way() -> None:
    objectives: list[int] = []
    bounds: list[float] = []
    run(small()[0], Effort(5), on_solution=objectives.append, on_bound=bounds.append)
    assert objectives[-1] == 3
    assert bounds[-1] == 3


def test_a_stop_ends_the_search_with_what_it_has() -> None:
    stop = threading.Event()
    answer = run(hard(), Effort(300, stop=stop), on_solution=lambda _: stop.set())
    assert answer.status == "FEASIBLE"
    assert answer.found


def test_a_child_that_dies_costs_the_proof_but_not_what_it_had_found() -> None:
    def kill(_: int) -> None:
        (child,) = busy
        os.kill(child.process.pid, signal.SIGKILL)

    engine.warm(1)
    busy = engine._IDLE[-1:]
    answer = search(Task(str(hard().proto), "num_workers: 1 max_time_in_seconds: 300", 300, on_solution=kill))
    assert answer.status == "CRASHED"
    assert answer.found
    assert "-9" in answer.message
    assert run(small()[0], Effort(5)).status == "OPTIMAL"  # the next search has another child


def test_a_search_that_ignores_its_limit_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    def freeze(_: int) -> None:
        (child,) = busy
        os.kill(child.process.pid, signal.SIGSTOP)

    monkeypatch.setattr(engine, "_GRACE_S", 0.2)
    engine.warm(1)
    busy = engine._IDLE[-1:]
    answer = search(Task(str(hard().proto), "num_workers: 1 max_time_in_seconds: 300", 3, on_solution=freeze))
    assert answer.status == "OVERRUN"
    assert answer.found  # what it had told by then


def test_an_invalid_model_is_named() -> None:
    model = cp_model.CpModel()
    x = model.new_int_var(0, 2**61, "x")
    model.add(x * 8 >= 1)
    answer = run(model, Effort(5))
    assert answer.status == "MODEL_INVALID"
    assert "overflow" in answer.message


def test_infeasible_models_have_no_solution() -> None:
    model = cp_model.CpModel()
    x = model.new_bool_var("x")
    model.add(x >= 2)
    answer = run(model, Effort(5))
    assert answer.status == "INFEASIBLE"
    assert not answer.found
    assert answer.solution.dtype == np.int64
