from __future__ import annotations

from collections.abc import Callable

import pytest

from msched.report.rows import rows
from msched.report.speed_up import speed_up
from msched.study.records import Record

Make = Callable[..., Record]


def test_bars_and_the_limit(record: Make) -> None:
    figure = speed_up(
        rows(
            [
                record("single", 1200, 600), record("heft", 800, 600),
                record("single", 900, 450, workload="other", problem="q"),
                record("ge", 1000, 450, workload="other", problem="q"),
            ]
        ),
        "a study",
    )  # fmt: skip
    assert figure is not None
    axes = figure.axes[0]
    heights = sorted(bar.get_height() for bar in axes.patches if bar.get_height())
    assert heights == pytest.approx([0.9, 1.5])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["net", "other"]
    limits = {round(float(path.vertices[0, 1]), 6) for lines in axes.collections for path in lines.get_paths()}
    assert limits == {2.0}  # 1200 / 600 and 900 / 450
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["heft", "ge", "lower bound on the makespan"]


def test_nothing_to_compare_with(record: Make) -> None:
    assert speed_up(rows([record("heft", 800)]), "a study") is None
