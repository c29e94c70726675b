"""Benchmark files that others published: all are read, and no figure contradicts the published ones."""

from __future__ import annotations

import csv
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import msched
from msched.problem import Problem

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"

pytestmark = pytest.mark.skipif(not (DATA / "OPTIMA.csv").is_file(), reason="../shared/data/OPTIMA.csv is not there")


class Published(NamedTuple):
    """A row of OPTIMA.csv, and the file that it speaks of."""

    family: str
    name: str
    path: Path
    streams: int | None
    lower: int | None
    upper: int


@cache
def published() -> tuple[Published, ...]:
    rows = []
    with (DATA / "OPTIMA.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            family, name = row["set"], row["instance"]
            path = {
                "psplib": DATA / "psplib" / name.partition("_")[0] / f"{name}.rcp",
                "stg": DATA / "stg" / name,
                "jsp": DATA / "jsp" / name,
                "fjsp": DATA / "fjsp" / f"{name}.fjs",
            }[family]
            lower = int(row["lower"]) if row["lower"] else None
            streams = int(row["procs"]) if row["procs"] else None
            rows.append(Published(family, path.stem, path, streams, lower, int(row["upper"])))
    return tuple(rows)


def problem_of(name: str, streams: int | None = None) -> tuple[Problem, Published]:
    (row,) = [row for row in published() if row.name == name and row.streams == streams]
    return msched.read_problem(row.path, row.streams), row


def ops_announced(row: Published) -> int:
    """Jobs, tasks or operations that the file announces, without dummies."""
    lines = [line for line in row.path.read_text().splitlines() if not line.startswith("#")]
    head = [int(float(word)) for word in lines[0].split()]
    if row.family == "psplib":
        return head[0] - 2
    if row.family == "jsp":
        return head[0] * head[1]
    if row.family == "fjsp":
        return sum(int(line.split()[0]) for line in lines[1 : head[0] + 1])
    return head[0]


@pytest.mark.parametrize("family", ["psplib", "stg", "jsp", "fjsp"])
def test_bounds_and_list_schedules_enclose_what_is_published(family: str) -> None:
    rows = [row for row in published() if row.family == family]
    assert len(rows) == {"psplib": 279, "stg": 240, "jsp": 9, "fjsp": 5}[family]
    for row in rows:
        problem = msched.read_problem(row.path, row.streams)
        assert problem.n == ops_announced(row), row
        assert msched.bound(problem).makespan_ns <= row.upper, row
        plan = msched.solve(problem, "blevel")
        timeline = msched.simulate(problem, plan)
        assert timeline.makespan_ns >= (row.lower or 0), row
        assert msched.validate(problem, plan, timeline) == [], row


def test_dependencies_of_task_graphs_are_those_that_the_files_count() -> None:
    # e.g. "#   Edges             : 96 / 1225 (+dummy edges : 23)"
    for row in published():
        if row.family == "stg":
            (edges,) = re.findall(r"Edges +: (\d+) /", row.path.read_text())
            assert len(msched.read_problem(row.path, row.streams).edges) == int(edges), row


def test_dependencies_and_needs_of_projects_are_those_that_another_reader_finds() -> None:
    psplib = pytest.importorskip("psplib", reason="psplib is not installed; pip install -e '.[compare]' does it")
    for row in published():
        if row.family != "psplib":
            continue
        other = psplib.parse(row.path, instance_format="patterson")
        jobs = list(other.activities[1:-1])
        problem = msched.read_problem(row.path)
        assert problem.capacity.tolist() == [resource.capacity for resource in other.resources]
        assert problem.duration.tolist() == [job.modes[0].duration for job in jobs]
        assert problem.demand.tolist() == [job.modes[0].demands for job in jobs]
        last = len(other.activities) - 1
        pairs = {(v, after - 1) for v, job in enumerate(jobs) for after in job.successors if after != last}
        assert set(map(tuple, problem.edges.tolist())) == pairs, row


@pytest.mark.parametrize(
    ("name", "streams"),
    [
        ("ft06", None),
        ("la01", None),
        ("la02", None),
        ("Mk01", None),
        ("j30_1_3", None),
        ("j30_2_1", None),
        ("j30_12_1", None),
        ("rand0000", 4),
        ("rand0072", 8),
        ("rand0144", 4),
    ],
)
def test_the_published_optimum_is_proven(name: str, streams: int | None) -> None:
    problem, row = problem_of(name, streams)
    plan = msched.solve(problem, "cpsat", time_limit=60, workers=2)
    timeline = msched.simulate(problem, plan)
    assert plan.status == "optimal"
    assert row.lower == timeline.makespan_ns == row.upper
    assert msched.validate(problem, plan, timeline) == []
