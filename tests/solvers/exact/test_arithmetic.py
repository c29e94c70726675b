"""The exact solver on figures that CP-SAT's 64 bits cannot multiply, and on options of the wrong kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import msched
from msched.errors import OptionError
from msched.problem import Problem
from msched.solvers.exact.cpsat import CpSat
from msched.solvers.exact.scaled import counted
from tests.reference.brute_force import optimum

HUGE = 2**54


@pytest.mark.parametrize("most", [HUGE, HUGE // 8])
def test_a_divisor_of_all_units_changes_nothing(most: int) -> None:
    # On four units, ops that hold 4, 2 and 2 for 5, 7 and 9 ns: 5 and then 9 beside 7.
    unit = most // 4
    problem = Problem.from_arrays(duration=[5, 7, 9], demand=[[4 * unit], [2 * unit], [2 * unit]], capacity=[4 * unit])
    plan = msched.solve(problem, "cpsat")
    assert plan.status == "optimal"
    assert msched.simulate(problem, plan).makespan_ns == 14


@pytest.mark.parametrize("modes", [[], [(4, 3, [HUGE // 2 + 1])]])
def test_units_without_a_divisor_keep_the_bound_and_the_plan_valid(modes: Any) -> None:
    problem = Problem.from_arrays(
        duration=[5, 7, 9, 4, 6], edges=[(0, 3), (1, 4)], demand=[[HUGE], [HUGE // 2], [HUGE], [3], [HUGE]],
        capacity=[2 * HUGE], streams=3, record_ns=2, modes=modes,
    )  # fmt: skip
    best = optimum(problem)
    assert best is not None
    plan = msched.solve(problem, "cpsat", dispatch="planned")
    timeline = msched.simulate(problem, plan, "planned")
    assert plan.bound_ns is not None
    assert plan.bound_ns <= best[0] <= timeline.makespan_ns
    assert msched.validate(problem, plan, timeline, "planned") == []


def test_bytes_near_the_end_of_64_bits_count() -> None:
    # Either tensor fits the memory, both do not: 1 + 5 + 2 for one branch, then 5 + 2 for the other.
    problem = Problem.from_arrays(
        duration=[1, 5, 5, 2, 2], edges=[(0, 1), (0, 2), (1, 3), (2, 4)],
        tensors=[(1, 16 * HUGE + 1, [3]), (2, 16 * HUGE + 1, [4])], memory_bytes=32 * HUGE,
    )  # fmt: skip
    plan = msched.solve(problem, "cpsat", dispatch="planned")
    timeline = msched.simulate(problem, plan, "planned")
    assert timeline.peak_bytes <= 32 * HUGE
    assert timeline.makespan_ns == 15


def test_rounded_amounts_fit_whenever_the_true_ones_do() -> None:
    amounts = [[HUGE], [HUGE // 2 + 1], [3], [HUGE // 2 - 4]]
    rounded, room, unit, exact = counted(amounts, 2 * HUGE, 100)
    assert not exact
    assert unit > 1
    assert sum(row[0] for row in amounts) == 2 * HUGE
    assert sum(row[0] for row in rounded) <= room
    assert counted([[6], [9, 3]], 12, 100) == ([[2], [3, 1]], 4, 3, True)
    assert counted([[0], [0]], 0, 100) == ([[0], [0]], 0, 1, True)


@pytest.mark.parametrize("value", [-1, 0.5, "2", True, None])
def test_a_grain_that_is_no_whole_number_is_refused(value: Any) -> None:
    with pytest.raises(OptionError, match="grain_ns is "):
        CpSat(grain_ns=value)
    with pytest.raises(OptionError, match="grain_ns is "):
        msched.solve(Problem.from_arrays(duration=[1]), "cpsat", grain_ns=value)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("time_limit", value) for value in (-1, float("nan"), float("inf"), "5", None, True)),
        *(("workers", value) for value in (0, 1.5, "2", None, True, 10**6)),
        *(("seed", value) for value in (-1, 2**31, 1.0, "0", None)),
        *(("dispatch", value) for value in ("fifo", None, 3, ["arrival"])),
    ],
)
def test_an_option_of_the_wrong_kind_is_refused_by_name(option: str, value: Any) -> None:
    with pytest.raises(OptionError, match=f"{option} "):
        msched.solve(Problem.from_arrays(duration=[1]), "cpsat", **{option: value})


def test_numbers_of_numpy_are_numbers() -> None:
    plan = msched.solve(
        Problem.from_arrays(duration=[1, 2]), "cpsat", time_limit=np.float64(1), workers=np.int64(1), seed=np.int64(7)
    )
    assert plan.status == "optimal"
