"""Widths of real networks, against figures taken by matching on their transitive closures by other hands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from msched.antichain import minimum_chain_cover, width
from msched.formats import read
from msched.problem import Problem

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
PIPEDREAM = {"alexnet": 1, "resnet50": 2, "inception_v3": 7, "nasnetalarge": 16, "gnmt_large": 18}
PARTITIONING = {"throughput.OperatorGraphs.bert_l-3_training": 92, "throughput.LayerGraphs.inceptionv3_training": 12}


@pytest.mark.parametrize(("name", "known"), PIPEDREAM.items())
def test_pipedream_graphs_have_their_known_width(name: str, known: int) -> None:
    path = DATA / "pipedream" / f"{name}.graph.txt"
    if not path.is_file():
        pytest.skip(f"../shared/data/pipedream/{path.name} is not there")
    graph = read(path)
    check(Problem.from_arrays(duration=[1] * len(graph.ops), edges=graph.edges), known)


@pytest.mark.parametrize(("name", "known"), PARTITIONING.items())
def test_partitioning_graphs_have_their_known_width(name: str, known: int) -> None:
    path = DATA / "dnn-partitioning" / f"{name}.json"
    if not path.is_file():
        pytest.skip(f"../shared/data/dnn-partitioning/{path.name} is not there")
    document = json.loads(path.read_text(encoding="utf-8"))
    index = {node["id"]: v for v, node in enumerate(document["nodes"])}
    edges = [(index[edge["sourceId"]], index[edge["destId"]]) for edge in document["edges"]]
    check(Problem.from_arrays(duration=[1] * len(index), edges=edges), known)


def check(problem: Problem, known: int) -> None:
    most, members = width(problem)
    assert most == known
    assert len(set(minimum_chain_cover(problem)[members].tolist())) == known
