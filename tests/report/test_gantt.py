from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msched.plan import Plan
from msched.problem import Problem
from msched.report import palette
from msched.report.gantt import _busy_share, _merged, gantt
from msched.simulator import Timeline, simulate


def run(ops: int, streams: int) -> Timeline:
    """Ops of 1 us in a chain, on two engines in turn and on streams in turn."""
    problem = Problem.from_arrays(
        duration=[1000] * ops,
        edges=[(v, v + 1) for v in range(ops - 1)],
        demand=[[1 - v % 2, v % 2] for v in range(ops)],
        capacity=[2, 1],
        engine_names=["cube", "vector"],
    )
    return simulate(problem, Plan(stream=np.arange(ops) % streams, order=np.arange(ops)))


def lengths(axes: Any) -> list[float]:
    """Lengths of all bars that are filled with a colour of the palette."""
    from matplotlib.colors import to_rgba

    known = {to_rgba(colour) for colour in palette.COLOURS}
    bars = [c for c in axes.collections if len(c.get_facecolor()) and tuple(c.get_facecolor()[0]) in known]
    return [float(np.ptp(path.vertices[:, 0])) for bar in bars for path in bar.get_paths()]


def test_every_op_is_a_bar_on_its_lane() -> None:
    figure = gantt(run(6, 3), "six ops", bound_ns=5000)
    lanes, use = figure.axes
    assert [label.get_text() for label in lanes.get_yticklabels()] == ["stream 0", "stream 1", "stream 2"]
    assert [label.get_text() for label in use.get_yticklabels()] == ["cube", "vector"]
    assert lengths(lanes) == pytest.approx([1.0] * 6)  # us
    assert lanes.get_title(loc="left") == "six ops"
    assert [float(line.get_xdata()[0]) for line in lanes.lines] == [5.0]
    assert {text.get_text() for text in lanes.texts} == {f"op{v}" for v in range(6)}
    assert [text.get_text() for text in use.texts] == [
        "25%",
        "50%",
    ]  # 3 us of 6 on one of two units, and on the only one


def test_many_ops_are_drawn_as_fewer_blocks() -> None:
    ops = 6000
    figure = gantt(run(ops, 1), "dense")
    lanes = figure.axes[0]
    drawn = lengths(lanes)
    assert 0 < len(drawn) < ops
    assert not lanes.texts


@pytest.mark.parametrize("ops", [0, 1])
def test_smallest_charts(ops: int, tmp_path: Path) -> None:
    assert len(palette.save(gantt(run(ops, 1), "small"), tmp_path / "gantt")) == 2


def test_without_engine_limits_there_is_no_use_to_draw() -> None:
    problem = Problem.from_arrays(duration=[5, 5])
    timeline = simulate(problem, Plan(stream=[0, 0], order=[0, 1]))
    assert len(gantt(timeline, "free").axes) == 1


def test_merged_closes_gaps_that_no_pixel_shows() -> None:
    begin, end = np.array([0, 12, 30]), np.array([10, 20, 40])
    assert [part.tolist() for part in _merged(begin, end, 2)] == [[0, 30], [20, 40]]
    assert [part.tolist() for part in _merged(begin, end, 0)] == [[0, 12, 30], [10, 20, 40]]
    assert [part.tolist() for part in _merged(begin, end, 10)] == [[0], [40]]


def test_busy_share_by_hand() -> None:
    # Engine cube (2 units) holds op 0 in 0..1000 and op 2 in 2000..3000, one unit each.
    share = _busy_share(run(4, 1), 0, np.array([0.0, 500, 1500, 4000]))
    # 500 of 2 x 500; 500 of 2 x 1000; 1000 of 2 x 2500.
    assert share.tolist() == pytest.approx([0.5, 0.25, 0.2])


def test_files_are_the_same_each_time(tmp_path: Path) -> None:
    for place in ("one", "two"):
        palette.save(gantt(run(6, 2), "same", 5000), tmp_path / place / "gantt")
    for ending in ("png", "svg"):
        first, second = ((tmp_path / place / f"gantt.{ending}").read_bytes() for place in ("one", "two"))
        assert first == second
    assert b"<dc:date>" not in first


def test_ink_is_readable_on_every_colour() -> None:
    # White on blue is easy to read, and on yellow, orange or light blue it is not.
    assert palette.ink_on("#0072B2") == "white"
    assert palette.ink_on("#E69F00") == palette.INK
    assert palette.ink_on("#56B4E9") == palette.INK
    assert palette.ink_on("#000000") == "white"
    assert palette.ink_on("#FFFFFF") == palette.INK


def test_names_with_dollar_signs_are_no_formulas(tmp_path: Path) -> None:
    problem = Problem.from_arrays(duration=[500, 500], edges=[], op_names=["$\\frac{$", "a$b"])
    plan = Plan(stream=np.zeros(2, np.int64), order=np.arange(2))
    palette.save(gantt(simulate(problem, plan), "$\\frac{$"), tmp_path / "chart")
    assert "frac{" in (tmp_path / "chart.svg").read_text()
