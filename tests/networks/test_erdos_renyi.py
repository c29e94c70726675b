"""Erdos-Renyi graphs: how many pairs are drawn, and that all are drawn alike."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msched.errors import OptionError
from msched.networks import network
from msched.networks.erdos_renyi import build


@given(st.integers(1, 30), st.integers(0, 99))
def test_every_op_depends_on_all_before_it_or_on_none_at_the_two_ends(ops: int, seed: int) -> None:
    assert build(ops, ops - 1, seed).edges.tolist() == [list(pair) for pair in combinations(range(ops), 2)]
    assert build(ops, 0, seed).edges.tolist() == []


def test_the_degree_is_the_one_asked_for() -> None:
    # 20,000 x 6 / 2 pairs on average; their number is binomial, five standard deviations are allowed.
    assert len(build(20_000, 6, seed=2).edges) == pytest.approx(60_000, abs=5 * math.sqrt(60_000))


def test_every_graph_of_three_ops_is_as_likely() -> None:
    # Each of the three pairs with probability 1/2, by itself: 8 graphs, 100 of 800 each, five standard deviations.
    found = Counter(str(build(3, 1, seed).edges.tolist()) for seed in range(800))
    assert len(found) == 8
    assert all(count == pytest.approx(100, abs=5 * math.sqrt(800 * 7 / 64)) for count in found.values())


def test_late_pairs_are_drawn_as_often_as_early_ones() -> None:
    # 5,000 ops, 50,000 pairs on average: op v has v x degree / (n - 1) predecessors, so the later half of the ops has
    # 3/4 of them; the share has a standard deviation of sqrt(3/16 / 50,000), five are allowed.
    edges = build(5_000, 20, seed=1).edges
    assert (edges[:, 1] >= 2_500).mean() == pytest.approx(0.75, abs=5 * math.sqrt(3 / 16 / 50_000))
    assert (edges[:, 0] < 2_500).mean() == pytest.approx(0.75, abs=5 * math.sqrt(3 / 16 / 50_000))


@pytest.mark.slow
def test_a_hundred_thousand_ops() -> None:
    graph = build(100_000, 4)
    assert len(graph.ops) == 100_000
    assert len(graph.edges) == pytest.approx(200_000, abs=5 * math.sqrt(200_000))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"ops": 0}, "ops is 0; a whole number of at least 1"),
        ({"degree": -1}, "degree is -1; a number from 0 to ops - 1, 99 here, is needed"),
        ({"ops": 3, "degree": 2.5}, r"degree is 2\.5; a number from 0 to ops - 1, 2 here"),
        ({"degree": "many"}, "degree is 'many'"),
    ],
)
def test_parameters_that_make_no_sense(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        network("erdos_renyi", **parameters)
