from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from msched.config import load
from msched.errors import OptionError
from msched.graph import Op, OpGraph
from msched.report import job as drawing
from msched.study import job, records
from msched.study.records import Names, Record


@pytest.fixture
def graph_file(tmp_path: Path) -> Path:
    path = tmp_path / "graph.json"
    path.write_bytes(chain(3).to_json())
    return path


@pytest.fixture
def folder(graph_file: Path, tmp_path: Path) -> Path:
    """The folder of a job that ran a chain of three ops."""
    config: dict[str, Any] = {
        "workload": {"_target_": "msched.formats.read", "path": str(graph_file)},
        "device": load("device", "atlas_800i_a2"), "solver": load("solver", "single"),
        "simulator": {"dispatch": "arrival", "fidelity": "fixed"}, "objective": {"order": ["makespan_ns"]},
        "streams": 2, "binding": "free", "parallelism": "full",
        "slices": 1, "slice_choices": [1, 2], "slice_along": "auto", "slice_around": "collectives",
        "memory_bytes": None, "collective": "hccl", "placement": {},
        "time_limit": 1.0, "workers": 1, "seed": 0, "deterministic": False, "force": False,
    }  # fmt: skip
    names = Names(workload="chain", device="atlas_800i_a2", solver="single")
    record, _ = job.run(config, names, tmp_path / "job")
    assert record.error == ""
    return tmp_path / "job"


def chain(ops: int, duration_ns: int = 1_000_000) -> OpGraph:
    return OpGraph(
        "chain",
        tuple(Op(name=f"op{v}", kind="Custom", duration_ns=duration_ns, engine="ai_core") for v in range(ops)),
        control=tuple((v, v + 1) for v in range(ops - 1)),
    )


def changed(folder: Path, **fields: Any) -> Record:
    record = records.read(folder)
    for name, value in fields.items():
        setattr(record, name, value)
    return record


def test_show_draws_the_plan_of_the_record(folder: Path) -> None:
    paths = drawing.write(folder, folder)
    assert [path.name for path in paths] == ["gantt.png", "gantt.svg", "trace.json"]
    assert all(path.is_file() for path in paths)
    trace = json.loads(paths[2].read_text())
    assert sum(event["ph"] == "X" for event in trace["traceEvents"]) == 3
    assert "chain on atlas_800i_a2, single: makespan 3.002 ms" in paths[1].read_text()


def test_changed_input_is_noticed(folder: Path, graph_file: Path) -> None:
    graph_file.write_bytes(chain(4).to_json())
    with pytest.raises(OptionError, match="'chain' has changed"):
        drawing.write(folder, folder)


def test_changed_lowering_is_noticed(folder: Path) -> None:
    record = records.read(folder)
    record.config["device"]["gap_ns"] += 1
    with pytest.raises(OptionError, match="another problem"):
        drawing.run_again(record)


def test_changed_simulator_is_noticed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = records.read(folder)
    simulate = drawing.simulate

    def slower(*arguments: Any) -> Any:
        timeline = simulate(*arguments)
        object.__setattr__(timeline, "finish_ns", timeline.finish_ns + 1)
        return timeline

    monkeypatch.setattr(drawing, "simulate", slower)
    with pytest.raises(OptionError, match="3002001 ns, but 3002000 ns stand in the record"):
        drawing.run_again(record)


def test_record_without_a_plan_says_why(folder: Path) -> None:
    record = changed(folder, plan=None, status=None, state="failed", error="no such file")
    with pytest.raises(OptionError, match="failed: no such file"):
        drawing.run_again(record)


def test_record_does_not_run_foreign_code(folder: Path, tmp_path: Path) -> None:
    record = records.read(folder)
    record.config["workload"] = {
        "_target_": "msched.formats.read",
        "path": {"_target_": "pathlib.Path.touch", "_args_": [str(tmp_path / "touched")]},
    }
    with pytest.raises(OptionError, match=r"pathlib\.Path\.touch"):
        drawing.run_again(record)
    assert not (tmp_path / "touched").exists()


def test_title_says_optimal_or_invalid(folder: Path) -> None:
    record = changed(folder, gap=0.0)
    assert drawing.title(record).endswith(", optimal")
    record.gap, record.status = None, "invalid"
    assert drawing.title(record).endswith("(invalid)")
