"""NASNet-A against the figures that its authors and Keras publish, cells against figure 4 of the paper."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from msched.config import options
from msched.errors import OptionError
from msched.graph import OpGraph, Rows
from msched.lowering import lower
from msched.networks.nasnet import build

# Table 2 of the paper (multiply-adds), and the parameters that Keras counts, of the model without auxiliary head.
PUBLISHED = {"mobile": (564e6, 5_326_716), "large": (23.8e9, 88_949_818)}


def readers(graph: OpGraph, name: str) -> list[str]:
    names = [o.name for o in graph.ops]
    return sorted(names[v] for u, v in graph.edges.tolist() if names[u] == name)


def sources(graph: OpGraph, name: str) -> list[str]:
    names = [o.name for o in graph.ops]
    return sorted(names[u] for u, v in graph.edges.tolist() if names[v] == name)


@pytest.mark.parametrize("size", PUBLISHED)
def test_operations_are_as_many_as_published(size: str) -> None:
    graph = build(size=size)
    flops = sum(o.flops for o in graph.ops if o.kind in ("Conv", "DepthwiseConv", "Gemm"))
    assert flops / 2 == pytest.approx(PUBLISHED[size][0], rel=0.001)


@pytest.mark.parametrize("size", PUBLISHED)
def test_parameters_are_as_many_as_published(size: str) -> None:
    # Keras counts four parameters a channel of each normalisation, one of which is left as the bias it folds into.
    sizes = {t.name: t.bytes for t in build(size=size, dtype_bytes=1).tensors}
    weights = sum(size for name, size in sizes.items() if name.endswith(".weight"))
    folded = sum(size for name, size in sizes.items() if name.endswith(".bias") and name != "fc.bias")
    assert weights + 4 * folded + sizes["fc.bias"] == PUBLISHED[size][1]


def test_layers_by_kind() -> None:
    # A normal cell has five separable convolutions applied twice, 20 convolutions half of which are depthwise and each
    # pair behind a ReLU; a reduction cell too. Mobile has 12 and 4 of them, 5 x 2 x 16 = 160. Two inputs are brought
    # to shape by a ReLU and a 1 x 1 convolution each, but the second input of 4 cells (behind 4 changes of the grid,
    # the first of which has no cell before it) by a ReLU, two poolings, two convolutions and a concatenation.
    kinds = Counter(o.kind for o in build().ops)
    plain, factorised = 16 + 16 - 1 - 4, 4
    assert kinds == {
        "DepthwiseConv": 160,
        "Conv": 1 + 160 + plain + 2 * factorised,
        "Relu": 160 + plain + factorised + 1,
        "Add": 16 * 5,
        "Concat": 16 + factorised,
        "AveragePool": 12 * 3 + 4 * 2 + 2 * factorised,
        "MaxPool": 4 * 2,
        "GlobalAveragePool": 1,
        "Gemm": 1,
    }


def test_grids_and_channels() -> None:
    # Mobile: 1056 / 24 = 44 filters in the first stage; six branches of a normal cell, four of a reduction cell.
    sizes = {t.name: t.bytes for t in build(dtype_bytes=1).tensors}
    grids = {
        "stem": 111 * 111 * 32,
        "stem_cell0": 56 * 56 * 4 * 11,
        "stem_cell1": 28 * 28 * 4 * 22,
        "stage0.cell3": 28 * 28 * 6 * 44,
        "reduction1": 14 * 14 * 4 * 88,
        "stage1.cell0": 14 * 14 * 6 * 88,
        "reduction2": 7 * 7 * 4 * 176,
        "stage2.cell3": 7 * 7 * 1056,
        "avgpool": 1056,
        "fc": 1000,
    }
    assert {name: sizes[name] for name in grids} == grids


def test_a_normal_cell_is_that_of_figure_4() -> None:
    graph, c = build(), "stage1.cell2"
    h, p = f"{c}.last.conv", f"{c}.before.conv"
    assert sources(graph, f"{c}.last.relu") == ["stage1.cell1"]
    assert sources(graph, f"{c}.before.relu") == ["stage1.cell0"]
    read = {"left1": h, "right1": p, "left2": p, "right2": p, "left5": h}
    assert {b: sources(graph, f"{c}.{b}.1.relu") for b in read} == {b: [source] for b, source in read.items()}
    ends = {b: f"{c}.{b}.2.pointwise" for b in read}
    assert sources(graph, f"{c}.add1") == sorted([ends["left1"], ends["right1"]])
    assert sources(graph, f"{c}.add2") == sorted([ends["left2"], ends["right2"]])
    assert sources(graph, f"{c}.add3") == sorted([f"{c}.left3", p])
    assert sources(graph, f"{c}.add4") == sorted([f"{c}.left4", f"{c}.right4"])
    assert sources(graph, f"{c}.add5") == sorted([ends["left5"], h])
    assert sources(graph, c) == sorted([p, *(f"{c}.add{i}" for i in range(1, 6))])
    taps = {t.name: t.bytes // 2 // 88 for t in graph.tensors if t.name.startswith(c) and ".1.depthwise.w" in t.name}
    assert [taps[f"{c}.{b}.1.depthwise.weight"] for b in read] == [25, 9, 25, 9, 9]


def test_a_reduction_cell_is_that_of_figure_4() -> None:
    graph, c = build(), "reduction2"
    h, p = f"{c}.last.conv", f"{c}.before.conv"
    kind = {o.name: o.kind for o in graph.ops}
    pools = ["left2", "left3", "right5"]
    assert [kind[f"{c}.{b}"] for b in pools] == ["MaxPool", "AveragePool", "MaxPool"]
    assert readers(graph, h) == sorted([f"{c}.left1.1.relu", *(f"{c}.{b}" for b in pools)])
    assert readers(graph, p) == [f"{c}.right{i}.1.relu" for i in (1, 2, 3)]
    assert readers(graph, f"{c}.add1") == [f"{c}.left4", f"{c}.left5.1.relu"]
    assert sources(graph, f"{c}.add4") == [f"{c}.add2", f"{c}.left4"]
    assert sources(graph, c) == [f"{c}.add{i}" for i in (2, 3, 4, 5)]


def test_behind_a_reduction_the_large_model_reads_an_earlier_cell() -> None:
    assert sources(build(), "stage1.cell0.before.relu") == ["stage0.cell3"]
    assert sources(build(size="large"), "stage1.cell0.before.relu") == ["stage0.cell4"]


@pytest.mark.parametrize(
    ("parameters", "ops"),
    [
        # the first convolution, a normal cell of 43 ops, a ReLU and the classifier
        ({"stages": 1, "stem_reductions": 0, "cells": 1}, 1 + 43 + 3),
        # and two reductions in front, of 42 and 48 ops; the first cell behind them has 4 more for its second input
        ({"stages": 1, "cells": 20}, 1 + 42 + 48 + 20 * 43 + 4 + 3),
        # and two reductions between three stages, of 44 ops
        pytest.param({"cells": 773}, 1 + 42 + 48 + 2 * 44 + 3 * (773 * 43 + 4) + 3, marks=pytest.mark.slow),
    ],
)
def test_sizes_from_50_to_100_000_ops(parameters: dict[str, Any], ops: int) -> None:
    assert len(build(**parameters).ops) == ops


@pytest.mark.parametrize("size", ["mobile", "large"])
@pytest.mark.parametrize("cells", [0, 1, 2])
@pytest.mark.parametrize("stem_reductions", [0, 1, 2, 3])
def test_every_stack_of_cells_fits_together(size: str, cells: int, stem_reductions: int) -> None:
    graph = build(size=size, cells=cells, stages=4, stem_reductions=stem_reductions, filters=6 * 64, image=32)
    written = {t.producer: t.bytes for t in graph.tensors if t.producer is not None}
    for index, op in enumerate(graph.ops):
        if op.kind == "Add":
            inputs = [t.bytes for t in graph.tensors if index in t.consumers]
            assert inputs == [written[index]] * len(inputs)


def test_a_batch_can_be_cut_along_its_images() -> None:
    graph = build(batch=8)
    assert {o.rows for o in graph.ops} == {Rows(8, 1)}
    assert sum(o.flops for o in graph.ops) == 8 * sum(o.flops for o in build().ops)


@pytest.mark.parametrize("device", options("device"))
def test_it_lowers_on_every_device(device: str) -> None:
    problem = lower(build(), device)
    assert (problem.n, problem.warnings) == (710, ())


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"size": "huge"}, "size 'huge' is not known; there are: mobile, large"),
        ({"filters": 1000}, r"filters is 1000; a multiple of 6 x 2\^4 is needed for 3 stages and 2 reductions"),
        ({"stages": 1000}, r"filters is 1056; a multiple of 6 x 2\^1001 is needed"),
        ({"stages": 0}, "stages is 0"),
        ({"cells": -1}, "cells is -1; a whole number of at least 0"),
        ({"image": 2}, "image is 2; a whole number of at least 3"),
    ],
)
def test_parameters_that_make_no_sense(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        build(**parameters)
