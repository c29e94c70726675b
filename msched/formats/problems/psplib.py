"""PSPLIB projects with one mode (`.sm`) or several (`.mm`), as ProGen and, for MMLIB, RanGen write them.

Source: Kolisch and Sprecher, PSPLIB - a project scheduling problem library, European Journal of Operational Research 96
(1997), section 3.
"""

from __future__ import annotations

import re

from msched.errors import FormatError
from msched.formats.problems import figures
from msched.formats.problems.figures import Figures
from msched.formats.problems.project import Project
from msched.problem import Problem

WHAT = "a PSPLIB project"
LARGEST_BYTES = figures.LARGEST_BYTES

_MARKS = re.compile(rb"PRECEDENCE RELATIONS:|jobs\s+\(incl\. supersource/sink")
_COUNT = re.compile(r"-?\s*(projects|jobs|renewable|nonrenewable|doubly constrained)\b[^:]*:\s*(\S+)")


def recognises(head: bytes) -> bool:
    """The headings of these files."""
    return _MARKS.search(head) is not None


def parse(data: bytes, name: str, streams: int | None) -> Problem:
    """One op a job, its modes in the order of the file, one engine a renewable resource.

    A nonrenewable resource is left out when it never binds, which is when its capacity covers the largest need of every
    job; a problem cannot express one that does, nor doubly constrained resources, releases and several projects, and
    they are refused. Raises FormatError with the line.
    """
    text = Figures(data)
    jobs, renewable, nonrenewable = _header(text)
    project = Project("job", 1)
    modes = _precedence(text, project, jobs)
    _requests(text, project, modes, renewable + nonrenewable)
    _heading(text, "RESOURCEAVAILABILITIES:")
    capacity = text.row("the capacity of each resource")
    if len(capacity) != renewable + nonrenewable:
        raise FormatError(
            f"line {text.line}: {len(capacity)} capacities for {renewable + nonrenewable} resources; one each is needed"
        )
    for kind in range(nonrenewable):
        most = sum(max(demand[renewable + kind] for _, demand in each) for each in project.modes)
        if most > capacity[renewable + kind]:
            raise FormatError(
                f"line {text.line}: nonrenewable resource N {kind + 1} has {capacity[renewable + kind]} units and the "
                f"jobs may need {most}; a problem has renewable resources only, and this one cannot be left out"
            )
    project.modes = [[(duration, demand[:renewable]) for duration, demand in each] for each in project.modes]
    return project.problem(name, capacity[:renewable], streams)


def _header(text: Figures) -> tuple[int, int, int]:
    """Jobs, renewable and nonrenewable resources; the text stands behind the heading of the precedence relations."""
    counts: dict[str, int] = {}
    for line in text.texts():
        if line.startswith("PRECEDENCE RELATIONS:"):
            break
        if found := _COUNT.match(line):
            counts[found[1]] = text.whole(found[2])
        if line.startswith("PROJECT INFORMATION"):
            text.text("the titles of the project information")
            release = text.row("the project information")[2:3]
            if any(release):
                raise FormatError(f"line {text.line}: the project is released at {release[0]}; only 0 can be expressed")
    else:
        raise FormatError(f"ends at line {text.line} without a line 'PRECEDENCE RELATIONS:'")
    for needed in ("jobs", "renewable"):
        if needed not in counts:
            raise FormatError(f"line {text.line}: the number of {needed} is not given above this line")
    if counts.get("projects", 1) != 1 or counts.get("doubly constrained", 0):
        raise FormatError(f"line {text.line}: one project without doubly constrained resources is needed")
    jobs, renewable, nonrenewable = counts["jobs"], counts["renewable"], counts.get("nonrenewable", 0)
    if not jobs:
        raise FormatError(f"line {text.line}: 0 jobs; at least one is needed")
    text.expect(jobs * (renewable + nonrenewable + 6), f"{jobs} jobs with {renewable + nonrenewable} resources")
    text.text("the titles of the precedence relations")
    return jobs, renewable, nonrenewable


def _precedence(text: Figures, project: Project, jobs: int) -> list[int]:
    """The number of modes of each job; its successors go to the project."""
    modes = []
    for job in range(jobs):
        row = text.row(f"the successors of job {job + 1} of {jobs}")
        if len(row) < 3 or row[0] != job + 1 or row[1] < 1 or len(row) != 3 + row[2]:
            raise FormatError(
                f"line {text.line}: the row of job {job + 1} is needed: its number, its modes (1 or more), the number "
                f"of its successors and these; it holds {len(row)} figures, and begins {row[:3]}"
            )
        modes.append(row[1])
        for number in row[3:]:
            project.before.append(job)
            project.after.append(project.job(number, jobs, text.line))
    return modes


def _requests(text: Figures, project: Project, modes: list[int], resources: int) -> None:
    """The duration and the needs of every mode of every job."""
    _heading(text, "REQUESTS/DURATIONS:")
    text.expect(sum(modes) * (resources + 2), f"{sum(modes)} modes with {resources} resources")
    text.table(sum(modes), resources)
    for job, count in enumerate(modes):
        project.modes.append([])
        for mode in range(count):
            row = text.row(f"mode {mode + 1} of job {job + 1}")
            project.lines += [text.line] if not mode else []
            # The number of a job stands in the row of its first mode alone, or in all of them.
            start = [job + 1, mode + 1] if not mode or len(row) == 3 + resources else [mode + 1]
            if row[: len(start)] != start or len(row) != len(start) + 1 + resources:
                raise FormatError(
                    f"line {text.line}: mode {mode + 1} of job {job + 1} is needed: its number, its duration and "
                    f"the needs of {resources} resources; it holds {len(row)} figures, and begins {row[:3]}"
                )
            project.modes[-1].append((row[len(start)], row[len(start) + 1 :]))


def _heading(text: Figures, heading: str) -> None:
    """Pass a heading, which must come next, and the line of titles below it."""
    line = text.text(f"the line {heading!r}")
    if not line.replace(" ", "").startswith(heading):
        raise FormatError(f"line {text.line}: {line[:40]!r} stands where {heading!r} should follow")
    text.text(f"the titles below {heading!r}")
