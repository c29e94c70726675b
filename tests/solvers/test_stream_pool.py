from __future__ import annotations

import numpy as np
import pytest

from msched.problem import Problem
from msched.solvers.base import UnassignableError
from msched.solvers.stream_pool import follow_labels, stream_pool, within_limits


def _bound(duration: list[int], engine: list[int], **limits: object) -> Problem:
    return Problem.from_arrays(duration=duration, engine=engine, binding="engine", **limits)  # type: ignore[arg-type]


def test_free_binding_is_one_pool_of_no_more_streams_than_ops() -> None:
    problem = Problem.from_arrays(duration=[1, 1, 1], engine=[0, 1, 1])
    pool = stream_pool(problem, 8)
    assert (pool.of_op.tolist(), pool.first.tolist()) == ([0, 0, 0], [0, 3])
    assert stream_pool(problem, 2).first.tolist() == [0, 2]


def test_further_streams_go_to_the_engine_with_most_time_a_stream() -> None:
    # Loads 90 (3 ops), 40 (2 ops), none, 10. One stream each of the three in use leaves two: 90/1 is the most, then
    # 90/2 = 45 against 40.
    problem = _bound([30, 30, 30, 20, 20, 10], [0, 0, 0, 1, 1, 3])
    assert stream_pool(problem, 5).first.tolist() == [0, 3, 4, 4, 5]
    # A sixth: engine 0 has as many streams as ops, so it goes to engine 1. A seventh is of no use to anyone.
    assert stream_pool(problem, 6).first.tolist() == stream_pool(problem, 7).first.tolist() == [0, 3, 5, 5, 6]


def test_an_engine_keeps_to_its_own_limit() -> None:
    problem = _bound([30, 30, 30, 20, 20], [0, 0, 0, 1, 1], engine_streams=[1, None])
    assert stream_pool(problem, 4).first.tolist() == [0, 1, 3]


def test_equal_loads_go_by_index() -> None:
    assert stream_pool(_bound([5, 5, 5, 5], [0, 0, 1, 1]), 3).first.tolist() == [0, 2, 3]


@pytest.mark.parametrize(
    ("limits", "most", "reason"),
    [
        ({}, 1, "engines engine0, engine1 needs a stream of its own, but the solver may use 1"),
        ({"engine_streams": [0, None]}, 4, "engine 'engine0' is in use, but may have no stream"),
        ({"label": [3, 3]}, 4, "label of op 'op0' joins ops of 2 engines"),
    ],
)
def test_what_cannot_be_bound_is_named(limits: dict[str, object], most: int, reason: str) -> None:
    with pytest.raises(UnassignableError, match=reason):
        stream_pool(_bound([1, 1], [0, 1], **limits), most)


def test_labels_follow_their_first_op_in_topological_order() -> None:
    # op2 comes first of its label: op0 and op1 depend on it.
    problem = Problem.from_arrays(duration=[1] * 4, edges=[(2, 0), (2, 1)], label=[6, 6, 6, -1])
    assert follow_labels(problem, problem.topological_order).tolist() == [0, 0, 0, 1]


def test_streams_are_renumbered_in_sequence() -> None:
    problem = Problem.from_arrays(duration=[1] * 4, streams=3)
    assert within_limits(problem, np.array([7, 2, 7, 9])).tolist() == [1, 0, 1, 2]
