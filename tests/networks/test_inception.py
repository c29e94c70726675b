"""Inception v3 against the figures that its authors and torchvision publish."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from msched.config import options
from msched.errors import OptionError
from msched.graph import OpGraph, Rows
from msched.lowering import lower
from msched.networks.inception import build


def shapes(graph: OpGraph) -> dict[str, tuple[int, int, int]]:
    return {o.name: (o.matmul.m, o.matmul.n, o.matmul.k) for o in graph.ops if o.matmul}


def test_parameters_are_as_many_as_published() -> None:
    graph = build(dtype_bytes=4)
    parameters = sum(t.bytes for t in graph.tensors if t.name.endswith((".weight", ".bias"))) // 4
    # torchvision: 27,161,264 with the auxiliary head. Its head: 768 x 128 + 2 x 128 of normalisation,
    # 128 x 768 x 25 + 2 x 768, 768 x 1000 + 1000. Scale and shift of a normalisation fold into one bias a channel.
    head = 768 * 128 + 256 + 128 * 768 * 25 + 1536 + 769_000
    channels = sum(n for name, (_, n, _) in shapes(graph).items() if name != "fc")
    assert parameters + channels == 27_161_264 - head
    assert parameters == pytest.approx(23.8e6, rel=0.001)


def test_operations_are_as_many_as_published() -> None:
    # torchvision lists 5.71 billion multiply-adds for an image of 299 x 299
    flops = sum(o.flops for o in build().ops if o.matmul)
    assert flops / 2 == pytest.approx(5.71e9, rel=0.002)
    assert sum(o.flops for o in build(batch=8).ops if o.matmul) == 8 * flops


def test_layers_by_kind() -> None:
    # torchvision: 94 convolutions without the auxiliary head. Concatenations: one each of 11 blocks and two more in
    # each of the two of figure 7. Poolings: 2 in the stem, 11 in the blocks, 1 global.
    kinds = Counter(o.kind for o in build().ops)
    assert kinds == {
        "Conv": 94, "Relu": 94, "Concat": 15, "MaxPool": 4, "AveragePool": 9, "GlobalAveragePool": 1, "Gemm": 1
    }  # fmt: skip


def test_grids_and_channels_are_those_of_table_1() -> None:
    graph = build(dtype_bytes=1)
    sizes = {t.name: t.bytes for t in graph.tensors}
    grids = {
        "Conv2d_1a": 149 * 149 * 32,
        "Conv2d_2b": 147 * 147 * 64,
        "maxpool1": 73 * 73 * 64,
        "Conv2d_4a": 71 * 71 * 192,
        "maxpool2": 35 * 35 * 192,
        "Mixed_5b": 35 * 35 * 256,
        "Mixed_5d": 35 * 35 * 288,
        "Mixed_6a": 17 * 17 * 768,
        "Mixed_6e": 17 * 17 * 768,
        "Mixed_7a": 8 * 8 * 1280,
        "Mixed_7c": 8 * 8 * 2048,
        "avgpool": 2048,
        "fc": 1000,
    }
    assert {name: sizes[name] for name in grids} == grids


def test_a_seven_by_seven_is_a_column_and_a_row() -> None:
    layer = shapes(build())
    assert layer["Mixed_6b.branch7x7_1"] == (17 * 17, 128, 768)
    assert layer["Mixed_6b.branch7x7_2"] == (17 * 17, 128, 128 * 7)
    assert layer["Mixed_6b.branch7x7_3"] == (17 * 17, 192, 128 * 7)


def test_branches_run_side_by_side() -> None:
    graph = build()
    names = [o.name for o in graph.ops]
    after = [names[v] for u, v in graph.edges.tolist() if names[u] == "Mixed_5b"]
    assert sorted(after) == ["Mixed_5c.branch1x1", "Mixed_5c.branch3x3dbl_1", "Mixed_5c.branch5x5_1", "Mixed_5c.pool"]
    assert [t.name for t in graph.tensors if t.output] == ["fc"]


def test_the_smallest_image_passes() -> None:
    assert all(t.bytes > 0 for t in build(image=75).tensors)


@pytest.mark.parametrize(
    "blocks", [(0, 0, 0), (1, 0, 0), (3, 4, 2), (15, 20, 10), pytest.param((1500, 2200, 1250), marks=pytest.mark.slow)]
)
def test_sizes_from_50_to_100_000_ops(blocks: tuple[int, int, int]) -> None:
    # Around the blocks: 5 convolutions and their ReLUs, 2 poolings; reductions of 4 and 6 convolutions, each with a
    # pooling and a concatenation; 2 ops of the classifier. The blocks: 7, 10 and 9 convolutions, a pooling, and 1, 1
    # and 3 concatenations.
    around = 5 * 2 + 2 + (4 * 2 + 2) + (6 * 2 + 2) + 2
    inside = (7 * 2 + 2, 10 * 2 + 2, 9 * 2 + 4)
    graph = build(blocks=blocks)
    assert len(graph.ops) == around + sum(count * ops for count, ops in zip(blocks, inside, strict=True))


def test_further_blocks_are_as_the_last_of_their_grid() -> None:
    layer = shapes(build(blocks=(4, 6, 3)))
    assert layer["Mixed_5e.branch_pool"] == layer["Mixed_5d.branch_pool"] == (35 * 35, 64, 288)
    assert layer["Mixed_6g.branch7x7_1"] == layer["Mixed_6e.branch7x7_1"] == (17 * 17, 192, 768)
    assert layer["Mixed_7d.branch1x1"] == layer["Mixed_7c.branch1x1"] == (8 * 8, 320, 2048)
    assert "Mixed_6b.branch7x7_1" not in shapes(build(blocks=(3, 0, 2)))


def test_a_batch_can_be_cut_along_its_images_and_one_image_not_at_all() -> None:
    graph = build(batch=4)
    assert {o.rows for o in graph.ops} == {Rows(4, 1)}
    assert [t.name for t in graph.tensors if t.token_wise] == ["image"]
    assert {o.rows for o in build().ops} == {None}


@pytest.mark.parametrize("device", options("device"))
def test_it_lowers_on_every_device(device: str) -> None:
    problem = lower(build(), device)
    assert (problem.n, problem.warnings) == (218, ())


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"blocks": (3, 4)}, r"blocks is \(3, 4\); three numbers are needed, as \[3, 4, 2\]"),
        ({"blocks": "342"}, "blocks is '342'; three numbers"),
        ({"blocks": 9}, "blocks is 9; three numbers"),
        ({"blocks": (3, -4, 2)}, r"blocks\[1\] is -4; a whole number of at least 0"),
        ({"batch": 0}, "batch is 0"),
    ],
)
def test_parameters_that_make_no_sense(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        build(**parameters)
