"""RandWire against the figures that its authors publish, its wiring against rings drawn by hand."""

from __future__ import annotations

import random
from typing import Any

import networkx
import numpy as np
import pytest

from msched.config import options
from msched.errors import OptionError
from msched.graph import OpGraph, Rows
from msched.lowering import lower
from msched.networks.randwire import _wiring, build

# Tables 2 and 3 of the paper: multiply-adds and parameters, means over five networks of WS(4, 0.75).
PUBLISHED = {("small", 78): (583e6, 5.6e6), ("regular", 109): (4.0e9, 31.9e6), ("regular", 154): (7.9e9, 61.5e6)}


def wiring(graph: OpGraph, stage: str) -> dict[int, list[int]]:
    """The nodes of a stage that each of its nodes reads, through its sum where it has one."""
    names = [o.name for o in graph.ops]
    reads: dict[str, list[str]] = {name: [] for name in names}
    for u, v in graph.edges.tolist():
        reads[names[v]].append(names[u])
    result = {}
    for name in names:
        if name.startswith(f"{stage}.node") and name.endswith(".relu"):
            label = name.removesuffix(".relu")
            before = reads[f"{label}.sum" if f"{label}.sum" in reads else name]
            inside = [b.removesuffix(".pointwise") for b in before if b.startswith(f"{stage}.node")]
            result[int(label.removeprefix(f"{stage}.node"))] = sorted(int(b.split("node")[1]) for b in inside)
    return result


@pytest.mark.parametrize(("size", "channels"), PUBLISHED)
def test_operations_and_parameters_are_on_average_as_many_as_published(size: str, channels: int) -> None:
    operations, parameters = [], []
    for seed in range(10):
        graph = build(size=size, channels=channels, seed=seed, dtype_bytes=1)
        operations.append(sum(o.flops for o in graph.ops if o.kind in ("Conv", "DepthwiseConv", "Gemm")) / 2)
        sizes = {t.name: t.bytes for t in graph.tensors if t.name.endswith((".weight", ".bias"))}
        # a normalisation has a scale beside its shift, which is the bias
        folded = sum(size for name, size in sizes.items() if name.endswith(".bias") and name != "fc.bias")
        parameters.append(sum(sizes.values()) + folded)
    assert np.mean(operations) == pytest.approx(PUBLISHED[size, channels][0], rel=0.02)
    assert np.mean(parameters) == pytest.approx(PUBLISHED[size, channels][1], rel=0.02)


def test_without_rewiring_a_stage_is_a_ring() -> None:
    # 0 - 1 - 2 - 3 - 4 - 5 - 0, every edge from the lower node to the higher
    assert wiring(build(nodes=6, neighbours=2, rewiring=0), "conv4") == {
        0: [],
        1: [0],
        2: [1],
        3: [2],
        4: [3],
        5: [0, 4],
    }
    # and every node with the next but one
    ring = {0: [], 1: [0], 2: [0, 1], 3: [1, 2], 4: [0, 2, 3], 5: [0, 1, 3, 4]}
    assert wiring(build(nodes=6, neighbours=4, rewiring=0), "conv4") == ring


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rewiring", [0.1, 0.75, 1])
def test_rewiring_keeps_the_number_of_edges(seed: int, rewiring: float) -> None:
    graph = build(nodes=20, neighbours=6, rewiring=rewiring, seed=seed)
    stages = [wiring(graph, stage) for stage in ("conv3", "conv4", "conv5")]
    for stage in stages:
        assert sum(map(len, stage.values())) == 20 * 6 // 2
        assert all(other < node for node, read in stage.items() for other in read)
    assert stages[0] != stages[1] != stages[2]


