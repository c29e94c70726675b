"""What the shipped workloads are in figures: the table of `msched list workloads`."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from msched.antichain import width
from msched.bounds import critical_path
from msched.config import load, load_all, options
from msched.device import Device, device_from
from msched.errors import MschedError
from msched.graph import OpGraph
from msched.lowering import lower
from msched.problem import Problem
from msched.study import inputs

if TYPE_CHECKING:
    from rich.table import Table

_DASH = "-"


@dataclass(frozen=True)
class Figures:
    """One workload on one device; of a workload that cannot be built or lowered only `why`.

    graph_ops, ops: before and after lowering, which folds views and constants away.
    flops, moved_bytes: arithmetic, and traffic with device memory, of the ops that are left. An op that does not say
        what it moves is taken to read and write each of its tensors once, as lowering takes it.
    critical_path_ns: longest chain of durations and of the gaps or events between them.
    busy_ns: engine to the sum of the durations of the ops bound to it; together, one stream less its gaps.
    width: most ops that no dependency orders.
    """

    workload: str
    graph_ops: int = 0
    ops: int = 0
    flops: int = 0
    moved_bytes: int = 0
    critical_path_ns: int = 0
    busy_ns: dict[str, int] = field(default_factory=dict)
    width: int = 0
    why: str = ""


# The plain name of each figure, its heading for a reader, and how it reads there.
_COLUMNS: tuple[tuple[str, str, Callable[[int], str]], ...] = (
    ("graph_ops", "ops in graph", "{:,}".format),
    ("ops", "ops", "{:,}".format),
    ("flops", "GFLOP", lambda flops: f"{flops / 1e9:,.2f}"),
    ("moved_bytes", "moved, MiB", lambda size: f"{size / 2**20:,.1f}"),
    ("critical_path_ns", "critical path, ms", lambda ns: f"{ns / 1e6:,.3f}"),
    ("width", "widest antichain", "{:,}".format),
)


def listing(device: str, progress: Callable[[Sequence[str]], Iterable[str]] = iter) -> list[Figures]:
    """The figures of all shipped workloads on the device `device` of conf/device, in the order of their names.

    progress: passes the names on, one as each is begun. Raises OptionError for an unknown device.
    """
    chip = device_from(load("device", device))
    try:
        known = load_all("workload")
    except Exception:  # one that cannot be read stops them all: then each is read by itself, and says what is wrong
        known = {}
    return [of_workload(name, chip, known.get(name)) for name in progress(options("workload"))]


def of_workload(name: str, device: Device, values: dict[str, Any] | None = None) -> Figures:
    """The figures of a shipped workload. An error of its own stands in `why`, so that a list goes on.

    values: the config of the workload where it has been read already.
    """
    try:
        config = {"workload": load("workload", name) if values is None else values}
        inputs.check(config)
        graph = inputs.graph_of(config)
        return of_problem(name, graph, lower(graph, device))
    except MschedError as error:
        return Figures(name, why=_line(str(error)))
    except Exception as error:  # a builder that fails is a defect of one workload, not of the others
        return Figures(name, why=_line(f"{type(error).__name__}: {error}"))


def of_problem(name: str, graph: OpGraph, problem: Problem) -> Figures:
    """The figures of a graph and the problem that it was lowered to."""
    busy = np.zeros(problem.capacity.size, np.int64)
    np.add.at(busy, problem.engine, problem.duration)
    left = set(problem.op_names)
    return Figures(
        workload=name,
        graph_ops=len(graph.ops),
        ops=problem.n,
        flops=sum(op.flops for op in graph.ops if op.name in left),
        moved_bytes=sum(size for op, size in zip(graph.ops, _traffic(graph), strict=True) if op.name in left),
        critical_path_ns=critical_path(problem),
        busy_ns=dict(zip(problem.engine_names, busy.tolist(), strict=True)),
        width=width(problem)[0],
    )


def as_csv(listed: Sequence[Figures]) -> str:
    """One row a workload, in flops, bytes and nanoseconds; figures that a workload lacks are empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    engines = _engines(listed)
    writer.writerow(["workload", *(name for name, _, _ in _COLUMNS), *(f"{engine}_ns" for engine in engines), "why"])
    for row in listed:
        figures = [getattr(row, name) for name, _, _ in _COLUMNS] + [row.busy_ns.get(engine, 0) for engine in engines]
        writer.writerow([row.workload, *([""] * len(figures) if row.why else figures), row.why])
    return text.getvalue()


def as_markdown(listed: Sequence[Figures]) -> str:
    """The readable table in Markdown, and below it why a workload has no figures."""
    from tabulate import tabulate

    headings, rows = _readable(listed)
    align = ["left", *["right"] * (len(headings) - 1)]
    table = tabulate(rows, headings, "pipe", colalign=align, disable_numparse=True)
    whys = "".join(f"- {line}\n" for line in reasons(listed))
    return f"{table}\n" + (f"\n{whys}" if whys else "")


def as_table(listed: Sequence[Figures]) -> Table:
    """The readable table for a terminal."""
    from rich import box
    from rich.table import Table as NewTable

    headings, rows = _readable(listed)
    table = NewTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for position, heading in enumerate(headings):
        table.add_column(heading, justify="right" if position else "left", no_wrap=position == 0)
    for row in rows:
        table.add_row(*row)
    return table


def reasons(listed: Sequence[Figures]) -> list[str]:
    """One line for each workload without figures, that says why."""
    return [f"{row.workload}: {row.why}" for row in listed if row.why]


def _readable(listed: Sequence[Figures]) -> tuple[list[str], list[list[str]]]:
    engines = [engine for engine in _engines(listed) if any(row.busy_ns.get(engine) for row in listed)]
    headings = ["workload", *(heading for _, heading, _ in _COLUMNS), *(f"{engine}, ms" for engine in engines)]
    rows = []
    for row in listed:
        cells = [text(getattr(row, name)) for name, _, text in _COLUMNS]
        cells += [f"{row.busy_ns[engine] / 1e6:,.3f}" if row.busy_ns.get(engine) else "0" for engine in engines]
        rows.append([row.workload, *([_DASH] * len(cells) if row.why else cells)])
    return headings, rows


def _engines(listed: Sequence[Figures]) -> list[str]:
    return list(dict.fromkeys(engine for row in listed for engine in row.busy_ns))


def _line(text: str) -> str:
    return " ".join(text.split())


def _traffic(graph: OpGraph) -> list[int]:
    """Bytes that each op moves to and from device memory."""
    tensors = [0] * len(graph.ops)
    for tensor in graph.tensors:
        if tensor.producer is not None:
            tensors[tensor.producer] += tensor.bytes
        for v in dict.fromkeys(tensor.consumers):
            tensors[v] += tensor.bytes
    return [op.bytes_read + op.bytes_written or of_tensors for op, of_tensors in zip(graph.ops, tensors, strict=True)]
