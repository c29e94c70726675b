"""The vision pipeline against the figures that torchvision publishes, its engines and its structure by hand."""

from __future__ import annotations

from collections import Counter
from typing import Any

import networkx
import pytest

from msched.config import options
from msched.errors import OptionError
from msched.graph import Matmul, Op, OpGraph, Rows
from msched.lowering import lower
from msched.networks.vision import build


def op(graph: OpGraph, name: str) -> Op:
    return next(o for o in graph.ops if o.name == name)


def sources(graph: OpGraph, name: str) -> list[str]:
    names = [o.name for o in graph.ops]
    return sorted(names[u] for u, v in graph.edges.tolist() if names[v] == name)


def test_the_detector_has_as_many_operations_as_published() -> None:
    # torchvision, RetinaNet_ResNet50_FPN_Weights: 151.54 billion multiply-adds
    flops = sum(o.flops for o in build(images=1).ops if o.kind == "Conv")
    assert flops / 2 == pytest.approx(151.54e9, rel=0.0001)


def test_the_detector_has_as_many_parameters_as_published() -> None:
    # torchvision: 34,014,999 with the normalisations frozen, whose shifts are the biases of the backbone here
    sizes = {t.name: t.bytes for t in build(images=3, image=64, dtype_bytes=1).tensors}
    weights = sum(s for n, s in sizes.items() if n.endswith(".weight") or (n.endswith(".bias") and "backbone" not in n))
    assert weights == 34_014_999


def test_the_backbone_has_as_many_operations_as_published() -> None:
    # torchvision, ResNet50_Weights: 4.089 billion multiply-adds at 224 x 224, 2048 x 1000 of them in its classifier
    flops = sum(o.flops for o in build(images=1, image=224).ops if o.kind == "Conv" and ".backbone." in o.name)
    assert flops / 2 + 2048 * 1000 == pytest.approx(4.089e9, rel=0.0002)


def test_layers_by_kind() -> None:
    # ResNet-50: 53 convolutions without classifier, 49 ReLUs, 16 additions. Pyramid: 3 lateral ones, 3 on the sums and
    # 2 for the coarsest maps, before the last of which is a ReLU. Five maps: two heads of 4 and 1 convolutions.
    assert Counter(o.kind for o in build(images=1).ops) == {
        "DecodeJpeg": 1, "Resize": 1, "Normalize": 1,
        "Conv": 53 + 8 + 50, "Relu": 49 + 1 + 40, "MaxPool": 1, "Add": 16 + 2, "Upsample": 2,
        "Sigmoid": 5, "TopK": 5, "Gather": 5, "Fusion": 5, "Concat": 1, "NonMaxSuppression": 1,
    }  # fmt: skip
    assert len(build().ops) == 4 * (242 + 5)
    assert len(build(images=8, batch=4).ops) == 2 * (242 + 1) + 8 * 5


def test_a_block_of_the_backbone() -> None:
    graph, name = build(images=1, image=224), "inference0.backbone.layer3.0"
    shapes = [(".conv1", 28 * 28, 256, 512), (".conv2", 14 * 14, 256, 9 * 256), (".conv3", 14 * 14, 1024, 256)]
    for layer, m, n, k in [*shapes, (".downsample", 14 * 14, 1024, 512)]:
        assert op(graph, name + layer).matmul == Matmul(1, m, n, k)
    assert sources(graph, f"{name}.add") == [f"{name}.conv3", f"{name}.downsample"]
    following = "inference0.backbone.layer3.1"
    assert sources(graph, f"{following}.add") == [f"{name}.relu", f"{following}.conv3"]


def test_the_pyramid() -> None:
    graph, p = build(images=1), "inference0.pyramid."
    assert sources(graph, f"{p}add4") == [f"{p}lateral4", f"{p}upsample4"]
    assert sources(graph, f"{p}upsample4") == [f"{p}lateral5"]
    assert sources(graph, f"{p}upsample3") == [f"{p}add4"]
    assert sources(graph, f"{p}lateral4") == ["inference0.backbone.layer3.5.relu"]
    maps = [op(graph, f"{p}p{level}").matmul for level in range(3, 8)]
    assert maps == [Matmul(1, side * side, 256, 9 * 256) for side in (100, 50, 25, 13, 7)]


