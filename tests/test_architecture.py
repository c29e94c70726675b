"""Which file may import which, that solvers and their configs match, and that a first import stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "msched"

# Front to back; a file imports from its own line and from those above. Rooms of one line may import each other in one
# direction. Types count: what is only imported for them is known all the same.
ROOMS = (
    ("errors", "arrays", "compiled", "topology", "topology_kernel", "config"),
    ("graph", "device"),
    ("problem", "problem_arrays", "problem_arguments", "problem_exchange", "plan", "waits_kernel"),
    ("formats", "networks", "lowering"),
    ("simulator", "memory", "bounds", "bounds_kernel", "antichain", "antichain_kernel"),
    ("solvers",),
    ("validate", "rederivation", "rederivation_kernel"),
    ("study",),
    ("report", "export"),
    ("cli", "__main__"),
)
RANK = {room: rank for rank, line in enumerate(ROOMS) for room in line}
FACADE = "msched"  # exports from every room, and so may be asked for nothing but the version from inside
VERBS = {"solve", "assign", "sequence"}  # what the protocols in solvers/base.py ask for
HEAVY = ("hydra", "matplotlib", "networkx", "numba", "onnx", "ortools", "pandas")


class Import(NamedTuple):
    """A line of `importer` that imports `target`, both modules of the package; `name` is what it takes from there."""

    importer: str
    target: str
    name: str
    place: str
    only_type: bool


def _module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def _trees() -> dict[str, tuple[Path, ast.Module]]:
    paths = sorted(PACKAGE.rglob("*.py"))
    return {_module(path): (path, ast.parse(path.read_text(encoding="utf-8"))) for path in paths}


@cache
def _imports() -> tuple[Import, ...]:
    return tuple(found for module in _trees() for found in _imports_of(module))


def _imports_of(module: str) -> Iterator[Import]:
    path, tree = _trees()[module]
    guarded = {
        id(node)
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and ast.unparse(branch.test) == "TYPE_CHECKING"
        for node in ast.walk(branch)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.relative_to(ROOT)}:{node.lineno}: a relative import; write it in full"
            names = [(f"{node.module}.{alias.name}", node.module or "", alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [(alias.name, alias.name, "") for alias in node.names]
        else:
            continue
        place = f"{path.relative_to(ROOT)}:{node.lineno}"
        for full, source, name in names:
            target = full if full in _trees() else source
            if target.split(".")[0] == "msched":
                yield Import(module, target, "" if target == full else name, place, id(node) in guarded)


def _room(module: str) -> str:
    return FACADE if module == FACADE else module.split(".")[1]


def _once(lines: list[str]) -> str:
    return "\n".join(dict.fromkeys(lines))


def test_every_module_has_its_place_in_the_line() -> None:
    stray = sorted({_room(module) for module in _trees()} - {*RANK, FACADE})
    assert not stray, f"no place in ROOMS, in {Path(__file__).name}, for: {', '.join(stray)}"


def test_imports_run_in_one_direction() -> None:
    wrong = []
    for line in _imports():
        here, there = _room(line.importer), _room(line.target)
        if here == FACADE or (there == FACADE and line.name == "__version__"):
            continue
        if there == FACADE or RANK[there] > RANK[here]:
            wrong.append(f"{line.place}: {here} imports {line.target}, which comes after it")
    assert not wrong, _once(wrong)


def test_no_two_rooms_import_each_other() -> None:
    lines = [line for line in _imports() if _room(line.importer) not in (FACADE, _room(line.target))]
    needs: dict[str, set[str]] = {}
    for line in lines:
        needs.setdefault(_room(line.importer), set()).add(_room(line.target))
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        circle = error.args[1]
        steps = [
            f"{a.place}: {_room(a.importer)} imports {a.target}" for a in lines if {*map(_room, a[:2])} <= {*circle}
        ]
        pytest.fail(_once([f"a circle of {', '.join(circle[1:])}:", *steps]))


def test_the_validator_runs_no_code_of_what_it_checks() -> None:
    allowed = {"errors", "arrays", "compiled", "problem", "plan", "rederivation", "rederivation_kernel"}
    checker = [
        line
        for line in _imports()
        if _room(line.importer) in ("validate", "rederivation", "rederivation_kernel") and not line.only_type
    ]
    wrong = [
        f"{line.place}: the validator imports {line.target}.{line.name}"
        for line in checker
        if _room(line.target) not in allowed or (_room(line.target) == "plan" and line.name != "Plan")
    ]
    assert checker
    assert not wrong, _once(wrong)


def _algorithms() -> dict[str, list[str]]:
    """Modules of solvers/ that hold an algorithm, a class with a verb of the protocols, and the names of these."""
    found: dict[str, list[str]] = {}
    for module, (_, tree) in _trees().items():
        if not module.startswith("msched.solvers.") or module == "msched.solvers.base":
            continue
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                methods = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
                if methods & VERBS:
                    found.setdefault(module, []).append(node.name)
    return found


def test_nothing_imports_an_algorithm_by_name() -> None:
    # Configs alone name algorithms. What two of them share lies in a file that holds none.
    wrong = [
        f"{line.place}: imports {line.target}, an algorithm" for line in _imports() if line.target in _algorithms()
    ]
    assert not wrong, _once(wrong)


def test_a_kernel_of_an_algorithm_is_its_own() -> None:
    wrong = [
        f"{line.place}: imports {line.target}, the kernel of another algorithm"
        for line in _imports()
        if line.target.removesuffix("_kernel") in {*_algorithms()} - {line.target, line.importer}
    ]
    assert not wrong, _once(wrong)


def test_one_file_holds_one_algorithm() -> None:
    crowded = {module: names for module, names in _algorithms().items() if len(names) > 1}
    assert not crowded


def _targets(config: object, file: str) -> Iterator[tuple[str, str]]:
    if isinstance(config, dict):
        if "_target_" in config:
            yield config["_target_"], file
        for value in config.values():
            yield from _targets(value, file)
    elif isinstance(config, list):
        for value in config:
            yield from _targets(value, file)


def test_every_algorithm_has_a_config_and_every_config_an_algorithm() -> None:
    files = sorted((ROOT / "conf" / "solver").glob("*.yaml"))
    named = [pair for path in files for pair in _targets(yaml.safe_load(path.read_text(encoding="utf-8")), path.name)]
    known = {f"{module}.{name}": module for module, names in _algorithms().items() for name in names}
    lost = [
        f"conf/solver/{file}: {target} is no class with {sorted(VERBS)}"
        for target, file in named
        if target not in known
    ]
    mute = [
        f"{_trees()[module][0].relative_to(ROOT)}: no file in conf/solver builds {target}"
        for target, module in known.items()
        if target not in dict(named)
    ]
    assert named
    assert not [*lost, *mute], _once([*lost, *mute])


@pytest.mark.parametrize(
    "program",
    [
        pytest.param("import msched", id="import msched"),
        pytest.param("sys.argv = ['msched', '--help']; from msched.cli import main; main()", id="msched --help"),
    ],
)
def test_a_first_look_loads_nothing_heavy(program: str) -> None:
    told = f"import atexit, sys; atexit.register(lambda: print('loaded:', *sorted(sys.modules))); {program}"
    done = subprocess.run([sys.executable, "-c", told], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = done.stdout.rpartition("loaded: ")[2].split()
    assert "msched" in loaded
    assert [name for name in loaded if name in HEAVY] == []
