"""The Gantt chart of a plan: one lane a stream, coloured by engine, with the use of each engine below."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from msched.arrays import Int64Array
from msched.plan import durations_and_demands
from msched.problem import Problem
from msched.report.palette import FAINT, INK, colour, ink_on, style
from msched.simulator import Timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH_INCHES = 11.0
_PIXELS = 1500  # finer than this no reader sees a gap, so that neighbours of one engine are drawn as one block
_DENSE_OPS = 400  # beyond this many ops, outlines and names would cover the colours
_OUTLINED_PIXELS = 8
_LANE = 0.8


def gantt(timeline: Timeline, title: str, bound_ns: int | None = None) -> Figure:
    """Chart of `timeline`, with a line at the bound. Works for tens of ops, with names, and for tens of thousands."""
    from matplotlib.figure import Figure as NewFigure

    problem, plan = timeline.problem, timeline.plan
    unit, scale = _unit(timeline.makespan_ns)
    used = [int(e) for e in np.flatnonzero(np.bincount(problem.engine, minlength=problem.capacity.size))]
    limited = [e for e in range(problem.capacity.size) if problem.capacity[e] > 0 and problem.demand[:, e].any()]
    lanes = max(plan.streams, 1)
    with style():
        heights = [0.32 * lanes + 0.3, *([0.34 * len(limited) + 0.1] if limited else [])]
        figure = NewFigure(figsize=(_WIDTH_INCHES, sum(heights) + 1.5), layout="constrained")
        axes = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        _draw_lanes(axes[0], timeline, used, scale)
        if limited:
            _draw_use(axes[1], timeline, limited, scale)
        for ax in axes:
            ax.set_xlim(0, max(timeline.makespan_ns, bound_ns or 0, 1) / scale * 1.005)
            if bound_ns:
                ax.axvline(bound_ns / scale, color=INK, linewidth=1, linestyle=(0, (4, 2)), zorder=5)
        axes[0].set_title(title)
        axes[-1].set_xlabel(f"time, {unit}")
        _legend(figure, problem, used, with_bound=bool(bound_ns))
    return figure


def _draw_lanes(ax: Axes, timeline: Timeline, engines: list[int], scale: float) -> None:
    problem, plan = timeline.problem, timeline.plan
    dense = problem.n > _DENSE_OPS
    pixel = timeline.makespan_ns // _PIXELS
    for stream in range(plan.streams):
        low = stream - _LANE / 2
        for engine in engines:
            ops = plan.order[(plan.stream[plan.order] == stream) & (problem.engine[plan.order] == engine)]
            begin, end = timeline.start_ns[ops], timeline.finish_ns[ops]
            if dense:
                begin, end = _merged(begin, end, pixel)
            ax.broken_barh(
                _bars(begin, end, scale), (low, _LANE), facecolor=colour(engine),
                edgecolor="white", linewidth=0 if dense else 0.5,
            )  # fmt: skip
        critical = timeline.critical_ops[plan.stream[timeline.critical_ops] == stream]
        begin, end = timeline.start_ns[critical], timeline.finish_ns[critical]
        wide = (end - begin > _OUTLINED_PIXELS * pixel) & (not dense)
        outlined = _bars(begin[wide], end[wide], scale)
        ax.broken_barh(outlined, (low, _LANE), facecolor="none", edgecolor=INK, linewidth=1.4, zorder=3)
        # An outline would fill a narrow bar: those are marked above the lane.
        marked = _bars(*_merged(begin[~wide], end[~wide], pixel), scale)
        ax.broken_barh(marked, (low - 0.09, 0.09), facecolor=INK, linewidth=0)
    if not dense:
        _name_ops(ax, timeline, scale)
    ax.set_yticks(range(plan.streams), [f"stream {s}" for s in range(plan.streams)])
    ax.set_ylim(max(plan.streams, 1) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)


def _name_ops(ax: Axes, timeline: Timeline, scale: float) -> None:
    """Write a name into each bar that is wide enough for some of it."""
    letter = timeline.makespan_ns / (_WIDTH_INCHES * 0.9 * 72 / 4.2)  # a letter of 7 points is about 4.2 wide
    for op, name in enumerate(timeline.problem.op_names):
        begin, length = int(timeline.start_ns[op]), int(timeline.finish_ns[op] - timeline.start_ns[op])
        room = int(length / letter) - 1
        if room < min(len(name), 3) or not name:
            continue
        text = name if len(name) <= room else f"{name[: room - 1]}\N{HORIZONTAL ELLIPSIS}"
        ink = ink_on(colour(int(timeline.problem.engine[op])))
        place = ((begin + length / 2) / scale, int(timeline.plan.stream[op]))
        ax.text(*place, text, ha="center", va="center", fontsize=7, color=ink, zorder=6, clip_on=True)


def _draw_use(ax: Axes, timeline: Timeline, engines: list[int], scale: float) -> None:
    """One strip an engine: its busy share over time, and the mean at the right."""
    edges = np.linspace(0, max(timeline.makespan_ns, 1), 401)
    for row, engine in enumerate(engines):
        share = _busy_share(timeline, engine, edges)
        base = row + 0.4
        ax.fill_between(edges / scale, base, base - 0.8 * np.append(share, share[-1]), step="post",
                        color=colour(engine), linewidth=0)  # fmt: skip
        ax.axhline(base, color=FAINT, linewidth=0.6, zorder=0)
        ax.annotate(
            f"{timeline.utilisation[engine]:.0%}", (1, row), xycoords=("axes fraction", "data"),
            xytext=(5, 0), textcoords="offset points", va="center", fontsize=8,
        )  # fmt: skip
    ax.set_yticks(range(len(engines)), [timeline.problem.engine_names[e] for e in engines])
    ax.set_ylim(len(engines) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)


def _busy_share(timeline: Timeline, engine: int, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean share of the engine's units in use between each two of `edges`."""
    problem = timeline.problem
    units = durations_and_demands(problem, timeline.plan)[1][:, engine].astype(np.float64)
    instant = np.concatenate([timeline.start_ns, timeline.finish_ns])
    by_time = np.argsort(instant, kind="stable")
    instant, level = instant[by_time], np.cumsum(np.concatenate([units, -units])[by_time])
    spent = np.concatenate([[0.0], np.cumsum(level[:-1] * np.diff(instant))])
    integral = np.interp(edges, instant, spent)
    share: NDArray[np.float64] = np.diff(integral) / np.diff(edges) / problem.capacity[engine]
    return share.clip(0, 1)


