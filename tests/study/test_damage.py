"""Configs and records that somebody has damaged, and places that cannot be written."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from msched import cli
from msched.errors import FormatError
from msched.study import records
from msched.study.records import Names, Record
from msched.study.schema import damage, missing


def run(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["msched", *arguments])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return int(caught.value.code or 0)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"a: [b\n", "not YAML"),
        (b"\xff\xfe", "not YAML"),
        (b"", "the config has no 'workload'"),
        (b"defaults: [config, _self_]\nobjective: {order: [speed]}\n", "speed"),
    ],
)
def test_a_study_that_is_none_is_one_line(
    content: bytes, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "study.yaml").write_bytes(content)
    monkeypatch.chdir(tmp_path)
    assert run("run", "-cd", str(tmp_path), "-cn", "study", monkeypatch=monkeypatch) == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith("error: ")
    assert says in last


def test_output_that_cannot_be_written_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.chdir(tmp_path)
    assert run("run", "solver=single", f"output={file}", monkeypatch=monkeypatch) == 2
    assert capsys.readouterr().err.strip().splitlines()[-1] == f"error: {file}: File exists"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"simulator": "arrival"}, "simulator is 'arrival'"),
        ({"simulator": {"dispatch": "arrival"}}, "dispatch and fidelity"),
        ({"workload": 5}, "workload is 5"),
        ({"solver": "cpsat"}, "solver is 'cpsat'"),
        ({"objective": {"order": ["speed"]}}, "order needs figures"),
        ({"objective": []}, "order needs figures"),
    ],
)
def test_a_damaged_config_is_named(config: dict[str, Any], change: dict[str, Any], says: str) -> None:
    assert missing(config) == ""
    assert says in missing({**config, **change})
    for key in change:
        assert f"no {key!r}" in missing({k: v for k, v in config.items() if k != key})


def test_a_table_leaves_damaged_records_out(config: dict[str, Any], names: Names, tmp_path: Path) -> None:
    for number, given in enumerate([config, {**config, "objective": "fast"}, {}]):
        record = Record(cell=str(number), names=names, config=given, seed=0, versions={}, machine=_machine())
        records.write(record, tmp_path / str(number))
    found, warnings = records.load(tmp_path)
    assert [record.cell for record in found] == ["0"]
    assert [str(tmp_path / name) in w for name, w in zip("12", warnings, strict=True)] == [True, True]
    assert damage(config) == ""


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r.update(score={**r["score"], "makespan_ns": 2**63}),
        lambda r: r.update(plan={**r["plan"], "stream": [2**40]}),
        lambda r: r.update(plan={**r["plan"], "stream": [-1]}),
    ],
)
def test_figures_beyond_all_bounds_are_refused(
    change: Callable[[dict[str, Any]], None], config: dict[str, Any], names: Names, tmp_path: Path
) -> None:
    from msched.study import job

    job.run(config, names, tmp_path)
    file = tmp_path / records.FILE
    document = msgspec.json.decode(file.read_bytes())
    change(document)
    file.write_bytes(msgspec.json.encode(document))
    with pytest.raises(FormatError, match=str(file)):
        records.read(file)


def _machine() -> records.Machine:
    return records.Machine(cpu="", cores=1, memory_bytes=1, system="", python="")