def test_the_heads_have_the_same_weights_on_all_maps_and_in_all_batches() -> None:
    graph = build(images=2)
    tensor = next(t for t in graph.tensors if t.name == "head.class.weight")
    assert [graph.ops[v].name for v in tensor.consumers] == [
        f"inference{i}.p{n}.class" for i in (0, 1) for n in range(3, 8)
    ]
    assert tensor.bytes == 2 * 9 * 91 * 9 * 256


def test_candidates_and_detections() -> None:
    graph = build(images=1)
    # the best 1000 of each of five maps: four corners and a score of 2 bytes, an index of 4
    assert op(graph, "image0.candidates").bytes_written == 5 * 1000 * (4 * 2 + 2 + 4)
    assert op(graph, "image0.suppress").bytes_written == 300 * 6 * 4
    assert op(graph, "image0.suppress").flops == 5000 * 300 * 13
    # a map of one pixel has 9 boxes of each class
    few = build(images=1, image=32, classes=2)
    assert op(few, "image0.candidates").bytes_written == (288 + 72 + 3 * 18) * (4 * 2 + 2 + 4)


def test_frames_in_and_out_of_the_decoder() -> None:
    graph = build(images=1)
    decode, resize = op(graph, "image0.decode"), op(graph, "image0.resize")
    assert (decode.bytes_read, decode.bytes_written) == (1920 * 1080 * 2 // 8, 1920 * 1080 * 3 // 2)
    assert (resize.bytes_read, resize.bytes_written) == (1920 * 1080 * 3 // 2, 3 * 800 * 800)


def test_images_are_independent_of_each_other_but_for_their_batch() -> None:
    alone = networkx.number_weakly_connected_components(build(images=6).to_networkx())
    paired = networkx.number_weakly_connected_components(build(images=6, batch=2).to_networkx())
    assert (alone, paired) == (6, 3)
    assert sources(build(images=6, batch=2), "inference1.stack") == ["image2.normalise", "image3.normalise"]


def test_a_batch_does_the_work_of_its_images_and_can_be_cut_along_them() -> None:
    graph = build(batch=4)
    assert sum(o.flops for o in graph.ops) == sum(o.flops for o in build().ops)
    detector = [o for o in graph.ops if o.name.startswith("inference") and o.kind != "Stack"]
    assert {o.rows for o in detector} == {Rows(4, 1)}
    assert op(graph, "image1.candidates").bytes_written == op(build(), "image1.candidates").bytes_written


def test_every_engine_has_its_share() -> None:
    graph = build(images=2)
    problem = lower(graph, "atlas_800i_a2")
    at = {o.name: problem.engine_names[e] for o, e in zip(graph.ops, problem.engine.tolist(), strict=True)}
    assert at["image1.decode"] == at["image1.resize"] == "dvpp"
    assert at["image1.normalise"] == "vector_core"
    assert at["inference1.backbone.conv1"] == at["inference1.p7.box"] == "ai_core"
    assert at["image1.suppress"] == "ai_cpu"


@pytest.mark.parametrize("device", options("device"))
def test_it_lowers_on_every_device(device: str) -> None:
    problem = lower(build(), device)
    assert (problem.n, problem.warnings) == (988, ())


def test_equal_parameters_make_equal_graphs() -> None:
    assert build().content_hash() == build().content_hash()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"images": 5, "batch": 2}, "images is 5; a multiple of the batch of 2 is needed"),
        ({"images": 0}, "images is 0; a whole number of at least 1"),
        ({"frame_width": -1}, "frame_width is -1"),
        ({"bits_per_pixel": 1.5}, r"bits_per_pixel is 1\.5; a whole number"),
        ({"detections": 0}, "detections is 0"),
    ],
)
def test_parameters_that_make_no_sense(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        build(**parameters)
