"""Stencils: neighbours of each point by their definition, counts by formula."""

from __future__ import annotations

from typing import Any

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msched.errors import OptionError
from msched.networks import network
from msched.networks.stencil import build


@given(st.integers(1, 5), st.integers(1, 8), st.integers(0, 10), st.booleans())
def test_an_op_reads_the_points_within_its_radius(steps: int, width: int, radius: int, periodic: bool) -> None:
    graph = build(steps, width, radius, periodic)
    assert len(graph.ops) == steps * width

    def distance(x: int, y: int) -> int:
        return min((x - y) % width, (y - x) % width) if periodic else abs(x - y)

    expected = [
        [t * width + x, (t + 1) * width + y]
        for t in range(steps - 1)
        for x in range(width)
        for y in range(width)
        if distance(x, y) <= radius
    ]
    assert graph.edges.tolist() == expected


@given(st.integers(1, 5), st.integers(1, 20), st.integers(0, 9))
def test_the_number_of_dependencies_follows_the_formula(steps: int, width: int, radius: int) -> None:
    # 2 r + 1 readers a point, of which the points near the two ends lack 1 + 2 + ... + r each
    r = min(radius, width - 1)
    assert len(build(steps, width, radius).edges) == (steps - 1) * (width * (2 * r + 1) - r * (r + 1))
    around = min(2 * radius + 1, width)
    assert len(build(steps, width, radius, periodic=True).edges) == (steps - 1) * width * around


def test_the_longest_path_has_an_op_a_step_and_all_points_run_side_by_side() -> None:
    drawing = build(steps=6, width=5).to_networkx()
    assert [len(level) for level in networkx.topological_generations(drawing)] == [5] * 6


@pytest.mark.slow
def test_a_hundred_thousand_ops() -> None:
    graph = build(steps=100, width=1000)
    assert len(graph.ops) == 100_000
    assert len(graph.edges) == 99 * (3 * 1000 - 2)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"steps": 0}, "steps is 0; a whole number of at least 1"),
        ({"width": 0}, "width is 0; a whole number of at least 1"),
        ({"radius": -1}, "radius is -1; a whole number of at least 0"),
        ({"periodic": "yes"}, "periodic is 'yes'; true or false is needed"),
    ],
)
def test_parameters_that_make_no_sense(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        network("stencil", **parameters)
