"""Job shops in the format of the OR-Library and JSPLIB: jobs and machines, then a line a job.

A line is `machine duration` for each operation of the job in turn, machines counted from 0; `#` begins a comment.
Source of the problem: Muth and Thompson, Industrial Scheduling (1963); of the format: Beasley, OR-Library, Journal of
the Operational Research Society 41 (1990).
"""

from __future__ import annotations

from array import array

import numpy as np

from msched.errors import FormatError
from msched.formats.problems import figures
from msched.formats.problems.layout import layouts
from msched.problem import Problem

WHAT = "a job shop"
LARGEST_BYTES = figures.LARGEST_BYTES


def recognises(head: bytes) -> bool:
    """Two figures, then a line with two figures for each machine."""
    return "job_shop" in layouts(head)


def parse(data: bytes, name: str, streams: int | None) -> Problem:
    """One op an operation (`job0.op0`), one engine of one unit a machine; those of a job in a chain.

    Raises FormatError with the line.
    """
    text = figures.Figures(data)
    head = text.row("the number of jobs and of machines")
    if len(head) != 2 or not all(head):
        raise FormatError(f"line {text.line}: the number of jobs and of machines is needed, at least one of each")
    jobs, machines = head
    text.expect(2 * jobs * machines, f"{jobs} jobs on {machines} machines")
    text.table(jobs * machines, machines)
    machine, duration = array("q"), array("q")
    for job in range(jobs):
        row = text.row(f"job {job} of {jobs}, counted from 0")
        if len(row) != 2 * machines:
            raise FormatError(
                f"line {text.line}: job {job} has {len(row)} figures where {2 * machines} are needed, a machine and a "
                f"duration for each of {machines} operations"
            )
        if max(row[::2]) >= machines:
            raise FormatError(
                f"line {text.line}: there is no machine {max(row[::2])}; they are 0 to {machines - 1}, counted from 0"
            )
        machine.extend(row[::2])
        duration.extend(row[1::2])
    text.end(f"job {jobs - 1}")
    ops = np.arange(jobs * machines)
    demand = np.zeros((ops.size, machines), np.int64)
    demand[ops, np.array(machine)] = 1
    inside = ops[ops % machines > 0]
    return Problem.from_arrays(
        name=name,
        duration=np.array(duration, np.int64),
        demand=demand,
        capacity=[1] * machines,
        edges=np.stack([inside - 1, inside], axis=1),
        streams=streams,
        op_names=[f"job{v // machines}.op{v % machines}" for v in range(ops.size)],
        engine_names=[f"machine{k}" for k in range(machines)],
    )
