from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from msched.plan import Incumbent
from msched.study import job, progress
from msched.study.records import Names


@pytest.mark.parametrize(
    ("ns", "text"),
    [(0, "0 ns"), (999, "999 ns"), (1500, "1.500 \N{MICRO SIGN}s"), (2_500_000, "2.500 ms"), (3 * 10**9, "3.000 s")],
)
def test_duration(ns: int, text: str) -> None:
    assert progress.duration(ns) == text


def test_quiet_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.live("fork") as live:
        live.on_progress(Incumbent(0.0, 1500, 1000))
        live.on_tick()
    assert capsys.readouterr() == ("", "")


def test_terminal_shows_incumbent_and_bound() -> None:
    class Status:
        text = ""

        def update(self, text: str) -> None:
            self.text = text

    status: Any = Status()
    live = progress.Live("fork", status)
    live.on_progress(Incumbent(0.0, 1500, 1000))
    live.on_tick()
    assert status.text.startswith("fork  0 s")
    assert "makespan 1.500 \N{MICRO SIGN}s" in status.text
    assert "bound 1.000 \N{MICRO SIGN}s" in status.text


def test_outcome_of_each_end(config: dict[str, Any], names: Names, tmp_path: Path) -> None:
    record, _ = job.run(config, names, tmp_path)
    assert progress.outcome(record).startswith("fork on atlas_800i_a2, single: 5.004 ms, feasible, ")
    record.gap = 0.0
    record.status = "optimal"
    assert progress.outcome(record) == "fork on atlas_800i_a2, single: 5.004 ms, optimal, streams: 1, waits: 0"
    record.config["objective"]["order"] = ["peak_bytes", "makespan_ns"]
    assert record.score is not None
    record.score = msgspec.structs.replace(record.score, peak_bytes=3 * 2**19)
    assert progress.outcome(record).endswith(", optimal, peak: 1.5 MiB, streams: 1, waits: 0")
    record.status, record.reason = "invalid", "memory: too much"
    assert progress.outcome(record).endswith("5.004 ms, invalid: memory: too much")
    record.score, record.status, record.reason = None, "infeasible", "too little memory"
    assert progress.outcome(record).endswith("single: infeasible: too little memory")
    record.state, record.error = "failed", "no such file"
    assert progress.outcome(record).endswith("single: failed: no such file")
