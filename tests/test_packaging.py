from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
STUDY = ["msched", "run", "-cd", str(ROOT / "experiments" / "first"), "-cn", "study"]
REDUCED = ["workload=light_squeezenet,light_inception_v1", "streams=2", "time_limit=0.2"]


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def python(*arguments: str, cwd: Path, **environment: str) -> str:
    """What Python prints, run from `cwd`, which it searches for modules first."""
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_wheel_carries_the_configs_and_finds_them(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    assert content(tmp_path / "site" / "msched" / "conf") == content(ROOT / "conf")
    program = (
        "import msched.cli, msched.config, sys\n"
        "print(msched.config.conf_directory())\n"
        "sys.argv = ['msched', 'run', '--cfg', 'job', '-p', 'device.name']\n"
        "msched.cli.main()\n"
    )
    place, _, device = python("-c", program, cwd=tmp_path, PYTHONPATH=str(tmp_path / "site")).partition("\n")
    assert Path(place) == tmp_path / "site" / "msched" / "conf"
    assert device.strip().endswith("atlas_800i_a2")


def test_omegaconf_is_left_to_hydra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [*project["dependencies"], *(r for extra in project["optional-dependencies"].values() for r in extra)]
    assert not any("omegaconf" in requirement for requirement in named)
    assert any(requirement.startswith("hydra-core>=1.3.8") for requirement in named)


def test_constraints_pin_what_is_required() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in lines if "==" in line}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [*project["dependencies"], *(r for extra in project["optional-dependencies"].values() for r in extra)]
    assert {requirement.split(">=")[0].lower() for requirement in named} <= pinned


def test_scripts_are_executable() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_readme_shows_the_committed_results() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert (ROOT / "results" / "first" / "best.md").read_text(encoding="utf-8") in readme
    for target in re.findall(r"\]\(([^):]+)\)", readme):
        assert (ROOT / target).exists(), target


def test_python_in_the_readme_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 5
    for number, block in enumerate(blocks):
        script = tmp_path / f"readme{number}.py"
        script.write_text(block, encoding="utf-8")
        runpy.run_path(str(script))


@pytest.mark.slow
def test_committed_results_are_what_the_study_gives(tmp_path: Path) -> None:
    import pandas

    proven = ["light_squeezenet", "light_resnet50", "light_inception_v1"]
    python("-m", *STUDY, f"workload={','.join(proven)}", f"output={tmp_path / 'runs'}", cwd=tmp_path)
    python("-m", "msched", "table", "runs", "--output", "out", "--no-timings", cwd=tmp_path)
    # nullable types: a figure that one row lacks must not make floats of the whole numbers of the others
    now = pandas.read_csv(tmp_path / "out" / "table.csv", dtype_backend="numpy_nullable")
    committed = pandas.read_csv(ROOT / "results" / "first" / "table.csv", dtype_backend="numpy_nullable")
    committed = committed[committed["workload"].isin(proven)].reset_index(drop=True)
    # a column of words that says nothing of these networks is not in their table
    committed, now = (frame.dropna(axis="columns", how="all") for frame in (committed, now))
    assert len(now) == 7 * len(proven)
    pandas.testing.assert_frame_equal(now, committed)


@pytest.mark.slow
def test_first_study_gives_one_table_whatever_the_hash_seed(tmp_path: Path) -> None:
    tables = []
    for seed in ("0", "1", "2"):
        runs, out = tmp_path / f"runs{seed}", tmp_path / f"out{seed}"
        python("-m", *STUDY, *REDUCED, f"output={runs}", cwd=tmp_path, PYTHONHASHSEED=seed)
        python(
            "-m", "msched", "table", str(runs), "--output", str(out), "--no-timings", cwd=tmp_path, PYTHONHASHSEED=seed
        )
        tables.append(content(out))
    assert "table.csv" in tables[0]
    assert tables[0] == tables[1] == tables[2]
