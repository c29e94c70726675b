"""What `msched table` makes of a folder of records: tables, a figure, and where they come from."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from msched.report import palette, speed_up, table
from msched.report.rows import Row, rows
from msched.study import records

if TYPE_CHECKING:
    import pandas

_MAIN = "One row a workload and a solver; the gap is to the best lower bound known."
_PAIR = "The best heuristic beside the exact solver."


def write(folder: Path, output: Path, *, timings: bool) -> list[str]:
    """Read the records below `folder`; write and print the tables; return warnings.

    Into `output`: `table` and `best` in four formats, `speed_up.png` and `.svg`, `provenance.json`. Without `timings`
    equal records give equal files, byte for byte. Raises OptionError where there is nothing to read, InternalError
    where a makespan lies below a bound.
    """
    found, warnings = records.load(folder)
    lines = rows(found)
    for frame, stem, caption in (
        (table.main_table(lines, timings=timings), "table", _MAIN),
        (table.side_by_side(lines), "best", _PAIR),
    ):
        if len(frame):
            table.write(frame, output / stem, caption)
            _show(frame, caption)
    figure = speed_up.speed_up(lines, "How much faster than on a single stream")
    if figure is not None:
        palette.save(figure, output / "speed_up")
    source = msgspec.json.encode(_provenance(lines), order="sorted")
    (output / "provenance.json").write_bytes(msgspec.json.format(source, indent=2) + b"\n")
    if len({record.versions.get("msched") for record in found}) > 1:
        warnings.append(f"the records in {folder} come from several versions of msched")
    return warnings


def _provenance(lines: Iterable[Row]) -> dict[str, object]:
    """Cells and inputs by name with their hashes, and the distinct versions and machines."""
    given = [(row.workload, row.record) for row in lines]
    return {
        "schema": "msched.provenance/2",
        "cells": sorted(f"{name} {r.names.device} {r.names.solver} {r.cell}" for name, r in given),
        "inputs": sorted({f"{name} {r.input.hash}" for name, r in given if r.input}),
        "versions": _distinct(r.versions for _, r in given),
        "machines": _distinct(msgspec.to_builtins(r.machine) for _, r in given),
    }


def _distinct(values: Iterable[dict[str, object] | dict[str, str]]) -> list[object]:
    encoded = sorted({msgspec.json.encode(value, order="sorted") for value in values})
    return [msgspec.json.decode(text) for text in encoded]


def _show(frame: pandas.DataFrame, caption: str) -> None:
    """Print for a person at a terminal, or as Markdown for whatever reads the output."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console()
    notes = table.notes(frame)
    if not console.is_terminal:
        print(f"{caption}\n\n{table.markdown(frame)}")
        return
    if "device" in frame and frame["device"].nunique() == 1:  # a terminal is narrow
        caption, frame = f"{caption[:-1]}, on {frame['device'].iloc[0]}.", frame.drop(columns="device")
    shown = table.readable(frame)
    view = Table(title=caption, box=box.SIMPLE_HEAD, title_justify="left")
    for name, title in zip(frame.columns, shown.columns, strict=True):
        view.add_column(title, justify="right" if table.is_figure(name) else "left", overflow="fold")
    for cells in shown.itertuples(index=False):
        view.add_row(*cells)
    console.print(view)
    for number, text in enumerate(notes, 1):
        console.print(f"{number}. {text}", markup=False, highlight=False)
