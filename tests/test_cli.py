from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import msched
from msched import cli
from msched.config import options
from msched.errors import OptionError

HEAVY = ("numpy", "pandas", "numba", "ortools", "hydra", "omegaconf", "networkx", "onnx", "matplotlib", "pyarrow")


def run(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Exit code of `msched ARGUMENTS`, run in this process."""
    monkeypatch.setattr(sys, "argv", ["msched", *arguments])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return int(caught.value.code or 0)


def test_version(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("version", monkeypatch=monkeypatch) == 0
    assert capsys.readouterr().out == f"{msched.__version__}\n"


def test_help_and_import_load_nothing_heavy() -> None:
    program = (
        "import sys, msched, msched.cli\n"
        "sys.argv = ['msched', '--help']\n"
        "try:\n    msched.cli.main()\n"
        f"finally:\n    print('loaded:', *(m for m in {HEAVY!r} if m in sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr == "loaded:\n"
    assert all(command in done.stdout for command in ("run", "table", "show", "list", "version"))


def test_list_names_and_describes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list", monkeypatch=monkeypatch) == 0
    shown = capsys.readouterr().out
    for group in ("workload", "device", "solver"):
        assert f"{group}s\n" in shown
        assert all(f"  {name} " in shown for name in options(group))
    assert run("list", "solvers", monkeypatch=monkeypatch) == 0
    shown = capsys.readouterr().out
    assert "workloads" not in shown
    described = [line.split(maxsplit=1) for line in shown.splitlines()[1:]]
    assert all(len(line) == 2 for line in described)


def test_list_workloads_gives_figures(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("msched.report.workloads.options", lambda group: ["file", "light_squeezenet"])
    monkeypatch.chdir(tmp_path)
    assert run("list", "workloads", "--device", "h200", "--csv", "figures.csv", monkeypatch=monkeypatch) == 0
    shown = capsys.readouterr()
    assert "| light_squeezenet |" in shown.out
    assert "- file: workload.path has no value" in shown.out
    assert shown.err == ""
    assert (tmp_path / "figures.csv").read_text().startswith("workload,graph_ops,ops,flops,")
    assert run("list", "workloads", "--csv", "nowhere/figures.csv", monkeypatch=monkeypatch) == 2
    assert "nowhere/figures.csv: cannot be written: No such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["list", "models"], "workloads, devices, solvers"),
        (["list", "workloads", "--device", "abacus"], "device 'abacus' is not known"),
        (["list", "devices", "--csv", "out.csv"], "--csv goes with: msched list workloads"),
        (["table", "nowhere"], "nowhere is not a folder"),
        (["show", "nowhere"], "nowhere: No such file"),
        (["draw", "nowhere"], "'nowhere' is no file and no workload"),
        (["run", "workload=nope"], "workload/nope"),
        (["run", "tim_limit=3"], "tim_limit"),
        (["run", "workload=file"], "workload.path has no value"),
        (["run", "workload=file", "workload.path=nowhere.onnx"], "nowhere.onnx"),
    ],
)
def test_user_errors_are_one_line_and_exit_code_2(
    arguments: list[str],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*arguments, monkeypatch=monkeypatch) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert says in error
    assert error.count("\n") == 1


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYDRA_FULL_ERROR", "0")  # the option sets it, and monkeypatch puts it back
    monkeypatch.setattr(sys, "argv", ["msched", "--debug", "table", "nowhere"])
    with pytest.raises(OptionError):
        cli.main()


def test_interruption_is_exit_code_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(_: list[str]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("msched.study.sweep.main", interrupted)
    assert run("run", monkeypatch=monkeypatch) == 130
    assert "interrupted" in capsys.readouterr().err


def test_run_table_show(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    cells = ["-m", "workload=random_layered", "workload.ops=12", "solver=single,heft", "study=small"]
    assert run("run", *cells, monkeypatch=monkeypatch) == 0
    assert run("table", "runs/small", "--output", "out", "--no-timings", monkeypatch=monkeypatch) == 0
    assert "| random_layered" in capsys.readouterr().out
    assert (tmp_path / "out" / "table.csv").read_text().count("random_layered") == 2
    job = next(Path("runs/small").glob("*heft*"))
    assert run("show", str(job), monkeypatch=monkeypatch) == 0
    assert capsys.readouterr().out.splitlines() == [
        str(job / name) for name in ("gantt.png", "gantt.svg", "trace.json")
    ]


def test_draw_writes_the_picture_of_a_changed_workload(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("draw", "random_layered", "ops=7", "--device", "h200", monkeypatch=monkeypatch) == 0
    assert capsys.readouterr().out == "random_layered.svg\n"
    assert "random_layered on h200: 7 ops (ops=7)" in (tmp_path / "random_layered.svg").read_text()


def test_hydra_options_reach_hydra(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("run", "--cfg", "job", "-p", "simulator", monkeypatch=monkeypatch) == 0
    assert "dispatch: arrival" in capsys.readouterr().out
    assert run("run", "--help", monkeypatch=monkeypatch) == 0
    assert "simulator: arrival, greedy, planned" in capsys.readouterr().out
