"""Overtakings that a schedule lets foresee, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from msched.solvers.securing_kernel import victims


def victims_of(
    start: list[int], limit: list[int], arrival: list[int], duration: list[int], demand: list[list[int]]
) -> list[int]:
    """Victims on engines of one unit each."""
    begin, last, there, takes, held = (np.array(x, np.int64) for x in (start, limit, arrival, duration, demand))
    found = victims(np.argsort(begin, kind="stable"), begin, last, there, takes, held, np.ones(held.shape[1], np.int64))
    return list(found.tolist())


@pytest.mark.parametrize(
    ("limit", "duration", "victim"),
    [
        (2, 10, 0),  # r is there at 0, before x at 2, and ends at 10
        (9, 10, 0),
        (10, 10, -1),  # x may wait until then
        (2, 2, -1),  # r is over when x comes
    ],
)
def test_who_comes_first_is_served_first(limit: int, duration: int, victim: int) -> None:
    # x (10) starts at 2, r at 12, on one unit.
    assert victims_of([2, 12], [limit, 12], [2, 0], [10, duration], [[1], [1]]) == [-1, victim]


def test_the_head_of_a_queue_blocks_who_stands_behind_it() -> None:
    # w wants both engines; a holds the first until 20. x comes at 5 to the second, free but for w, that heads its
    # queue since 1: x would start at 20 + 3, not at 5.
    demand = [[1, 0], [0, 1], [1, 1]]
    assert victims_of([0, 5, 20], [0, 5, 20], [0, 5, 1], [20, 4, 3], demand) == [-1, -1, 1]
    assert victims_of([0, 5, 20], [0, 23, 20], [0, 5, 1], [20, 4, 3], demand) == [-1, -1, -1]


def test_who_stands_ahead_in_the_queue_is_not_overtaken() -> None:
    # x waits since 0 for a, which ends at 10; w comes at 1.
    assert victims_of([0, 10, 20], [0, 10, 20], [0, 0, 1], [10, 10, 5], [[1], [1], [1]]) == [-1, -1, -1]
