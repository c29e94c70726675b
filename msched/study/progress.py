"""What a person at a terminal sees of a run; where nobody looks, it says nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from msched.plan import Incumbent
from msched.study.records import Record

if TYPE_CHECKING:
    from rich.status import Status


def duration(ns: float) -> str:
    """A time in the unit that reads best."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("\N{MICRO SIGN}s", 1e3)):
        if ns >= size:
            return f"{ns / size:.3f} {unit}"
    return f"{ns:.0f} ns"


def outcome(record: Record, keys: str = "") -> str:
    """One line: what became of a cell; `keys` tell it from others of its names."""
    name = f"{record.names.workload} on {record.names.device}, {record.names.solver}{keys}:"
    if record.state == "failed":
        return f"{name} failed: {record.error}"
    if record.score is None or record.bound is None:
        return f"{name} {record.status or record.state}: {record.reason or record.error}"
    score = f"{name} {duration(record.score.makespan_ns)}, {record.status}"
    if record.status == "invalid":
        return f"{score}: {record.reason}"
    distance = f", {record.gap:.2%} above the bound ({record.bound.argument})" if record.gap else ""
    cut = f", slices: {record.slices}" if record.slices != 1 else ""
    ranked = record.config["objective"]["order"][0] == "peak_bytes"
    peak = f", peak: {record.score.peak_bytes / 2**20:.1f} MiB" if ranked else ""
    return f"{score}{distance}{cut}{peak}, streams: {record.score.streams}, waits: {record.score.waits}"


def warned(warnings: Sequence[str], where: Path) -> str:
    """One line: how many warnings there are, the first, and where the others stand."""
    if len(warnings) == 1:
        return f"1 warning: {warnings[0]}; it is in {where}"
    return f"{len(warnings)} warnings; first: {warnings[0]}; all in {where}"


@dataclass
class Live:
    """The moving line of one solve. `on_progress` may be called from any thread, `on_tick` from the main one."""

    title: str
    status: Status | None = None
    best: Incumbent | None = None
    begin: float = field(default_factory=time.monotonic)

    def on_progress(self, incumbent: Incumbent) -> None:
        """Take note of a new incumbent or bound."""
        self.best = incumbent

    def on_tick(self) -> None:
        """Show what is known by now."""
        if self.status is None:
            return
        text = f"{self.title}  {time.monotonic() - self.begin:.0f} s"
        if self.best is not None and self.best.makespan_ns is not None:
            text += f"  makespan {duration(self.best.makespan_ns)}"
        if self.best is not None and self.best.bound_ns is not None:
            text += f"  bound {duration(self.best.bound_ns)}"
        self.status.update(text)


@contextmanager
def live(title: str) -> Iterator[Live]:
    """A moving line on standard error while the block runs, if that is a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield Live(title)
        return
    with console.status(title) as status:
        yield Live(title, status)
