"""The figure of a study: speed-up over a single stream, one group of bars a workload, the bound above them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msched.report.palette import FAINT, INK, colour, style
from msched.report.rows import BASELINE, Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def speed_up(rows: Iterable[Row], title: str) -> Figure | None:
    """Bars of all valid rows whose problem has a single-stream row, which is the line at 1; None when there are none.

    The line over a group is the speed-up that the best lower bound allows: no plan can reach above it.
    """
    from matplotlib.figure import Figure as NewFigure
    from matplotlib.lines import Line2D

    groups: dict[str, list[Row]] = {}
    for row in rows:
        if row.speed_up is not None and row.record.names.solver != BASELINE:
            names = row.record.names
            groups.setdefault(f"{names.workload}\n{names.device}", []).append(row)
    if not groups:
        return None
    with_device = len({name.split("\n")[1] for name in groups}) > 1
    bars = list(dict.fromkeys(_label(row) for found in groups.values() for row in found))
    width = 0.84 / len(bars)
    with style():
        figure = NewFigure(figsize=(max(6.0, 1.2 + 1.6 * len(groups)), 3.8), layout="constrained")
        ax = figure.subplots()
        for place, found in enumerate(groups.values()):
            for row in found:
                index = bars.index(_label(row))
                left = place - 0.42 + width * index
                ax.bar(left, row.speed_up or 0, width * 0.92, align="edge", color=colour(index))
            limits = [row.single_ns / row.bound.makespan_ns for row in found
                      if row.single_ns and row.bound and row.bound.makespan_ns]  # fmt: skip
            ax.hlines(limits, place - 0.44, place + 0.44, color=INK, linewidth=1.2)
        ax.axhline(1, color=FAINT, linewidth=0.8, zorder=0)
        ax.set_xticks(range(len(groups)), [name if with_device else name.split("\n")[0] for name in groups])
        if len(groups) > 4:
            ax.tick_params(axis="x", rotation=20)
        ax.set_ylabel("speed-up")
        ax.set_title(title)
        handles = [*(ax.bar(0, 0, color=colour(index), label=name) for index, name in enumerate(bars))]
        line = Line2D([], [], color=INK, linewidth=1.2, label="lower bound on the makespan")
        figure.legend(handles=[*handles, line], loc="outside lower center", ncols=4, fontsize=8)
    return figure


def _label(row: Row) -> str:
    return f"{row.record.names.solver} {row.variant}".strip()
