"""Fork-join graphs: counts by formula, barriers, length of the longest path."""

from __future__ import annotations

from typing import Any

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msched.errors import OptionError
from msched.networks import network
from msched.networks.fork_join import build

SMALL = st.integers(1, 4)


@given(SMALL, SMALL, SMALL)
def test_counts_follow_the_formula(stages: int, branches: int, length: int) -> None:
    graph = build(stages, branches, length)
    assert len(graph.ops) == stages * branches * length + stages + 1
    assert len(graph.edges) == stages * branches * (length + 1)


@given(SMALL, st.integers(2, 4), SMALL)
def test_barriers_are_what_every_other_op_comes_before_or_after(stages: int, branches: int, length: int) -> None:
    drawing = build(stages, branches, length).to_networkx()
    barriers = [
        v
        for v in drawing
        if len(networkx.ancestors(drawing, v)) + len(networkx.descendants(drawing, v)) == len(drawing) - 1
    ]
    assert barriers == [k * (branches * length + 1) for k in range(stages + 1)]
    drawing.remove_nodes_from(barriers)
    parts = list(networkx.weakly_connected_components(drawing))
    assert [len(part) for part in parts] == [length] * (stages * branches)
    assert all(networkx.is_path(drawing, sorted(part)) for part in parts)


def test_the_longest_path_goes_through_one_branch_a_stage() -> None:
    drawing = build(stages=5, branches=3, length=4).to_networkx()
    assert networkx.dag_longest_path_length(drawing) == 5 * (4 + 1)  # dependencies, one fewer than ops


@pytest.mark.slow
def test_a_hundred_thousand_ops() -> None:
    graph = build(stages=100, branches=100, length=10)
    assert len(graph.ops) == 100 * 1001 + 1
    assert len(graph.edges) == 100 * 100 * 11


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"stages": 0}, "stages is 0; a whole number of at least 1"),
        ({"branches": 1.5}, r"branches is 1\.5"),
        ({"length": True}, "length is True"),
    ],
)
def test_parameters_that_make_no_sense(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        network("fork_join", **parameters)