def _merged(begin: Int64Array, end: Int64Array, pixel: int) -> tuple[Int64Array, Int64Array]:
    """Intervals in time order that do not overlap, with gaps of at most `pixel` closed."""
    if not begin.size:
        return begin, end
    opens = np.concatenate([[True], begin[1:] - end[:-1] > pixel])
    closes = np.concatenate([opens[1:], [True]])
    return begin[opens], end[closes]


def _bars(begin: Int64Array, end: Int64Array, scale: float) -> list[tuple[float, float]]:
    return [(b / scale, (e - b) / scale) for b, e in zip(begin.tolist(), end.tolist(), strict=True)]


def _legend(figure: Figure, problem: Problem, engines: list[int], *, with_bound: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Patch | Line2D] = [Patch(facecolor=colour(e), label=problem.engine_names[e]) for e in engines]
    face = INK if problem.n > _DENSE_OPS else "none"
    handles.append(Patch(facecolor=face, edgecolor=INK, linewidth=1.4, label="critical"))
    if with_bound:
        handles.append(Line2D([], [], color=INK, linewidth=1, linestyle=(0, (4, 2)), label="lower bound"))
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 8), fontsize=8)


def _unit(makespan_ns: int) -> tuple[str, float]:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("\N{MICRO SIGN}s", 1e3)):
        if makespan_ns >= 2 * size:
            return unit, size
    return "ns", 1.0
