from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msched.antichain import minimum_chain_cover, width
from msched.problem import Problem
from tests.strategies import problems


def ordered(problem: Problem) -> nx.DiGraph[int]:
    """All pairs of ops that the dependencies order, by networkx."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(problem.n))
    graph.add_edges_from(map(tuple, problem.edges.tolist()))
    return nx.transitive_closure_dag(graph)


def fewest_chains(closure: nx.DiGraph[int]) -> int:
    """Dilworth's number by Fulkerson (1956): ops less a largest matching of the closure, by Hopcroft and Karp."""
    graph: nx.Graph[tuple[str, int]] = nx.Graph()
    before = [("before", v) for v in closure]
    graph.add_nodes_from(before)
    graph.add_nodes_from(("after", v) for v in closure)
    graph.add_edges_from((("before", u), ("after", v)) for u, v in closure.edges)
    return len(before) - len(nx.bipartite.hopcroft_karp_matching(graph, before)) // 2


def check(problem: Problem) -> None:
    closure = ordered(problem)
    most, members = width(problem)
    assert most == len(members) == fewest_chains(closure)
    assert members.tolist() == sorted(set(members.tolist()))
    assert not any(closure.has_edge(u, v) for u in members.tolist() for v in members.tolist())
    chain = minimum_chain_cover(problem)
    assert chain.shape == (problem.n,)
    assert sorted(set(chain.tolist())) == list(range(most))
    for k in range(most):
        ops = [v for v in problem.topological_order.tolist() if chain[v] == k]
        assert all(closure.has_edge(u, v) for u, v in pairwise(ops))


@given(problems(most_ops=12))
def test_small_problems_against_hopcroft_and_karp(problem: Problem) -> None:
    check(problem)


@given(st.integers(13, 120), st.floats(0.001, 0.4), st.integers(1, 120), st.integers(0, 2**32 - 1))
def test_random_graphs_against_hopcroft_and_karp(ops: int, density: float, reach: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    name = random.permutation(ops)
    edges = [
        (int(name[u]), int(name[v]))
        for u in range(ops)
        for v in range(u + 1, min(ops, u + 1 + reach))
        if random.random() < density
    ]
    check(Problem.from_arrays(duration=[1] * ops, edges=edges))


def test_no_ops_have_no_width() -> None:
    problem = Problem.from_arrays(duration=[])
    assert width(problem)[0] == 0
    assert width(problem)[1].shape == (0,)
    assert minimum_chain_cover(problem).shape == (0,)


@pytest.mark.parametrize("rows", [1, 2, 37])
def test_width_of_a_grid_is_its_diagonal(rows: int) -> None:
    at = np.arange(rows * 50).reshape(rows, 50)
    edges = np.concatenate(
        [np.stack([at[:, :-1].ravel(), at[:, 1:].ravel()], 1), np.stack([at[:-1].ravel(), at[1:].ravel()], 1)]
    )
    problem = Problem.from_arrays(duration=[1] * at.size, edges=edges)
    most, members = width(problem)
    assert most == rows
    assert sorted(v // 50 for v in members.tolist()) == list(range(rows))


def test_paths_that_must_share_ops() -> None:
    """Three before and three after one op: three chains, though every path goes through the op in the middle."""
    edges = [(v, 3) for v in range(3)] + [(3, v) for v in range(4, 7)]
    problem = Problem.from_arrays(duration=[1] * 7, edges=edges)
    check(problem)
    assert width(problem)[0] == 3


def test_long_chains_with_many_cross_edges_keep_their_number() -> None:
    """A hundred chains of 300 ops have width 100 whatever runs forward between them."""
    random = np.random.default_rng(0)
    at = np.arange(30_000).reshape(100, 300)
    along = np.stack([at[:, :-1].ravel(), at[:, 1:].ravel()], 1)
    step = random.integers(0, 299, 60_000)
    across = np.stack([at[random.integers(0, 100, 60_000), step], at[random.integers(0, 100, 60_000), step + 1]], 1)
    edges = random.permutation(30_000)[np.concatenate([along, across])]
    problem = Problem.from_arrays(duration=np.ones(30_000, np.int64), edges=edges)
    most, members = width(problem)
    assert most == 100
    assert np.unique(minimum_chain_cover(problem)).size == 100
    assert np.unique(minimum_chain_cover(problem)[members]).size == 100
