"""Jobs, their alternatives and what they wait for, as the formats of projects and task graphs give them."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from msched.arrays import Int64Array
from msched.errors import FormatError
from msched.problem import Problem
from msched.topology import find_cycle, topological_order

_SHOWN = 8  # jobs of a cycle that an error names


@dataclass
class Project:
    """What a file says, job by job; jobs count from 0 here and from `first` in the file.

    modes: of each job, (duration in ns, units of each resource), at least one. lines: where each job stands.
    before, after: the two ends of each dependency.
    """

    kind: str
    first: int
    modes: list[list[tuple[int, Sequence[int]]]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    before: array[int] = field(default_factory=lambda: array("q"))
    after: array[int] = field(default_factory=lambda: array("q"))

    def job(self, number: int, count: int, line: int) -> int:
        """The job that the file calls `number`. Raises FormatError where there is none."""
        if not self.first <= number < self.first + count:
            last = self.first + count - 1
            raise FormatError(f"line {line}: there is no {self.kind} {number}; they are {self.first} to {last}")
        return number - self.first

    def name(self, job: int) -> str:
        """What the file calls it."""
        return f"{self.kind}{job + self.first}"

    def problem(self, name: str, capacity: Sequence[int], streams: int | None) -> Problem:
        """The problem, without a dummy source and sink. capacity: of each resource; none may be there.

        Raises FormatError for a demand above its capacity and for jobs that wait for each other in a circle.
        """
        for job, modes in enumerate(self.modes):
            for _, demand in modes:
                for resource, (units, most) in enumerate(zip(demand, capacity, strict=True), 1):
                    if units > most:
                        raise FormatError(
                            f"line {self.lines[job]}: {self.kind} {job + self.first} needs {units} units of resource "
                            f"{resource}, which has {most}"
                        )
        edges = np.array([self.before, self.after], np.int64).T.reshape(-1, 2)
        self._refuse_cycle(edges)
        kept = self._without_dummies(edges)
        place = np.full(len(self.modes), -1, np.int64)
        place[kept] = np.arange(kept.size)
        edges = place[edges]
        jobs = [self.modes[job] for job in kept.tolist()]
        return Problem.from_arrays(
            name=name,
            duration=[modes[0][0] for modes in jobs],
            demand=np.array([m[0][1] for m in jobs], np.int64).reshape(len(jobs), len(capacity)) if capacity else None,
            capacity=capacity or None,
            edges=edges[(edges >= 0).all(axis=1)],
            modes=[(v, each[0], each[1] or [0]) for v, modes in enumerate(jobs) for each in modes[1:]],
            streams=streams,
            op_names=[self.name(job) for job in kept.tolist()],
            engine_names=[f"resource{k + 1}" for k in range(len(capacity))] or None,
        )

    def _refuse_cycle(self, edges: Int64Array) -> None:
        order = topological_order(len(self.modes), edges)
        if order.size == len(self.modes):
            return
        cycle = find_cycle(len(self.modes), edges, order)
        jobs = " -> ".join(self.name(job) for job in [*cycle, cycle[0]][:_SHOWN])
        rest = " -> ..." if len(cycle) >= _SHOWN else ""
        raise FormatError(f"line {self.lines[cycle[0]]}: jobs wait for each other in a circle: {jobs}{rest}")

    def _without_dummies(self, edges: Int64Array) -> Int64Array:
        """The jobs but the first and the last where they are idle and at an end of the order."""
        kept = np.ones(len(self.modes), np.bool_)
        for job, end in ((0, 1), (len(self.modes) - 1, 0)):
            idle = all(duration == 0 and not any(demand) for duration, demand in self.modes[job])
            if idle and not (edges[:, end] == job).any():
                kept[job] = False
        return np.flatnonzero(kept)