def test_a_stage_reads_the_one_before_and_ends_in_the_mean_of_its_last_nodes() -> None:
    graph = build(seed=1)
    names = [o.name for o in graph.ops]
    nodes = wiring(graph, "conv4")
    first = [node for node, read in nodes.items() if not read]
    last = set(nodes) - {other for read in nodes.values() for other in read}
    edges = {(names[u], names[v]) for u, v in graph.edges.tolist()}
    assert {v for u, v in edges if u == "conv3"} == {f"conv4.node{node}.relu" for node in first}
    assert {u for u, v in edges if v == "conv4"} == {f"conv4.node{node}.pointwise" for node in last}
    # stride 2 where the stage begins: 28 x 28 to 14 x 14, and twice the channels
    sizes = {t.name: t.bytes // 2 for t in graph.tensors}
    assert {sizes[f"conv4.node{node}.depthwise"] for node in first} == {14 * 14 * 78}
    assert {sizes[f"conv4.node{node}.depthwise"] for node in nodes if node not in first} == {14 * 14 * 156}
    assert {sizes[f"conv4.node{node}.pointwise"] for node in nodes} == {14 * 14 * 156}


def test_grids_of_table_1() -> None:
    small, regular = ({t.name: t.bytes for t in build(size=s, dtype_bytes=1).tensors} for s in ("small", "regular"))
    assert (small["conv1"], small["conv2"]) == (112 * 112 * 39, 56 * 56 * 78)
    assert [small[f"conv{i}.node31.pointwise"] for i in (3, 4, 5)] == [28 * 28 * 78, 14 * 14 * 156, 7 * 7 * 312]
    assert (small["conv6"], small["avgpool"], small["fc"]) == (7 * 7 * 1280, 1280, 1000)
    assert regular["conv1"] == 112 * 112 * 54
    assert regular["conv2.node15.pointwise"] == 56 * 56 * 109
    assert "conv2.node16.pointwise" not in regular
    assert [regular[f"conv{i}.node31.pointwise"] for i in (3, 4, 5)] == [28 * 28 * 218, 14 * 14 * 436, 7 * 7 * 872]


@pytest.mark.parametrize("nodes", [5, 90, pytest.param(8333, marks=pytest.mark.slow)])
def test_sizes_from_50_to_100_000_ops(nodes: int) -> None:
    # Unrewired, every node but the first two reads several others and so has a sum before its three ops, and only the
    # last one is read by nobody. Around the stages: two convolutions with a ReLU between them; ReLU, convolution,
    # pooling and fully connected layer.
    assert len(build(nodes=nodes, rewiring=0).ops) == 3 + 4 + 3 * (3 * nodes + nodes - 2)


def test_the_seed_decides() -> None:
    assert build(seed=3).content_hash() == build(seed=3).content_hash()
    assert build(seed=3).content_hash() != build(seed=4).content_hash()


def test_a_batch_can_be_cut_along_its_images() -> None:
    graph = build(batch=8)
    assert {o.rows for o in graph.ops} == {Rows(8, 1)}
    assert sum(o.flops for o in graph.ops) == 8 * sum(o.flops for o in build().ops)


@pytest.mark.parametrize("device", options("device"))
def test_it_lowers_on_every_device(device: str) -> None:
    graph = build()
    problem = lower(graph, device)
    assert (problem.n, problem.warnings) == (len(graph.ops), ())


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"size": "tiny"}, "size 'tiny' is not known; there are: small, regular"),
        ({"neighbours": 3}, "neighbours is 3; an even number below the 32 nodes of the smallest stage"),
        ({"nodes": 8, "neighbours": 4, "size": "regular"}, "an even number below the 4 nodes of the smallest stage"),
        ({"rewiring": 1.5}, r"rewiring is 1\.5; a number from 0 to 1"),
        ({"rewiring": "often"}, "rewiring is 'often'; a number"),
        ({"seed": -1}, "seed is -1; a whole number of at least 0"),
        ({"channels": 1}, "channels is 1; a whole number of at least 2"),
    ],
)
def test_parameters_that_make_no_sense(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        build(**parameters)


@pytest.mark.parametrize(("nodes", "neighbours"), [(3, 2), (5, 4), (6, 4), (32, 4), (40, 6), (500, 8)])
@pytest.mark.parametrize("rewiring", [0, 0.3, 0.75, 1])
def test_the_wiring_is_that_of_networkx(nodes: int, neighbours: int, rewiring: float) -> None:
    for seed in range(5):
        ours, theirs = random.Random(seed), random.Random(seed)
        edges = {(v, u) for u, read in enumerate(_wiring(nodes, neighbours, rewiring, ours)) for v in read}
        graph = networkx.watts_strogatz_graph(nodes, neighbours, rewiring, theirs)
        assert edges == {(min(edge), max(edge)) for edge in graph.edges}
        assert ours.random() == theirs.random()  # the next stage draws on
