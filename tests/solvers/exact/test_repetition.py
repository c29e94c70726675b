"""Repeated blocks: those of generated networks, told by the names of their ops, and of networks drawn by hand."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

import msched
from msched.problem import Problem
from msched.solvers.exact.repetition import largest_repetition, repetitions


def _names_of_blocks(problem: Problem) -> list[list[tuple[int, str]]]:
    """For each block the layer number and the rest of each op's name."""
    found = largest_repetition(problem)
    assert found is not None
    parts = [[re.fullmatch(r"layer(\d+)\.(.*)", problem.op_names[v]) for v in block] for block in found.blocks.tolist()]
    return [[(int(part[1]), part[2]) for part in row if part] for row in parts]


@pytest.mark.parametrize("slices", [1, 2])
def test_layers_of_a_transformer_are_blocks(slices: int) -> None:
    graph = msched.network("llama", size="65b", tensor_parallel=8, phase="prefill", layers=4, slices=slices)
    blocks = _names_of_blocks(msched.lower(graph, device="atlas_800i_a2", streams=8))
    assert len(blocks) == 4
    for block in blocks:
        assert len(block) == 20 * slices  # 20 ops a layer, says the network's docstring
        assert [name for _, name in block] == [name for _, name in blocks[0]]
    # A block may begin anywhere in a layer: each op moves by one layer from block to block.
    for before, after in itertools.pairwise(blocks):
        assert [layer for layer, _ in after] == [layer + 1 for layer, _ in before]


def test_slices_that_never_meet_keep_apart() -> None:
    graph = msched.network("llama", size="65b", tensor_parallel=8, phase="decode", batch=64, layers=6, slices=2)
    problem = msched.lower(graph, device="atlas_800i_a2", streams=8)
    blocks = _names_of_blocks(problem)
    assert len(blocks) >= 4
    for block in blocks[1:]:
        assert [name for _, name in block] == [name for _, name in blocks[0]]


def test_forward_and_backward_layers_are_two_runs() -> None:
    graph = msched.network("training", size="7b", tensor_parallel=8, data_parallel=8, layers=8)
    runs = repetitions(msched.lower(graph, device="atlas_800i_a2", streams=8))
    assert len(runs) == 2
    assert [len(run.blocks) for run in runs] in ([8, 7], [8, 8])


def _diamonds(count: int, odd: int | None = None, seed: int = 0) -> tuple[Problem, np.ndarray]:
    """A head of 9 ns, `count` diamonds of 1, 5, 7 and 2 ns, a tail of 4 ns; ops in an order drawn with the seed."""
    duration, edges = [9], [(0, 1)]
    for k in range(count):
        a = 1 + 4 * k
        duration += [1, 5, 7 if k != odd else 8, 2]
        edges += [(a, a + 1), (a, a + 2), (a + 1, a + 3), (a + 2, a + 3), (a + 3, a + 4)]
    duration.append(4)
    number = np.random.default_rng(seed).permutation(len(duration))
    shuffled = np.empty(len(duration), np.int64)
    shuffled[number] = duration
    moved = [(int(number[u]), int(number[v])) for u, v in edges]
    return Problem.from_arrays(duration=shuffled, edges=moved), number


@pytest.mark.parametrize("seed", range(5))
def test_blocks_are_found_whatever_the_numbers_of_the_ops(seed: int) -> None:
    problem, number = _diamonds(6, seed=seed)
    found = largest_repetition(problem)
    assert found is not None
    where = np.argsort(number)[found.blocks]
    assert found.blocks.shape == (6, 4)
    assert (np.diff(where, axis=0) == 4).all()
    assert sorted(where[0].tolist()) == [1, 2, 3, 4]
    assert sorted(map(tuple, found.edges.tolist())) == sorted([(0, 1, 0), (0, 2, 0), (1, 3, 0), (2, 3, 0), (3, 0, 1)])


def test_a_block_that_differs_ends_the_run() -> None:
    problem, number = _diamonds(9, odd=3)
    found = largest_repetition(problem)
    assert found is not None
    blocks_of = (np.argsort(number)[found.blocks] - 1) // 4
    assert not (blocks_of == 3).all(axis=1).any()
    assert len(found.blocks) >= 4


def test_nothing_repeats_where_nothing_is_alike() -> None:
    graph = msched.network("random_layered", seed=1)
    assert repetitions(msched.lower(graph, device="atlas_800i_a2", streams=8)) == ()
    assert repetitions(Problem.from_arrays(duration=[])) == ()
    assert repetitions(Problem.from_arrays(duration=[3, 3], edges=[(0, 1)])) == ()
    assert largest_repetition(Problem.from_arrays(duration=[5] * 9, edges=[(v, v + 1) for v in range(8)])) is None
