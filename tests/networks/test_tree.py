"""Trees: shape against networkx, random ones against what is known of recursive trees."""

from __future__ import annotations

import math
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msched.errors import OptionError
from msched.networks import network
from msched.networks.tree import build


@given(st.integers(1, 40), st.none() | st.integers(1, 5), st.integers(0, 99))
def test_out_trees_are_trees_from_their_first_op(ops: int, arity: int | None, seed: int) -> None:
    drawing = build(ops, "out", arity, seed).to_networkx()
    assert drawing.number_of_edges() == ops - 1
    assert networkx.is_arborescence(drawing)
    assert [v for v in drawing if drawing.in_degree(v) == 0] == [0]


@given(st.integers(1, 40), st.none() | st.integers(1, 5), st.integers(0, 99))
def test_in_trees_are_out_trees_turned_round(ops: int, arity: int | None, seed: int) -> None:
    inward, outward = build(ops, "in", arity, seed), build(ops, "out", arity, seed)
    assert sorted((ops - 1 - v, ops - 1 - u) for u, v in inward.edges.tolist()) == list(
        map(tuple, outward.edges.tolist())
    )
    assert [t.producer for t in inward.tensors if t.output] == [ops - 1]


@given(st.integers(1, 60), st.integers(1, 6))
def test_full_trees_are_those_of_networkx(ops: int, arity: int) -> None:
    expected = networkx.full_rary_tree(arity, ops, create_using=networkx.DiGraph)
    assert sorted(expected.edges) == list(map(tuple, build(ops, "out", arity).edges.tolist()))


def test_half_of_a_random_recursive_tree_is_leaves() -> None:
    # Najock and Heyde (1982): n / 2 leaves on average with variance n / 12; five standard deviations are allowed.
    n = 20_000
    leaves = n - np.unique(build(n, "out", seed=1).edges[:, 0]).size
    assert leaves == pytest.approx(n / 2, abs=5 * math.sqrt(n / 12))


def test_every_tree_of_three_ops_is_as_likely() -> None:
    # Op 1 hangs on op 0; op 2 on either: of 400 seeds 200 +- 10 each, five standard deviations allowed.
    chains = sum(build(3, "out", seed=seed).edges.tolist() == [[0, 1], [1, 2]] for seed in range(400))
    assert chains == pytest.approx(200, abs=50)


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["in", "out"])
def test_a_hundred_thousand_ops(direction: str) -> None:
    graph = build(100_000, direction)
    assert len(graph.ops) == 100_000
    assert len(graph.edges) == 99_999


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"ops": 0}, "ops is 0; a whole number of at least 1"),
        ({"arity": 0}, "arity is 0; a whole number of at least 1"),
        ({"direction": "up"}, "direction 'up' is not known; there are: in, out"),
        ({"direction": None}, "direction None is not known"),
    ],
)
def test_parameters_that_make_no_sense(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        network("tree", **parameters)
