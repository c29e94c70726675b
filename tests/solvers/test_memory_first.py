"""MemoryFirst: by hand, and against the peak of every issue order."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msched.problem import Problem
from msched.solvers.base import Budget
from msched.solvers.low_peak import serial_peak
from msched.solvers.order.memory_first import MemoryFirst
from tests.reference.simulator import peak_bytes


def sequenced(problem: Problem) -> list[int]:
    return MemoryFirst().sequence(problem, np.zeros(problem.n, np.int64), Budget()).tolist()


def peak_of(problem: Problem, order: list[int]) -> int:
    """Most bytes live when ops of 1 ns run in this order, one after the other."""
    start = [order.index(v) for v in range(problem.n)]
    return peak_bytes(problem, start, [time + 1 for time in start])


def unit_problem(tensors: list[tuple[int, int, list[int]]], **options: Any) -> Problem:
    """Ops of 1 ns with these tensors, each a dependency of its consumers."""
    edges = [(u, v) for u, _, consumers in tensors for v in consumers]
    n = 1 + max(v for edge in edges for v in edge)
    return Problem.from_arrays(duration=[1] * n, edges=edges, tensors=tensors, **options)


def test_one_branch_ends_before_the_next_begins() -> None:
    # op0 feeds op1 and op2, 10 bytes each, which op3 and op4 turn into one byte each for op5.
    # Level by level: 10, 20, 20 + 1 = 21. Branch by branch: 10, 10 + 1, then 1 + 10, 1 + 10 + 1 = 12.
    tensors = [(0, 0, [1, 2]), (1, 10, [3]), (2, 10, [4]), (3, 1, [5]), (4, 1, [5])]
    problem = unit_problem(tensors)
    assert serial_peak(problem, np.array([0, 1, 2, 3, 4, 5])) == 21
    assert serial_peak(problem, np.array([0, 1, 3, 2, 4, 5])) == 12
    order = sequenced(problem)
    assert serial_peak(problem, np.array(order)) == 12
    assert order in ([0, 1, 3, 2, 4, 5], [0, 2, 4, 1, 3, 5])


def test_the_op_that_makes_least_goes_first() -> None:
    # op1 (2) -> op2 (5) -> op3 and op0 (3) -> op3. By index 3, 3 + 2, 3 + 2 + 5 = 10. Least first: 2, 2 + 5, 5 + 3 = 8.
    problem = unit_problem([(1, 2, [2]), (0, 3, [3]), (2, 5, [3])])
    assert serial_peak(problem, problem.topological_order) == 10
    assert sequenced(problem) == [1, 2, 0, 3]


def test_looking_from_the_end_saves_what_looking_ahead_wastes() -> None:
    # op0 (5) -> op1 (2) -> op3 and op2 (3) -> op3. Least first: 3, 3 + 5, 3 + 5 + 2 = 10. From the end, op2 is the
    # last to come before op3: 5, 5 + 2, 2 + 3 = 7.
    problem = unit_problem([(0, 5, [1]), (1, 2, [3]), (2, 3, [3])])
    assert serial_peak(problem, np.array([2, 0, 1, 3])) == 10
    assert sequenced(problem) == [0, 1, 2, 3]
    assert serial_peak(problem, np.array([0, 1, 2, 3])) == 7


@pytest.mark.parametrize(
    ("options", "peak"),
    [
        ({}, 7),  # op1: 5 + 2; op2: 2
        ({"workspace": [3, 0, 6]}, 8),  # op0: 5 + 3; op1: 7; op2: 2 + 6
        ({"outputs": [0]}, 7),  # op0 5; op1: 5 + 2; op2: the 5 stay, 5 + 2
        ({"outputs": [0], "workspace": [0, 0, 6]}, 13),  # op2: 5 + 2 + 6
    ],
)
def test_peaks_count_inputs_outputs_workspaces_and_what_is_kept(options: dict[str, Any], peak: int) -> None:
    problem = unit_problem([(0, 5, [1]), (1, 2, [2])], **options)
    assert serial_peak(problem, np.array([0, 1, 2])) == peak
    assert sequenced(problem) == [0, 1, 2]


def test_persistent_tensors_are_beside_the_peak() -> None:
    problem = Problem.from_arrays(duration=[1, 1], edges=[(0, 1)], tensors=[(0, 5, [1]), (None, 100, [0, 1])])
    assert serial_peak(problem, np.array([0, 1])) == 5


def test_nothing_to_sequence() -> None:
    assert sequenced(Problem.from_arrays(duration=[])) == []


@st.composite
def tensor_problems(draw: st.DrawFn) -> Problem:
    """Up to six ops of 1 ns, each with at most one tensor, numbered against their order."""
    n = draw(st.integers(1, 6))
    name = draw(st.permutations(range(n)))
    edges = [(name[u], name[v]) for v in range(n) for u in range(v) if draw(st.integers(0, 2)) == 0]
    makers = [u for u in range(n) if draw(st.integers(0, 4))]
    tensors = [(u, draw(st.integers(0, 9)), [v for w, v in edges if w == u and draw(st.booleans())]) for u in makers]
    outputs = [t for t in range(len(tensors)) if draw(st.integers(0, 3)) == 0]
    workspace = draw(st.lists(st.sampled_from([0, 0, 2, 5]), min_size=n, max_size=n))
    return Problem.from_arrays(duration=[1] * n, edges=edges, tensors=tensors, outputs=outputs, workspace=workspace)


@given(tensor_problems())
def test_its_peak_lies_between_the_least_of_all_orders_and_the_topological_one(problem: Problem) -> None:
    graph: networkx.DiGraph[int] = networkx.DiGraph()
    graph.add_nodes_from(range(problem.n))
    graph.add_edges_from(problem.edges.tolist())
    peaks = {tuple(order): peak_of(problem, order) for order in networkx.all_topological_sorts(graph)}
    peak = peaks[tuple(sequenced(problem))]  # a KeyError: no linear extension
    assert min(peaks.values()) <= peak <= peaks[tuple(problem.topological_order.tolist())]
    assert all(serial_peak(problem, np.array(order)) == peaks[order] for order in peaks)
