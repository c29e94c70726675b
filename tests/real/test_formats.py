"""The readers on real files, against figures that other means take from the same files."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from pathlib import Path

import onnx
import pytest

from msched.errors import FormatError
from msched.formats import read
from msched.graph import OpGraph

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
PIPEDREAM = sorted((DATA / "pipedream").glob("*.graph.txt"))
LIGHT = sorted((DATA / "onnx-light").glob("*.onnx"))
POLYGRAPHY = sorted((DATA / "tensorrt" / "polygraphy").glob("*.onnx"))
SILERO = DATA / "silero-vad" / "silero_vad_16k_op15.onnx"
OCR = DATA / "rapidocr" / "ch_ppocr_mobile_v2.0_cls_infer.onnx"
ONNX = [path for path in (*LIGHT, *POLYGRAPHY, SILERO, OCR) if path.is_file()]
# Layers and edges, as the analyses of these profiles that circulate count them.
COUNTS = {
    "inception_v3": (326, 362),
    "nasnetalarge": (1251, 1468),
    "resnet50": (177, 193),
    "gnmt_large": (96, 122),
}

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data is not there")


@pytest.mark.parametrize("path", PIPEDREAM, ids=lambda p: p.name)
def test_pipedream_profiles(path: Path) -> None:
    text = path.read_text()
    forward = re.findall(r"^(\w+) -- (\w+).* -- forward_compute_time=([\d.]+)", text, re.M)
    milliseconds = sum(Decimal(time) for _, layer, time in forward if not layer.startswith("Input"))
    edges = set(re.findall(r"^\t(\w+) -- (\w+)", text, re.M))
    weights = sum(Decimal(size) for size in re.findall(r"parameter_size=([\d.]+)", text))
    activations = sum(
        sum(map(Decimal, re.findall(r"[\d.]+", sizes))) for sizes in re.findall(r"activation_size=(.*), param", text)
    )

    graph = read(path)
    names = [op.name for op in graph.ops]
    assert names == [node for node, _, _ in forward]
    assert {(names[u], names[v]) for u, v in graph.edges.tolist()} == edges
    assert sum(op.duration_ns or 0 for op in graph.ops) == milliseconds * 1_000_000
    assert sum(t.bytes for t in graph.tensors if t.persistent) == weights
    assert sum(t.bytes for t in graph.tensors if not t.persistent) == activations
    assert path.name.startswith(graph.name)
    if graph.name in COUNTS:
        assert (len(graph.ops), len(graph.edges)) == COUNTS[graph.name]


@pytest.mark.parametrize("path", PIPEDREAM, ids=lambda p: p.name)
def test_pipedream_profiles_of_training(path: Path) -> None:
    backward = re.findall(r"backward_compute_time=([\d.]+)", path.read_text())
    forward, graph = read(path), read(path, training=True)
    n = len(forward.ops)
    assert len(graph.ops) == 2 * n
    assert sum(op.duration_ns or 0 for op in graph.ops[n:]) == sum(map(Decimal, backward)) * 1_000_000
    edges = {(u, v) for u, v in forward.edges.tolist()}
    assert {(u, v) for u, v in graph.edges.tolist()} == (
        edges | {(n + v, n + u) for u, v in edges} | {(v, n + v) for v in range(n)}
    )


@pytest.mark.parametrize("path", ONNX, ids=lambda p: p.name)
def test_onnx_models(path: Path) -> None:
    graph = read(path)
    model = onnx.load(path, load_external_data=False)
    kinds = Counter(node.op_type for node in model.graph.node)
    left = Counter(op.kind.rpartition(".")[2] for op in graph.ops)
    assert left <= kinds
    assert not {"Constant"} & set(left)
    for kind in ("Conv", "Relu", "Softmax", "If", "Loop", "BatchNormalization", "MaxPool"):
        assert left[kind] == kinds[kind], kind
    assert {t.name for t in graph.tensors if t.output} == {value.name for value in model.graph.output}
    assert OpGraph.from_json(graph.to_json()) == graph
    assert graph == read(path)


@pytest.mark.skipif(not SILERO.is_file(), reason="../shared/data/silero-vad is not there")
def test_control_flow_of_silero() -> None:
    graph = read(SILERO, dimensions={"batch": 1, "sequence": 512})
    branches = [v for v, op in enumerate(graph.ops) if op.kind == "If"]
    assert len(branches) == 3
    assert any("control flow kept as one op" in warning for warning in graph.warnings)
    held = sum(t.bytes for t in graph.tensors if t.persistent)
    assert 1.2e6 < held < SILERO.stat().st_size  # nearly all of the file is weights, wherever they are held


@pytest.mark.skipif(not OCR.is_file(), reason="../shared/data/rapidocr is not there")
def test_open_dimensions_of_an_ocr_model() -> None:
    assert len(read(OCR).ops) < 566 - 308  # 308 of its 566 nodes are constants
    # A classifier of text direction that takes images of 3 x 48 x 192: one symbol, `?`, names both sides.
    graph = read(OCR, dimensions={"x[0]": 2, "x[2]": 48, "x[3]": 192})
    image = next(t for t in graph.tensors if t.name == "x")
    assert image.bytes == 2 * 3 * 48 * 192 * 4
    first = next(op.matmul for op in graph.ops if op.kind == "Conv")
    assert first is not None
    assert first.m == 2 * 24 * 96  # its first convolution halves both sides


@pytest.mark.skipif(not POLYGRAPHY, reason="../shared/data/tensorrt/polygraphy is not there")
@pytest.mark.parametrize(
    ("name", "ops", "warning"),
    [
        ("bad_graph_with_duplicate_node_names", ["identical", "identical#2"], None),
        ("custom_op_node", ["out0"], "No opset import for domain ai.onnx.contrib"),
        ("dim_param", ["Output:0"], "open dimensions taken as 1: dim0"),
        ("ext_weights", ["output"], None),
        ("multi_attention", ["mm1_1", "sm_1", "mm2_1", "mm1_2", "sm_2", "mm2_2"], "shape not known"),
    ],
)
def test_awkward_models(name: str, ops: list[str], warning: str | None) -> None:
    graph = read(DATA / "tensorrt" / "polygraphy" / f"{name}.onnx")
    assert [op.name for op in graph.ops] == ops
    assert len(graph.warnings) == (warning is not None)
    assert warning is None or warning in graph.warnings[0]


@pytest.mark.parametrize("path", [*LIGHT[:1], *PIPEDREAM[:1]], ids=lambda p: p.name)
def test_a_truncated_file_is_refused(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    short = tmp_path / path.name
    for part in (0.1, 0.5, 0.9):
        short.write_bytes(data[: int(len(data) * part)])
        with pytest.raises(FormatError, match=re.escape(str(short))):
            read(short)
