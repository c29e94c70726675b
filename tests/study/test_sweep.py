from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from msched.errors import OptionError
from msched.study import records, sweep
from msched.study.records import Names

BASE = ["device=atlas_800i_a2", "simulator=arrival"]
STUDY = """
defaults: [config, _self_]
study: forks
hydra:
  mode: MULTIRUN
  sweeper: {params: {workload: "fork,broken", solver: "one", seed: "1,2"}}
"""


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


def test_one_job(search_path: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["-cd", str(search_path()), "workload=fork", "solver=one", "workload.branches=2", *BASE]
    sweep.main(arguments)
    line, path = capsys.readouterr().out.splitlines()
    assert line.startswith("fork on atlas_800i_a2, one: 4.003 ms")
    record = records.read(Path(path))
    assert record.names == Names(
        workload="fork", device="atlas_800i_a2", solver="one", simulator="arrival", objective="makespan"
    )
    assert record.config["workload"]["branches"] == 2
    assert Path(path).parent.parent == Path("runs/single")
    sweep.main(arguments)
    assert capsys.readouterr().out.splitlines()[0].endswith("(finished before)")


def test_sweep_goes_on_after_a_failure_and_resumes(
    search_path: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["-cd", str(search_path(forks=STUDY)), "-cn", "forks"]
    for _ in range(2):
        with pytest.raises(sweep.JobFailedError, match="runs/forks") as caught:
            sweep.main(arguments)
        shown = capsys.readouterr()
        # no terminal: one line at the end, and what failed
        assert shown.out == "runs/forks: 2 done, 2 failed\n"
        assert shown.err == "1 warning: a fork is assumed; it is in runs/forks/*/record.json\n"
        assert str(caught.value).startswith("2 jobs failed:\n")
        assert str(caught.value).count("broken on atlas_800i_a2, one: failed: ZeroDivisionError") == 2
        found, _ = records.load(Path("runs/forks"))
        assert sorted((r.names.workload, r.seed, r.state) for r in found) == [
            ("broken", 1, "failed"), ("broken", 2, "failed"), ("fork", 1, "done"), ("fork", 2, "done"),
        ]  # fmt: skip
    written = [path.stat().st_mtime_ns for path in sorted(Path("runs/forks").glob("fork-*/record.json"))]
    with pytest.raises(sweep.JobFailedError):
        sweep.main(arguments)
    assert [path.stat().st_mtime_ns for path in sorted(Path("runs/forks").glob("fork-*/record.json"))] == written


def test_one_job_tells_its_warnings(search_path: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    path = search_path()
    for placement, says in (
        ("{}", "1 warning: a fork is assumed; it is in"),
        ("{Kustom: vector}", "2 warnings; first: a fork is assumed; all in"),
    ):
        sweep.main(["-cd", str(path), "workload=fork", "solver=one", f"placement={placement}"])
        shown = capsys.readouterr()
        assert shown.err == f"{says} {shown.out.splitlines()[1]}\n"
    assert "no op is of kind 'Kustom'" in records.read(Path(shown.out.splitlines()[1])).warnings[1]


def test_placement_works_as_the_config_says(search_path: Callable[..., Path]) -> None:
    chosen = ["placement={Custom: matrix}", "+placement.Custom=matrix", "placement={Custom: {ai_core: 1}}"]
    for override in chosen:
        sweep.main(["-m", "-cd", str(search_path()), "workload=fork", "solver=one", override])
    found, _ = records.load(Path("runs/single"))
    assert {r.state for r in found} == {"done"}
    assert [warning for r in found for warning in r.warnings if "placement" in warning] == []


def test_interruption_tells_the_plan_and_where_it_is(
    search_path: Callable[..., Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("msched.study.progress.Live.on_progress", stop)
    path = search_path(solver__endless="_target_: tests.study.fakes.Endless\n")
    with pytest.raises(KeyboardInterrupt):
        sweep.main(["-cd", str(path), "workload=fork", "solver=endless"])
    line, place = capsys.readouterr().err.splitlines()
    assert line.startswith("fork on atlas_800i_a2, endless: 5.004 ms, feasible, ")
    assert line.endswith(" (interrupted)")
    assert records.read(Path(place)).state == "interrupted"


def test_bases_are_no_choice(search_path: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        sweep.main(["-cd", str(search_path()), "workload=fork", "solver=one", "device=_ascend"])
    assert "device=_ascend is a base that others inherit from; there are: a100, " in capsys.readouterr().err
    with pytest.raises(OptionError, match="Available options in 'device': a100 ") as caught:
        sweep.main(["device=tpu"])
    assert "_ascend" not in str(caught.value)
    with suppress(SystemExit):  # with which Hydra may end
        sweep.main(["--help"])
    shown = capsys.readouterr().out
    assert "\ndevice: a100, " in shown
    assert "_ascend" not in shown


def test_open_dimensions_are_set_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    shape: list[str | int | None] = ["batch", 3, None, None]
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), "open.onnx")
    run = ["workload=file", "workload.path=open.onnx", "solver=single"]
    sweep.main(run)
    assert "'workload.dimensions={batch: 1, x_2: 1, x_3: 1}'" in capsys.readouterr().err
    for sizes in ("workload.dimensions={batch: 8, x_2: 224, x_3: 32}", "workload.dimensions={batch:8,x_2:224,x_3:32}"):
        sweep.main([*run, sizes])
        shown = capsys.readouterr()
        assert shown.err == ""
    record = records.read(Path(shown.out.splitlines()[1]))
    assert record.score is not None
    assert record.score.peak_bytes == 2 * 8 * 3 * 224 * 32 * 4
    with pytest.raises(OptionError, match=r"is set as 'workload.dimensions=\{batch: 8\}'"):
        sweep.main([*run, "workload.batch=8"])


def test_the_same_folder_with_other_overrides_loses_nothing(search_path: Callable[..., Path]) -> None:
    conf = ["-m", "-cd", str(search_path()), "workload=fork", "solver=one"]
    sweep.main([*conf, "seed=1,2"])
    sweep.main([*conf, "seed=3,4"])
    assert sorted(r.seed for r in records.load(Path("runs/single"))[0]) == [1, 2, 3, 4]


def test_only_job_that_fails_says_so_and_exits_with_2(
    search_path: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        sweep.main(["-cd", str(search_path()), "workload=file", "workload.path=nowhere.onnx", "solver=one"])
    assert caught.value.code == 2
    assert "nowhere.onnx" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["workload=nope"], "workload/nope"),
        (["solver=one", "tim_limit=3"], "tim_limit"),
        (["-cn", "nope"], "nope"),
        (["seed=("], "seed=("),
        (["-m", "workload=fork", "solver=one,nope"], "solver/nope"),
    ],
)
def test_what_hydra_refuses_is_one_line(search_path: Callable[..., Path], arguments: list[str], says: str) -> None:
    with pytest.raises(OptionError) as caught:
        sweep.main(["-cd", str(search_path()), *arguments])
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_another_process_can_run_the_jobs(search_path: Callable[..., Path]) -> None:
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher", reason="needs the extra msched[launch]")
    launcher = ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]
    sweep.main(["-m", "-cd", str(search_path()), "workload=fork", "solver=one", "seed=1,2", *launcher])
    assert sorted(r.seed for r in records.load(Path("runs/single"))[0]) == [1, 2]


def test_folder_of_a_cell_is_readable_and_safe() -> None:
    names = Names(workload="nets/odd name", device="chip", solver="heft")
    folder = sweep.cell_folder(names, {"seed": 0})
    assert folder.startswith("nets_odd_name-chip-heft-")
    assert Path(folder).name == folder
    assert folder != sweep.cell_folder(names, {"seed": 1})


def test_a_file_is_known_by_its_name(
    search_path: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "two.json"
    file.write_text(
        '{"schema": "msched.graph/1", "name": "x", "ops": [{"name": "a", "kind": "Add", "duration_ns": 5}]}'
    )
    sweep.main(["-cd", str(search_path()), "workload=file", f"workload.path={file}", "solver=one"])
    line, path = capsys.readouterr().out.splitlines()
    assert line.startswith("two on atlas_800i_a2, one:")
    assert records.read(Path(path)).names.workload == "two"
