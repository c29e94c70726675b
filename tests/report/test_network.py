from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings

from msched.errors import OptionError
from msched.lowering import lower
from msched.problem import Problem
from msched.report.network import MOST_OPS, graph_of, layers, picture, write
from msched.report.palette import INK, colour
from tests.strategies import problems

SVG = "{http://www.w3.org/2000/svg}"


def dots(svg: str) -> dict[str, tuple[float, float, float, str, str]]:
    """Of each op by name: x, y, radius, fill and stroke of its dot."""
    found = {}
    for group in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        for circle in group.findall(f"{SVG}circle"):
            name = (circle.findtext(f"{SVG}title") or "").rpartition(": ")[0]
            x, y, radius = (float(circle.get(key, "nan")) for key in ("cx", "cy", "r"))
            found[name] = (x, y, radius, group.get("fill", ""), group.get("stroke", ""))
    return found


@given(problems(most_ops=12, tensors=False))
@settings(max_examples=50)
def test_every_op_is_one_dot_right_of_what_it_waits_for(problem: Problem) -> None:
    drawn = dots(picture(problem, "any"))
    assert sorted(drawn) == sorted(problem.op_names)
    for u, v in problem.edges.tolist():
        assert drawn[problem.op_names[u]][0] < drawn[problem.op_names[v]][0]
    for e, name in zip(problem.engine.tolist(), problem.op_names, strict=True):
        assert drawn[name][3] == colour(e)


@pytest.mark.parametrize("workload", ["erdos_renyi", "random_layered", "in_tree", "inception_v3"])
def test_dots_of_one_layer_do_not_overlap(workload: str) -> None:
    places = sorted((x, y) for x, y, *_ in dots(picture(lower(graph_of(workload), "atlas_800i_a2"), workload)).values())
    for (x, y), (to_x, to_y) in pairwise(places):
        assert x != to_x or to_y - y >= 13.9


def test_what_is_critical_is_ringed_and_what_takes_longer_is_larger() -> None:
    problem = Problem.from_arrays(duration=[2, 9, 4, 1], edges=[(0, 1), (0, 2), (1, 3), (2, 3)])
    drawn = dots(picture(problem, "diamond"))
    assert [drawn[f"op{v}"][4] for v in range(4)] == [INK, INK, "none", INK]
    radii = [drawn[f"op{v}"][2] for v in range(4)]
    assert radii[1] > radii[2] > radii[0] > radii[3]


def test_dependencies_that_others_imply_are_left_out() -> None:
    chain = picture(Problem.from_arrays(duration=[1, 1, 1], edges=[(0, 1), (1, 2)]), "chain")
    assert picture(Problem.from_arrays(duration=[1, 1, 1], edges=[(0, 1), (1, 2), (0, 2)]), "chain") == chain


def test_layers_of_a_late_input_are_next_to_its_use() -> None:
    """0 -> 1 -> 2 -> 3, and 4 -> 3: four layers, with 4 not in the first but beside 2."""
    edges = np.array([(0, 1), (1, 2), (2, 3), (4, 3)])
    assert layers(5, np.array([0, 4, 1, 2, 3]), edges).tolist() == [0, 1, 2, 3, 2]


def test_no_ops_make_an_empty_picture() -> None:
    assert dots(picture(Problem.from_arrays(duration=[]), "nothing")) == {}


def test_names_that_xml_cannot_hold_are_drawn() -> None:
    problem = Problem.from_arrays(duration=[1], op_names=["a\x00<b>&\"'"])
    assert list(dots(picture(problem, "\x01 & <title>"))) == ["a <b>&\"'"]


def test_too_many_ops_are_refused() -> None:
    with pytest.raises(OptionError, match=rf"{MOST_OPS + 1} ops cannot be told apart; at most {MOST_OPS}"):
        picture(Problem.from_arrays(duration=[1] * (MOST_OPS + 1)), "many")


def test_a_picture_needs_igraph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "igraph", None)
    with pytest.raises(OptionError, match=r"pip install 'msched\[draw\]'"):
        picture(Problem.from_arrays(duration=[1]), "one")


def test_a_workload_its_parameters_and_a_file_are_found(tmp_path: Path) -> None:
    assert len(graph_of("fork_join", ["branches=3", "stages=1", "length=1"]).ops) == 5
    path = tmp_path / "net.json"
    path.write_bytes(graph_of("light_squeezenet").to_json())
    assert graph_of(str(path)) == graph_of("light_squeezenet")


@pytest.mark.parametrize(
    ("what", "changes", "says"),
    [
        ("nowhere", [], "'nowhere' is no file and no workload; there are: "),
        ("file", [], "workload.path has no value"),
        ("fork_join", ["branches"], "'branches' changes nothing; parameters are given as key=value"),
        ("fork_join", ["brnches=3"], "no parameter brnches"),
        (
            "fork_join",
            ["stages=${x}"],
            r"^stages=\$\{x\}: cannot be read as key=value in YAML: Interpolation key 'x' not found$",
        ),
        ("fork_join", ["stages=["], r"^stages=\[: cannot be read as key=value in YAML: while parsing a flow node$"),
        ("fork_join", ["stages=!x"], "^stages=!x: cannot be read as key=value in YAML: could not determine"),
    ],
)
def test_what_cannot_be_drawn_is_said(what: str, changes: list[str], says: str) -> None:
    with pytest.raises(OptionError, match=says):
        graph_of(what, changes)


def test_the_file_is_the_same_each_time(tmp_path: Path) -> None:
    first = write("light_squeezenet", [], "atlas_800i_a2", tmp_path / "deep" / "first.svg")
    second = write("light_squeezenet", [], "atlas_800i_a2", tmp_path / "second.svg")
    assert first.read_bytes() == second.read_bytes()
    assert "light_squeezenet on atlas_800i_a2: 65 ops" in first.read_text()
    with pytest.raises(OptionError, match="cannot be written"):
        write("light_squeezenet", [], "atlas_800i_a2", tmp_path)
