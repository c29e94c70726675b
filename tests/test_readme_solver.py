from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"


def test_a_solver_of_ones_own_runs_as_the_readme_says(tmp_path: Path) -> None:
    section = README.read_text(encoding="utf-8").split("## A solver of your own")[1].split("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    (config,) = re.findall(r"```yaml\n(.*?)```", section, re.DOTALL)
    (command,) = re.findall(r"^    (PYTHONPATH=.*)$", section, re.MULTILINE)
    (tmp_path / "my_package.py").write_text(code, encoding="utf-8")
    (tmp_path / "conf" / "solver").mkdir(parents=True)
    (tmp_path / "conf" / "solver" / "alternate.yaml").write_text(config, encoding="utf-8")
    variable, msched, *arguments = command.split()
    assert (variable, msched) == ("PYTHONPATH=.", "msched")
    done = subprocess.run(
        [sys.executable, "-m", "msched", *arguments],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": "."}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.match("light_squeezenet on atlas_800i_a2, alternate: .*, streams: 3, waits: ", done.stdout)
