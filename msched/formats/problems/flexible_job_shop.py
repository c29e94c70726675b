"""Flexible job shops (`.fjs`): job shops whose operations may choose among machines.

The first line has the jobs, the machines and, in some files, the mean number of machines an operation may choose from.
A line a job follows: its number of operations and, for each, the number of its alternatives and `machine duration` for
each of these, machines counted from 1. Source: Brandimarte, Routing and scheduling in a flexible job shop by tabu
search, Annals of Operations Research 41 (1993).
"""

from __future__ import annotations

import re

import numpy as np

from msched.errors import FormatError
from msched.formats.problems import figures
from msched.formats.problems.figures import Figures
from msched.formats.problems.layout import layouts
from msched.problem import Problem

WHAT = "a flexible job shop"
LARGEST_BYTES = figures.LARGEST_BYTES

_Alternatives = list[tuple[int, int]]  # (machine from 0, duration) each


def recognises(head: bytes) -> bool:
    """Three figures, or two and then lines that divide into operations and their alternatives."""
    return "flexible_job_shop" in layouts(head)


def parse(data: bytes, name: str, streams: int | None) -> Problem:
    """One op an operation (`job0.op0`), a mode for each alternative, one engine of one unit a machine.

    Raises FormatError with the line.
    """
    text = Figures(data)
    jobs, machines = _header(text)
    ops: list[_Alternatives] = []
    names: list[str] = []
    edges: list[tuple[int, int]] = []
    alternatives = 0
    for job in range(jobs):
        operations = _operations(text.row(f"job {job} of {jobs}, counted from 0"), job, machines, text.line)
        alternatives += sum(map(len, operations))
        text.table(alternatives, machines)
        edges += [(len(ops) + k - 1, len(ops) + k) for k in range(1, len(operations))]
        names += [f"job{job}.op{k}" for k in range(len(operations))]
        ops += operations
    text.end(f"job {jobs - 1}")
    unit = np.eye(machines, dtype=np.int64)
    return Problem.from_arrays(
        name=name,
        duration=[each[0][1] for each in ops],
        demand=unit[[each[0][0] for each in ops]],
        capacity=[1] * machines,
        edges=edges,
        modes=[(v, duration, unit[machine]) for v, each in enumerate(ops) for machine, duration in each[1:]],
        streams=streams,
        op_names=names,
        engine_names=[f"machine{k + 1}" for k in range(machines)],
    )


def _header(text: Figures) -> tuple[int, int]:
    """Jobs and machines; the mean number of alternatives says nothing that the lines do not."""
    words = text.text("the number of jobs and of machines").split()
    jobs, machines = (text.whole(word) for word in words[:2]) if len(words) in (2, 3) else (0, 0)
    if not jobs or not machines or not all(re.fullmatch(r"[0-9]+(\.[0-9]*)?", word) for word in words[2:]):
        raise FormatError(f"line {text.line}: the number of jobs and of machines is needed, at least one of each")
    text.expect(4 * jobs, f"{jobs} jobs")
    text.table(machines, machines)
    return jobs, machines


def _operations(row: list[int], job: int, machines: int, line: int) -> list[_Alternatives]:
    """The alternatives of each operation of a job."""
    place = 1
    operations: list[_Alternatives] = []
    while len(operations) < row[0] and place < len(row):
        count = row[place]
        pairs = row[place + 1 : place + 1 + 2 * count]
        if not count or len(pairs) != 2 * count:
            raise FormatError(
                f"line {line}: operation {len(operations)} of job {job} announces {count} alternatives, and "
                f"{len(pairs)} figures follow; a machine and a duration for each, at least one, are needed"
            )
        for machine in pairs[::2]:
            if not 1 <= machine <= machines:
                raise FormatError(
                    f"line {line}: there is no machine {machine}; they are 1 to {machines}, counted from 1"
                )
        operations.append([(machine - 1, duration) for machine, duration in zip(pairs[::2], pairs[1::2], strict=True)])
        place += 1 + 2 * count
    if not row[0] or len(operations) != row[0] or place != len(row):
        raise FormatError(
            f"line {line}: job {job} announces {row[0]} operations, and its line holds {len(operations)} and "
            f"{len(row) - place} more figures"
        )
    return operations
