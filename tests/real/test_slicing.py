"""Slices of networks that other people exported."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from msched.config import load
from msched.device import device_from
from msched.formats import read
from msched.graph import OpGraph
from msched.lowering import lower
from msched.lowering.slicing import slice_graph

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
MODELS = sorted(DATA.rglob("*.onnx"))
PROFILES = sorted((DATA / "pipedream").glob("*.graph.txt"))
LIGHT = sorted((Path(onnx.__file__).parent / "backend" / "test" / "data" / "light").glob("*.onnx"))
CHIP = device_from(load("device", "atlas_800i_a2"))


def check(graph: OpGraph, k: int) -> OpGraph:
    """The graph in slices, which lower, do the same work and depend on each other as the whole does."""
    cut = slice_graph(graph, k, around="any")
    for figure in ("flops", "bytes_written", "payload_bytes"):
        assert sum(getattr(op, figure) for op in cut.ops) == sum(getattr(op, figure) for op in graph.ops)
    assert sum(t.bytes for t in cut.tensors) == sum(t.bytes for t in graph.tensors)
    assert sum(op.bytes_read for op in cut.ops) >= sum(op.bytes_read for op in graph.ops)
    home = {op.name: v for v, op in enumerate(graph.ops)}
    whole = [home[op.name if op.name in home else op.name.rsplit(".slice", 1)[0]] for op in cut.ops]
    assert {(whole[u], whole[v]) for u, v in cut.edges.tolist()} == set(map(tuple, graph.edges.tolist()))
    lower(cut, CHIP)
    return cut


@pytest.mark.parametrize("path", LIGHT, ids=lambda path: path.stem)
def test_the_light_onnx_models_in_slices(path: Path) -> None:
    graph = read(path)
    kinds = {op.kind for op in check(graph, 2).ops if op.name.endswith((".slice0", ".slice1"))}
    # no convolution, pooling or norm over a batch is known to keep rows
    assert {"Relu"} <= kinds <= {"Relu", "Add", "Mul"}
    # and nothing is cut where there is no collective
    assert slice_graph(graph, 2).ops == graph.ops


@pytest.mark.skipif(not MODELS, reason="no ONNX files in ../shared/data")
def test_exported_onnx_models_in_slices() -> None:
    for path in MODELS:
        check(read(path), 3)


@pytest.mark.skipif(not PROFILES, reason="../shared/data/pipedream is not there")
@pytest.mark.parametrize("k", [2, 3])
def test_slices_of_pipedream_profiles_share_the_measured_times(k: int) -> None:
    for path in PROFILES:
        graph = read(path)
        cut = check(graph, k)
        measured = sum(op.duration_ns or 0 for op in graph.ops)
        # each of the slices is rounded up to a nanosecond
        assert measured <= sum(op.duration_ns or 0 for op in cut.ops) < measured + len(cut.ops)
        assert any(note.endswith("are divided among slices by their rows: assumed") for note in cut.warnings)
