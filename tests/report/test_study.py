from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from msched.errors import InternalError
from msched.report import study
from msched.study import records
from msched.study.records import Record

Make = Callable[..., Record]
FILES = {
    *(f"{stem}.{ending}" for stem in ("table", "best") for ending in ("csv", "parquet", "md", "tex")),
    "speed_up.png",
    "speed_up.svg",
    "provenance.json",
}


def test_all_files_and_the_printed_table(record: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records.write(record("single", 1200), tmp_path / "in" / "a")
    records.write(record("heft", 800), tmp_path / "in" / "b")
    (tmp_path / "in" / "c").mkdir()
    (tmp_path / "in" / "c" / "record.json").write_text("{")
    warnings = study.write(tmp_path / "in", tmp_path / "out", timings=False)
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES
    assert len(warnings) == 1
    assert "c/record.json" in warnings[0]
    printed = capsys.readouterr().out
    assert "| net " in printed
    assert "1.50" in printed
    source = json.loads((tmp_path / "out" / "provenance.json").read_text())
    assert source["inputs"] == ["net hash of net"]
    assert source["versions"] == [{"msched": "0.1.0"}]
    assert len(source["cells"]) == 2


def test_same_records_same_bytes(record: Make, tmp_path: Path) -> None:
    for solver, makespan in (("single", 1200), ("heft", 800)):
        records.write(record(solver, makespan), tmp_path / "in" / solver)
    for place in ("one", "two"):
        study.write(tmp_path / "in", tmp_path / place, timings=False)
    assert {path.name for path in (tmp_path / "one").iterdir()} == FILES
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name


def test_records_of_several_versions_are_a_warning(record: Make, tmp_path: Path) -> None:
    old = record("single")
    old.versions = {"msched": "0.0.9"}
    records.write(old, tmp_path / "a")
    records.write(record("heft"), tmp_path / "b")
    assert any("several versions" in warning for warning in study.write(tmp_path, tmp_path, timings=True))


def test_defect_writes_nothing(record: Make, tmp_path: Path) -> None:
    records.write(record("heft", 400, 500), tmp_path / "in" / "a")
    with pytest.raises(InternalError):
        study.write(tmp_path / "in", tmp_path / "out", timings=True)
    assert not (tmp_path / "out").exists()


def test_a_sweep_of_failures_has_a_table_and_no_figure(record: Make, tmp_path: Path) -> None:
    records.write(record("heft", None, state="failed"), tmp_path / "a")
    study.write(tmp_path, tmp_path / "out", timings=True)
    assert (tmp_path / "out" / "table.md").is_file()
    assert not (tmp_path / "out" / "speed_up.png").exists()
