from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from msched.config import load
from msched.errors import MschedError
from msched.graph import OpGraph
from msched.plan import Plan
from msched.problem import Problem
from msched.solvers.base import Budget
from msched.solvers.compose import Compose
from msched.study import inputs, job, records
from msched.study.records import Names
from tests.study.conftest import FAKES


def test_record_of_a_single_stream(config: dict[str, Any], names: Names, tmp_path: Path) -> None:
    config["device"]["gap_ns"] = 1000
    record, computed = job.run(config, names, tmp_path)
    assert computed
    assert record.state == "done"
    assert record.status == "feasible"
    assert record.score is not None
    assert record.bound is not None
    # Law 1: one stream takes the sum of durations and gaps: 5 ops of 1 ms and 4 gaps of 1 us.
    assert record.score.makespan_ns == 5_000_000 + 4_000
    # Most is live during the last branch: the split's output, and the outputs of all three branches.
    assert record.score.peak_bytes == 4 * 4096
    assert (record.score.streams, record.score.waits, record.score.fences) == (1, 0, 0)
    # Split, branch, join, one after another, are 3 ms at least, and on 4 streams nothing makes it longer than 4 ms.
    assert 3_000_000 <= record.bound.makespan_ns <= 4_000_000
    assert record.gap == pytest.approx(5_004_000 / record.bound.makespan_ns - 1)
    assert record.warnings[0] == "a fork is assumed"
    assert record.violations == []
    assert {"read", "lower", "solve", "score"} <= set(record.seconds)
    assert records.read(tmp_path) == record


def test_record_says_where_it_comes_from(config: dict[str, Any], names: Names, tmp_path: Path) -> None:
    record, _ = job.run(config, names, tmp_path)
    assert record.config == config
    assert {"msched", "ortools", "numpy", "hydra-core"} <= set(record.versions)
    assert record.machine.cores >= 1
    text = (tmp_path / "record.json").read_text()
    assert os.uname().nodename not in record.machine.system
    assert str(Path.home()) not in text or str(Path.home()) == "/"


def test_status_is_about_the_score_and_not_about_the_claim(
    config: dict[str, Any], names: Names, tmp_path: Path
) -> None:
    # Five streams for five ops: one more than the limit, so what its solver calls optimal is no plan at all.
    config["solver"] = {"_target_": f"{FAKES}.Liar"}
    record, _ = job.run(config, names, tmp_path)
    assert record.status == "invalid"
    assert "stream" in record.reason
    assert record.gap is None


def test_infeasible_limit_is_a_result(config: dict[str, Any], names: Names, tmp_path: Path) -> None:
    config["memory_bytes"] = 4096  # one branch needs the output of the split and its own beside it
    config["solver"] = {"_target_": "msched.solvers.exact.cpsat.CpSat"}
    record, _ = job.run(config, names, tmp_path)
    assert record.state == "done"
    assert record.status == "infeasible"
    assert record.reason
    assert record.score is None


def test_finished_cell_is_given_back(config: dict[str, Any], names: Names, tmp_path: Path) -> None:
    first, _ = job.run(config, names, tmp_path)
    again, computed = job.run({**config, "study": "another name"}, names, tmp_path)
    assert not computed
    assert again == first


@pytest.mark.parametrize(
    "change", [{"force": True}, {"seed": 1}, {"workload": {"_target_": f"{FAKES}.fork", "branches": 4}}]
)
def test_changed_or_forced_cell_is_computed_again(
    config: dict[str, Any], names: Names, tmp_path: Path, change: dict[str, Any]
) -> None:
    job.run(config, names, tmp_path)
    _, computed = job.run({**config, **change}, names, tmp_path)
    assert computed


def test_cells_of_a_network_share_its_graph_and_know_it_from_others(config: dict[str, Any]) -> None:
    def graph(**changes: int) -> OpGraph:
        return inputs.graph_of({**config, "workload": {**load("workload", "random_layered"), **changes}})

    assert graph(ops=12) is graph(ops=12)
    assert [len(graph(ops=ops).ops) for ops in (12, 13, 12)] == [12, 13, 12]


def test_same_config_with_another_input_is_computed_again(config: dict[str, Any], names: Names, tmp_path: Path) -> None:
    from tests.study.fakes import fork

    path = tmp_path / "graph.json"
    config["workload"] = {"_target_": "msched.formats.read", "path": str(path)}
    path.write_bytes(fork(2).to_json())
    two, _ = job.run(config, names, tmp_path)
    path.write_bytes(fork(3).to_json())
    three, computed = job.run(config, names, tmp_path)
    assert computed
    assert two.cell == three.cell
    assert two.input is not None
    assert three.input is not None
    assert (two.input.ops, three.input.ops) == (4, 5)


@pytest.mark.parametrize("change", [{"problem": None}, {"versions": {"msched": "0.0.1"}}])
def test_cell_of_another_version_or_lowering_is_computed_again(
    config: dict[str, Any], names: Names, tmp_path: Path, change: dict[str, Any]
) -> None:
    record, _ = job.run(config, names, tmp_path)
    for name, value in change.items():
        setattr(record, name, value)
    records.write(record, tmp_path)
    assert job.run(config, names, tmp_path)[1]


@pytest.mark.parametrize("state", ["failed", "interrupted"])
def test_unfinished_cell_is_computed_again(config: dict[str, Any], names: Names, tmp_path: Path, state: Any) -> None:
    record, _ = job.run(config, names, tmp_path)
    record.state = state
    records.write(record, tmp_path)
    assert job.run(config, names, tmp_path)[1]


