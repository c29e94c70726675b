"""Pipelines: the steps that GPipe counts, the passes of each micro-batch, the order on each stage."""

from __future__ import annotations

from typing import Any

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msched.errors import OptionError
from msched.graph import OpGraph
from msched.networks import network
from msched.networks.pipeline import build

SMALL = st.integers(1, 6)


def names(graph: OpGraph) -> set[tuple[str, str]]:
    return {(graph.ops[u].name, graph.ops[v].name) for u, v in graph.edges.tolist()}


def longest_ns(graph: OpGraph) -> int:
    """Length of the longest path, its ops counted by duration."""
    end: dict[int, int] = {}
    drawing = graph.to_networkx()
    for v in networkx.topological_sort(drawing):
        end[v] = (graph.ops[v].duration_ns or 0) + max((end[u] for u in drawing.predecessors(v)), default=0)
    return max(end.values())


@given(SMALL, SMALL)
def test_a_forward_pass_takes_the_steps_of_gpipe(stages: int, micro_batches: int) -> None:
    graph = build(stages, micro_batches, median_ns=2000, spread=0)
    assert len(graph.ops) == stages * micro_batches
    assert len(graph.edges) == micro_batches * (stages - 1) + stages * (micro_batches - 1)
    assert longest_ns(graph) == 2000 * (stages + micro_batches - 1)


@given(SMALL, SMALL)
def test_forward_and_backward_take_twice_the_steps(stages: int, micro_batches: int) -> None:
    graph = build(stages, micro_batches, backward=True, median_ns=2000, spread=0)
    assert len(graph.ops) == 2 * stages * micro_batches
    assert longest_ns(graph) == 2 * 2000 * (stages + micro_batches - 1)
    # a chain of 2 K ops a micro-batch, the activations kept (those of the last stage are that chain), the orders
    kept = (stages - 1) * micro_batches
    assert len(graph.edges) == (2 * stages - 1) * micro_batches + kept + 2 * stages * (micro_batches - 1)


def test_two_stages_and_two_micro_batches_by_hand() -> None:
    forward = {
        ("forward0.stage0", "forward0.stage1"),
        ("forward1.stage0", "forward1.stage1"),
        ("forward0.stage0", "forward1.stage0"),
        ("forward0.stage1", "forward1.stage1"),
    }
    assert names(build(2, 2)) == forward
    assert names(build(2, 2, backward=True)) == forward | {
        ("backward0.stage1", "backward0.stage0"),
        ("backward1.stage1", "backward1.stage0"),
        ("backward1.stage0", "backward0.stage0"),
        ("backward1.stage1", "backward0.stage1"),
        ("forward0.stage0", "backward0.stage0"),
        ("forward1.stage0", "backward1.stage0"),
        ("forward0.stage1", "backward0.stage1"),
        ("forward1.stage1", "backward1.stage1"),
    }


def test_the_order_on_a_stage_carries_no_data() -> None:
    graph = build(3, 4, backward=True)
    stage = [op.name.split(".")[1] for op in graph.ops]
    assert len(graph.control) == 2 * 3 * 3
    assert all(stage[u] == stage[v] for u, v in graph.control)
    # an activation is read by the next stage and, later, by its own stage on the way back
    assert sorted(len(t.consumers) for t in graph.tensors) == sorted([2] * 8 + [1] * 4 + [1] * 8 + [0] * 4)


def test_a_stage_does_the_same_for_every_micro_batch() -> None:
    graph = build(5, 7, backward=True)
    work: dict[str, set[Any]] = {}
    for op in graph.ops:
        batch, stage = op.name.split(".")
        key = batch.rstrip("0123456789") + stage
        work.setdefault(key, set()).add((op.kind, op.duration_ns, op.bytes_read, op.matmul))
    assert len(work) == 10
    assert all(len(same) == 1 for same in work.values())


@pytest.mark.slow
def test_a_hundred_thousand_ops() -> None:
    graph = build(stages=100, micro_batches=500, backward=True)
    assert len(graph.ops) == 100_000
    assert len(graph.edges) == 199 * 500 + 99 * 500 + 200 * 499


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"stages": 0}, "stages is 0; a whole number of at least 1"),
        ({"micro_batches": 0}, "micro_batches is 0; a whole number of at least 1"),
        ({"backward": 1}, "backward is 1; true or false is needed"),
    ],
)
def test_parameters_that_make_no_sense(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        network("pipeline", **parameters)
