"""Ops that exclude each other: checked by path search and by demands, and bounds by hand."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from msched.bounds import bound, clique_load, exclusive_sets
from msched.problem import Problem
from tests.strategies import problems


@given(problems(most_ops=8, limits=False, modes=False, tensors=False))
def test_no_two_ops_of_a_set_fit_together(problem: Problem) -> None:
    order = nx.transitive_closure_dag(nx.DiGraph(problem.edges.tolist()))
    for ops in exclusive_sets(problem):
        for u, v in combinations(ops.tolist(), 2):
            too_large = (problem.demand[u] + problem.demand[v] > problem.capacity).any()
            assert too_large or order.has_edge(u, v) or order.has_edge(v, u)


def test_three_engines_that_no_two_ops_can_share() -> None:
    # Each pair of ops meets on an engine of its own, so that the three of 5 ns run one after another.
    problem = Problem.from_arrays(duration=[5, 5, 5], demand=[[1, 1, 0], [1, 0, 1], [0, 1, 1]], capacity=[1, 1, 1])
    none = np.zeros(3, np.int64)
    assert [ops.tolist() for ops in exclusive_sets(problem)] == [[0, 1, 2]]
    assert clique_load(problem, none, none) == 15 == bound(problem).each["exclusive ops"]
    assert bound(problem).each["engine load"] == 10


def test_two_engines_that_must_alternate() -> None:
    # Compute 0 -> transfer 1 -> compute 2; op 3 holds both engines. All four exclude each other: 4 + 3 + 4 + 6.
    demand = [[1, 0], [0, 1], [1, 0], [1, 1]]
    problem = Problem.from_arrays(duration=[4, 3, 4, 6], demand=demand, capacity=[1, 1], edges=[(0, 1), (1, 2)])
    assert bound(problem).each["engine load"] == 14
    assert bound(problem).makespan_ns == 17


@pytest.mark.parametrize("n", [70, 300])
def test_every_op_is_in_a_set(n: int) -> None:
    # More ops than bits in a word; neighbours by index exclude each other on the engine of their own.
    demand = np.zeros((n, n // 2), np.int64)
    demand[np.arange(n), np.arange(n) // 2] = 1
    problem = Problem.from_arrays(duration=[3] * n, demand=demand, capacity=[1] * (n // 2))
    found = [ops.tolist() for ops in exclusive_sets(problem)]
    assert sorted(found) == [[v, v + 1] for v in range(0, n, 2)]
