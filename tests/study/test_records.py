from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from msched.errors import FormatError, OptionError
from msched.study import job, records
from msched.study.records import Choice, Names, Record


@pytest.fixture
def record(config: dict[str, Any], names: Names, tmp_path: Path) -> Record:
    return job.run(config, names, tmp_path / "made")[0]


def test_choice_keeps_the_plan(record: Record) -> None:
    assert record.plan is not None
    plan = record.plan.plan()
    assert plan.stream.tolist() == [0] * 5
    assert Choice.of(plan) == record.plan


def test_a_failed_write_keeps_the_old_record(record: Record, tmp_path: Path) -> None:
    folder = tmp_path / "made"
    before = (folder / records.FILE).read_bytes()
    record.config = {"what no JSON can carry": object()}
    with pytest.raises(TypeError):
        records.write(record, folder)
    assert (folder / records.FILE).read_bytes() == before
    assert [path.name for path in folder.iterdir()] == [records.FILE]


def test_load_is_in_the_order_of_paths_and_names_what_it_leaves_out(record: Record, tmp_path: Path) -> None:
    study = tmp_path / "study"
    for name, seed in (("b", 2), ("a", 1)):
        record.seed = seed
        records.write(record, study / name)
    (study / "c").mkdir()
    (study / "c" / records.FILE).write_text('{"cell": "half a rec')
    (study / "d").mkdir()
    document = msgspec.json.decode((study / "a" / records.FILE).read_bytes())
    (study / "d" / records.FILE).write_bytes(msgspec.json.encode({**document, "schema": "msched.record/9"}))
    (study / "e").mkdir()
    (study / "e" / records.FILE).write_bytes(msgspec.json.encode({**document, "score": {"makespan_ns": "fast"}}))
    found, warnings = records.load(study)
    assert [r.seed for r in found] == [1, 2]
    assert [Path(warning.split(": ")[1]).parent.name for warning in warnings] == ["c", "d", "e"]
    assert "msched.record/9" in warnings[1]
    assert "$.score" in warnings[2]


@pytest.mark.parametrize("text", ["", "[]", "\x00\xff", "[" * 10_000])
def test_rubbish_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / records.FILE
    path.write_text(text, encoding="latin-1")
    with pytest.raises(FormatError, match=r"record\.json: not a record"):
        records.read(path)


def test_nothing_to_load(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no record"):
        records.load(tmp_path)
    with pytest.raises(OptionError, match="not a folder"):
        records.load(tmp_path / "nowhere")
    (tmp_path / records.FILE).write_text("{")
    with pytest.raises(OptionError, match="left out"):
        records.load(tmp_path)
