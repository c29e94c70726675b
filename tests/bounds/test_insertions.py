"""Ops between those of a path: by hand, and against the brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from msched.bounds import best_heads_and_tails, bound, inserted_ops
from msched.bounds.insertions import _STATES, _rounded
from msched.problem import Problem
from tests.reference.brute_force import optimum
from tests.strategies import problems


def inserted(problem: Problem) -> int:
    return inserted_ops(problem, *best_heads_and_tails(problem))


@settings(max_examples=200)
@given(problems(most_ops=5, labels=True, tensors=False))
def test_no_plan_is_shorter(problem: Problem) -> None:
    best = optimum(problem)
    assert best is not None
    assert inserted(problem) <= best[0]


def layers(count: int, buckets: int, *, compute: int, collective: int, bucket: int, released: bool) -> Problem:
    """Compute (engine 0) and a collective (engine 1) in turn, and all-reduces of buckets on engine 1, one after each
    collective from the first on."""
    duration = [d for _ in range(count) for d in (compute, collective)] + [bucket] * buckets
    demand = [d for _ in range(count) for d in ([1, 0], [0, 1])] + [[0, 1]] * buckets
    edges = [(v, v + 1) for v in range(2 * count - 1)]
    edges += [(2 * i + 1, 2 * count + i) for i in range(buckets)] if released else []
    return Problem.from_arrays(duration=duration, edges=edges, demand=demand, capacity=[1, 1])


def test_an_all_reduce_longer_than_the_pauses_delays_the_path() -> None:
    # The path takes 6 x 12 = 72 and leaves the link 10 at a time: an all-reduce of 14 in a pause delays it by 4. All of
    # them before the first collective or in pauses keep the link busy throughout.
    problem = layers(6, 6, compute=10, collective=2, bucket=14, released=False)
    assert inserted(problem) == 6 * 2 + 6 * 14
    # Released one after each collective: five pauses are left for them, of which each is 4 too short, and one follows.
    problem = layers(6, 6, compute=10, collective=2, bucket=14, released=True)
    assert inserted(problem) == 72 + 5 * 4 + 14
    problem = layers(6, 3, compute=10, collective=2, bucket=14, released=True)
    assert inserted(problem) == 72 + 3 * 4
    best = bound(problem)
    assert best.makespan_ns == 84
    assert best.each["ops between a path's"] == 84


def test_small_networks_of_this_kind_are_bounded_by_their_optimum() -> None:
    problem = layers(2, 1, compute=3, collective=1, bucket=5, released=True)
    best = optimum(problem)
    assert best is not None
    assert inserted(problem) == best[0] == 3 + 1 + 5 + 1


def test_what_must_run_before_a_descendant_on_the_path_does() -> None:
    # Ops 4 and 5 run between ops 0 and 2 of the path, on the same engine, in a pause of 4 for 6 + 6.
    problem = Problem.from_arrays(
        duration=[2, 4, 2, 30, 6, 6], edges=[(0, 1), (1, 2), (2, 3), (0, 4), (0, 5), (4, 2), (5, 2)],
        demand=[[0, 1], [1, 0], [0, 1], [1, 0], [0, 1], [0, 1]], capacity=[1, 1],
    )  # fmt: skip
    assert inserted(problem) == 2 + 12 + 2 + 30


@pytest.mark.parametrize("seed", range(4))
def test_durations_are_rounded_down_to_as_many_as_can_be_counted(seed: int) -> None:
    rng = np.random.default_rng(seed)
    duration = rng.choice([10, 11, 50, 52, 1000], 60)
    length, kind = _rounded(duration)
    assert np.prod([np.count_nonzero(kind == k) + 1 for k in range(length.size)]) <= _STATES
    assert (np.where(kind >= 0, length[kind], 0) <= duration).all()
    assert (length[kind[duration == 1000]] == 1000).all()
    few, exact = _rounded(np.array([5, 7, 7, 5, 9]))
    assert few[exact].tolist() == [5, 7, 7, 5, 9]
