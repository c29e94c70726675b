"""Bounds on published problems: never above the best known makespan, and how tight they are."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

import msched
from msched.bounds import destructive
from msched.problem import Problem

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"

pytestmark = pytest.mark.skipif(not (DATA / "OPTIMA.csv").is_file(), reason="../shared/data/OPTIMA.csv is not there")


def instances(family: str, prefix: str) -> Iterator[tuple[str, Problem, int]]:
    """Name, problem, and best known makespan."""
    with (DATA / "OPTIMA.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            name = row["instance"]
            if row["set"] != family or not name.startswith(prefix):
                continue
            path = (
                DATA / "psplib" / name.partition("_")[0] / f"{name}.rcp" if family == "psplib" else DATA / "jsp" / name
            )
            yield name, msched.read_problem(path), int(row["upper"])


def test_refuted_makespans_lie_below_the_optima_of_projects() -> None:
    # Every fourth of the 240 instances of j30; more than half of the optima are proven without any search.
    found = [(name, problem, upper) for name, problem, upper in instances("psplib", "j30")][::4]
    refuted = {name: destructive(problem, upper + 5, shaving=0) for name, problem, upper in found}
    optimum = {name: upper for name, _, upper in found}
    assert len(found) == 60
    assert {name: (least, optimum[name]) for name, least in refuted.items() if least > optimum[name]} == {}
    assert sum(least == optimum[name] for name, least in refuted.items()) > 30


@pytest.mark.slow
def test_refuted_makespans_lie_below_the_optima_of_job_shops() -> None:
    for name, problem, upper in instances("jsp", ""):
        assert destructive(problem, upper + 5, shaving=1 if problem.n <= 100 else 0, probes=20) <= upper, name


def test_ft06_is_proven_by_shaving() -> None:
    # Fisher and Thompson 1963: 55.
    assert destructive(msched.read_problem(DATA / "jsp" / "ft06"), 99) == 55
