"""The figure of a study: speed-up over a single stream, one group of bars a problem, the bound above them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msched.report.palette import FAINT, INK, colour, style
from msched.report.rows import BASELINE, Row, problem_key, shared_variant

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def speed_up(rows: Iterable[Row], title: str) -> Figure | None:
    """Bars of all valid rows whose problem has a single-stream row, which is the line at 1; None when there are none.

    The line over a group is the speed-up that the best lower bound allows: no plan can reach above it.
    """
    from matplotlib.figure import Figure as NewFigure
    from matplotlib.lines import Line2D

    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.speed_up is not None and row.record.names.solver != BASELINE:
            groups.setdefault((problem_key(row.record), row.workload), []).append(row)
    if not groups:
        return None
    with_device = len({row.record.names.device for found in groups.values() for row in found}) > 1
    bars = list(dict.fromkeys(_label(row, found) for found in groups.values() for row in found))
    width = 0.84 / len(bars)
    with style():
        inches = 1.2 + len(groups) * max(0.45, min(1.6, 0.25 + 0.2 * len(bars)))
        figure = NewFigure(figsize=(max(6.0, inches), 3.8), layout="constrained")
        ax = figure.subplots()
        for place, found in enumerate(groups.values()):
            for row in found:
                index = bars.index(_label(row, found))
                left = place - 0.42 + width * index
                ax.bar(left, row.speed_up or 0, width * 0.92, align="edge", color=colour(index))
            limits = [row.single_ns / row.bound.makespan_ns for row in found
                      if row.single_ns and row.bound and row.bound.makespan_ns]  # fmt: skip
            ax.hlines(limits, place - 0.44, place + 0.44, color=INK, linewidth=1.2)
        ax.axhline(1, color=FAINT, linewidth=0.8, zorder=0)
        ax.set_xticks(range(len(groups)), [_title(found, with_device) for found in groups.values()])
        if len(groups) > 4:
            ax.tick_params(axis="x", rotation=35)
            for tick in ax.get_xticklabels():
                tick.set(horizontalalignment="right", rotation_mode="anchor")
        ax.set_ylabel("speed-up")
        ax.set_title(title)
        handles = [*(ax.bar(0, 0, color=colour(index), label=name) for index, name in enumerate(bars))]
        line = Line2D([], [], color=INK, linewidth=1.2, label="lower bound on the makespan")
        figure.legend(handles=[*handles, line], loc="outside lower center", ncols=4, fontsize=8)
    return figure


def _title(found: list[Row], with_device: bool) -> str:
    """What the rows of a group have in common; of `key=value` the value, which says enough under a bar."""
    names = found[0].record.names
    values = [word.split("=", 1)[-1] for word in shared_variant(found)]
    return " ".join([found[0].workload, *([names.device] if with_device else []), *values])


def _label(row: Row, found: list[Row]) -> str:
    own = [word for word in row.words if word not in shared_variant(found)]
    return " ".join([row.record.names.solver, *own])
