"""Projects in Patterson's format (`.rcp`), as PSPLIB, RanGen and others write them.

Jobs and resources; the capacity of each resource; then, a job after another, its duration, the units it holds of each
resource, the number of its successors, and these, counted from 1. Source: Kolisch and Sprecher, PSPLIB - a project
scheduling problem library, European Journal of Operational Research 96 (1997).
"""

from __future__ import annotations

from msched.errors import FormatError
from msched.formats.problems import figures
from msched.formats.problems.layout import layouts
from msched.formats.problems.project import Project
from msched.problem import Problem

WHAT = "a project in Patterson's format"
LARGEST_BYTES = figures.LARGEST_BYTES


def recognises(head: bytes) -> bool:
    """Two figures, then as many as the second of them says."""
    return "patterson" in layouts(head)


def parse(data: bytes, name: str, streams: int | None) -> Problem:
    """One op a job, one engine a resource. Raises FormatError with the line."""
    text = figures.Figures(data)
    jobs, resources = text.take(2, "the number of jobs and of resources")
    if not jobs:
        raise FormatError(f"line {text.line}: 0 jobs; at least one is needed")
    text.expect(jobs * (resources + 2) + resources, f"{jobs} jobs with {resources} resources")
    text.table(jobs, resources)
    capacity = text.take(resources, "the capacity of each resource")
    project = Project("job", 1)
    for job in range(jobs):
        (duration,) = text.take(1, f"job {job + 1} of {jobs}")
        project.lines.append(text.line)
        project.modes.append([(duration, text.take(resources, f"the needs of job {job + 1}"))])
        (count,) = text.take(1, f"the number of successors of job {job + 1}")
        text.expect(count, f"the successors of job {job + 1}")
        for number in text.take(count, f"the {count} successors of job {job + 1}"):
            project.before.append(job)
            project.after.append(project.job(number, jobs, text.line))
    text.end(f"job {jobs}")
    return project.problem(name, capacity, streams)
