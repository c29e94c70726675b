"""Series-parallel graphs: reduced to one edge by the rules that define them."""

from __future__ import annotations

import math
from typing import Any

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msched.errors import OptionError
from msched.networks import network
from msched.networks.series_parallel import build


def is_series_parallel(drawing: networkx.DiGraph[int]) -> bool:
    """By the reductions of Valdes, Tarjan and Lawler: an op with one edge in and one out becomes an edge, edges with
    the same ends become one (a DiGraph does that by itself), until one edge is left."""
    rest = networkx.DiGraph(drawing.edges)
    while chain := [v for v in rest if rest.in_degree(v) == rest.out_degree(v) == 1]:
        (before,), (after,) = rest.predecessors(chain[0]), rest.successors(chain[0])
        rest.remove_node(chain[0])
        rest.add_edge(before, after)
    return rest.number_of_edges() == 1


def test_the_reductions_tell_graphs_apart() -> None:
    assert is_series_parallel(networkx.DiGraph([(0, 1), (0, 2), (1, 3), (2, 3)]))
    assert not is_series_parallel(networkx.DiGraph([(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]))  # Wheatstone's bridge


@given(st.integers(2, 50), st.floats(0, 1), st.integers(2, 6), st.integers(0, 99))
def test_every_graph_reduces_to_one_edge(ops: int, parallel: float, branches: int, seed: int) -> None:
    drawing = build(ops, parallel, branches, seed).to_networkx()
    assert len(drawing) == ops
    assert is_series_parallel(drawing)
    assert [v for v in drawing if drawing.in_degree(v) == 0] == [0]
    assert [v for v in drawing if drawing.out_degree(v) == 0] == [ops - 1]
    assert max(d for _, d in drawing.out_degree) <= branches
    # every branch of a fork beyond the first closes one more cycle
    assert drawing.number_of_edges() == ops - 1 + sum(max(d - 1, 0) for _, d in drawing.out_degree)


def test_the_smallest_fork_by_hand() -> None:
    assert build(4, parallel=1).edges.tolist() == [[0, 1], [0, 2], [1, 3], [2, 3]]
    assert build(1).edges.tolist() == []


def test_a_series_only_is_a_chain() -> None:
    assert build(30, parallel=0).edges.tolist() == [[v, v + 1] for v in range(29)]


def test_forks_are_as_likely_as_asked() -> None:
    # Four ops are a fork with probability 0.3, else a chain; five standard deviations are allowed.
    forks = sum(len(build(4, 0.3, seed=seed).edges) == 4 for seed in range(500))
    assert forks == pytest.approx(150, abs=5 * math.sqrt(500 * 0.3 * 0.7))


def test_a_fork_has_each_number_of_branches_as_often() -> None:
    # 50 ops are one fork of 2, 3, 4 or 5 branches: of 400 seeds 100 each, five standard deviations allowed.
    width = [int((build(50, 1, 5, seed).edges[:, 0] == 0).sum()) for seed in range(400)]
    assert set(width) == {2, 3, 4, 5}
    assert all(width.count(k) == pytest.approx(100, abs=5 * math.sqrt(400 * 0.25 * 0.75)) for k in (2, 3, 4, 5))


@pytest.mark.slow
def test_a_hundred_thousand_ops() -> None:
    drawing = build(100_000)
    assert len(drawing.ops) == 100_000
    assert 100_000 <= len(drawing.edges) < 200_000


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"ops": 0}, "ops is 0; a whole number of at least 1"),
        ({"branches": 1}, "branches is 1; a whole number of at least 2"),
        ({"parallel": 1.1}, r"parallel is 1\.1; a number from 0 to 1"),
        ({"parallel": True}, "parallel is True"),
    ],
)
def test_parameters_that_make_no_sense(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        network("series_parallel", **parameters)
