"""Telling apart the formats that hold nothing but figures: by how many of them stand in each line.

A task graph begins with one figure. Two figures, jobs and machines or resources, begin a project in Patterson's format
when as many capacities follow in the second line, a job shop when a line holds a pair for each machine, and a flexible
job shop when every line divides into operations and their alternatives; three figures begin only the latter.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msched.formats.problems.figures import first_rows

_DIGITS = 18  # of the largest figure; Python refuses to convert some thousands
_FIGURE = re.compile(rb"-?[0-9]+(?:\.[0-9]*)?")


@lru_cache(maxsize=4)
def layouts(head: bytes) -> frozenset[str]:
    """The formats (`patterson`, `job_shop`, `flexible_job_shop`, `task_graph_set`) that a file may be of."""
    rows = first_rows(head)
    if not rows or not all(_FIGURE.fullmatch(word) for row in rows[:2] for word in row):
        return frozenset()
    if len(rows[0]) == 1:
        return frozenset({"task_graph_set"})
    if len(rows[0]) == 3:
        return frozenset({"flexible_job_shop"})
    if len(rows[0]) != 2 or len(rows) < 2 or not _whole(rows[0]):
        return frozenset()
    jobs, columns = (int(word) for word in rows[0])
    body = rows[1 : max(jobs, 1) + 1]
    found = set()
    if all(_divides(row) for row in body):
        found.add("flexible_job_shop")
    if (len(body[0]) == columns or not columns) and not found:
        found.add("patterson")
    if len(body[0]) == 2 * columns and (not found or all(len(row) == 2 * columns for row in body)):
        found.add("job_shop")
    return frozenset(found)


def _divides(row: list[bytes]) -> bool:
    """Whether a line is a number of operations and, for each, a number of alternatives and two figures for each."""
    if not _whole(row):
        return False
    place, operations = 1, int(row[0])
    for _ in range(min(operations, len(row))):
        if place >= len(row):
            return False
        place += 1 + 2 * int(row[place])
    return operations > 0 and place == len(row)


def _whole(row: list[bytes]) -> bool:
    return all(word.isdigit() and len(word) <= _DIGITS for word in row)
