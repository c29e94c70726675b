"""The pages: built without a warning, and what is computed in them is what the code computes now."""

from __future__ import annotations

import importlib.util
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import msched
from msched.config import about, options

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
MISSING = [name for name in ("mkdocs", "pymdownx", "mkdocstrings", "griffe") if importlib.util.find_spec(name) is None]
with_mkdocs = pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)}: not installed; make docs installs it")


def module(name: str) -> dict[str, Any]:
    return runpy.run_path(str(DOCS / f"{name}.py"))


@pytest.mark.parametrize(("page", "group"), [("networks", "workload"), ("solvers", "solver"), ("devices", "device")])
def test_every_config_has_its_section(page: str, group: str) -> None:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    shown = module("conf_pages")["on_page_markdown"](text)
    for name in options(group):
        assert f"### {name}\n\n{about(group, name)}\n" in shown
        assert f"conf/{group}/{name}.yaml" in shown
    assert "_target_: msched.formats.read" in shown or group != "workload"


def test_pictures_are_small_and_of_workloads_that_are_there() -> None:
    pictures = sorted((DOCS / "pictures").glob("*.svg"))
    assert pictures
    assert {path.stem for path in pictures} <= set(options("workload"))
    assert max(path.stat().st_size for path in pictures) < 60_000
    shown = module("conf_pages")["sections"]("workload")
    assert re.findall(r"!\[.*\]\((.*)\)", shown) == [f"pictures/{path.name}" for path in pictures]


@with_mkdocs
def test_lines_on_arguments_become_items() -> None:
    text = "What it does.\n\nfirst (n,): ns. second, third: bytes,\n    on two lines.\nRaises Error: never."
    assert module("docstring_lists")["as_lists"](text) == (
        "What it does.\n\n\n- **first (n,)**: ns.\n- **second, third**: bytes,\n  on two lines.\n\nRaises Error: never."
    )


@pytest.mark.slow
def test_committed_table_and_pictures_are_what_the_code_gives(tmp_path: Path) -> None:
    module("pictures")["main"](tmp_path)
    committed = {path.name: path.read_text(encoding="utf-8") for path in (DOCS / "pictures").iterdir()}
    now = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    stale = sorted(name for name in {*committed, *now} if committed.get(name) != now.get(name))
    assert not stale, "make pictures"


@with_mkdocs
@pytest.mark.slow
def test_pages_are_built_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = {path.stem for path in tmp_path.glob("*.html")}
    assert pages >= {"index", "model", "networks", "solvers", "studies", "formats", "devices", "reference"}
    reference = (tmp_path / "reference.html").read_text(encoding="utf-8")
    for name in msched.__all__:
        assert name == "solvers" or re.search(rf'id="msched\.[\w.]*\b{name}"', reference), name