def test_unreadable_record_is_computed_again(config: dict[str, Any], names: Names, tmp_path: Path) -> None:
    (tmp_path / "record.json").write_text("{")
    assert job.run(config, names, tmp_path)[1]
    assert records.read(tmp_path).state == "done"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"workload": {"_target_": "msched.formats.read", "path": "nowhere.onnx"}}, "nowhere.onnx"),
        ({"workload": {"_target_": "msched.formats.read", "path": "???"}}, "workload.path has no value"),
        ({"workload": {"_target_": f"{FAKES}.number"}}, "gives int, not OpGraph"),
        ({"workload": {"path": "x"}}, "no _target_"),
        ({"workload": {"_target_": f"{FAKES}.fork", "twigs": 3}}, "twigs"),
        ({"workload": {"_target_": f"{FAKES}.nothing"}}, "nothing"),
        ({"solver": {"_target_": f"{FAKES}.fork"}}, "no solve"),
        ({"streams": 0}, "streams"),
        ({"workers": 0}, "workers"),
        ({"time_limit": -1.0}, "time_limit"),
    ],
)
def test_failed_job_leaves_a_record_that_says_why(
    config: dict[str, Any], names: Names, tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    record, _ = job.run({**config, **change}, names, tmp_path)
    assert record.state == "failed"
    assert says in record.error
    assert record.traceback == ""
    assert records.read(tmp_path) == record


def test_defect_leaves_its_traceback_without_folders(config: dict[str, Any], names: Names, tmp_path: Path) -> None:
    config["workload"] = {"_target_": f"{FAKES}.broken"}
    record, _ = job.run(config, names, tmp_path)
    assert record.error == "ZeroDivisionError: nothing divides by zero"
    assert "fakes.py" in record.traceback
    assert os.sep not in record.traceback


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_the_solve_and_keeps_its_plan(
    config: dict[str, Any], names: Names, tmp_path: Path, number: int
) -> None:
    config["solver"] = {"_target_": f"{FAKES}.Endless", "seconds": 60.0}
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt):
        job.run(config, names, tmp_path, on_progress=lambda _: os.kill(os.getpid(), number))
    record = records.read(tmp_path)
    assert record.state == "interrupted"
    assert record.score is not None
    assert record.seconds["solve"] < 60
    assert signal.getsignal(number) == before


def test_solvers_of_msched_are_warmed_up_once_each(
    config: dict[str, Any], names: Names, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    solved: list[int] = []

    def counted(solver: Compose, problem: Problem, budget: Budget) -> Plan:
        solved.append(problem.n)
        return plain(solver, problem, budget)

    plain = Compose.solve
    monkeypatch.setattr(Compose, "solve", counted)
    monkeypatch.setattr(job, "_WARM", set())
    for solver, seed in (("single", 1), ("single", 2), ("ge", 1)):
        record, _ = job.run({**config, "solver": load("solver", solver), "seed": seed}, names, tmp_path)
        assert record.state == "done", record.error
    assert solved == [3, 5, 5, 3, 5]  # three ops before the first of each solver; the fake network has five


def test_interruption_before_the_solve_leaves_a_record(
    config: dict[str, Any], names: Names, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("msched.study.inputs.problem_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        job.run(config, names, tmp_path)
    assert records.read(tmp_path).state == "interrupted"


def test_score_below_the_bound_fails_the_job(
    config: dict[str, Any], names: Names, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from msched import bounds

    def too_high(_: object) -> bounds.Bound:
        return bounds.Bound(10**9, "a wrong proof", {"a wrong proof": 10**9})

    monkeypatch.setattr(bounds, "bound", too_high)
    record, _ = job.run(config, names, tmp_path)
    assert record.state == "failed"
    assert record.error.startswith("InternalError")
    assert "a wrong proof" in record.error


def test_gap() -> None:
    assert job.gap(150, 100) == 0.5
    assert job.gap(100, 100) == 0
    assert job.gap(0, 0) == 0
    assert job.gap(5, 0) is None


def test_errors_of_records_name_the_file(tmp_path: Path) -> None:
    with pytest.raises(MschedError, match=r"record\.json"):
        records.read(tmp_path)


def test_a_choice_of_slices_is_recorded_with_the_bound_of_all(
    config: dict[str, Any], names: Names, tmp_path: Path
) -> None:
    small = {"name": "llama", "size": "7b", "tensor_parallel": 8, "layers": 1, "sequence": 512}
    config.update(workload={"_target_": "msched.networks.network", **small}, slices="auto", slice_choices=[1, 2, 600])
    record, computed = job.run(config, names, tmp_path)
    assert (record.state, computed) == ("done", True)
    assert [one.slices for one in record.tried] == [1, 2, 600]
    assert record.tried[2].status == "impossible"
    reached = {one.slices: one.makespan_ns for one in record.tried if one.makespan_ns is not None}
    assert record.score is not None
    assert record.bound is not None
    assert record.problem is not None
    assert record.score.makespan_ns == min(reached.values()) == reached[record.slices]
    assert record.bound.makespan_ns == min(one.bound_ns for one in record.tried if one.bound_ns is not None)
    again, computed = job.run(config, names, tmp_path)
    assert not computed
    assert again.slices == record.slices
