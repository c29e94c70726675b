"""DLRM: the sizes of the MLPerf benchmarks, operations and traffic against hand calculation, engines and structure."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from msched.config import options
from msched.errors import OptionError
from msched.graph import Matmul, Op, OpGraph, Rows, Tensor
from msched.lowering import lower
from msched.networks.recommendation import build

# Sums of the products of successive widths: 13-512-256-128, and 479- or 3456-1024-1024-512-256-1.
BOTTOM = 13 * 512 + 512 * 256 + 256 * 128
TOP = 1024 * 1024 + 1024 * 512 + 512 * 256 + 256


def op(graph: OpGraph, name: str) -> Op:
    return next(o for o in graph.ops if o.name == name)


def tensor(graph: OpGraph, name: str) -> Tensor:
    return next(t for t in graph.tensors if t.name == name)


def tables(graph: OpGraph) -> list[Tensor]:
    return [t for t in graph.tensors if t.name.startswith("table") and t.name.endswith(".weight")]


def products(graph: OpGraph) -> int:
    return sum(o.flops for o in graph.ops if o.matmul)


def test_the_tables_are_as_large_as_published() -> None:
    # MLCommons: the trained model tb00_40M of the DLRM benchmark, in single precision, is a file of 90 GB (90 x 2^30)
    graph = build(ranks=1, cpu_share=0, dtype_bytes=4)
    assert len(tables(graph)) == 26
    assert sum(t.bytes for t in tables(graph)) == pytest.approx(90 * 2**30, rel=0.02)


def test_the_perceptrons_have_as_many_parameters_as_their_widths_say() -> None:
    graph = build(ranks=1, dtype_bytes=1)
    weights = sum(t.bytes for t in graph.tensors if t.name.startswith(("bottom", "top")) and t.producer is None)
    biases = 512 + 256 + 128 + 1024 + 1024 + 512 + 256 + 1
    assert weights == BOTTOM + 479 * 1024 + TOP + biases


def test_operations_of_the_matrix_products() -> None:
    # 27 vectors of 128 channels; 479 = 128 + 27 x 26 / 2 features
    assert products(build(batch=100)) == 2 * 100 * (BOTTOM + 27 * 27 * 128 + 479 * 1024 + TOP)
    # three layers of rank 512 across 27 x 128 = 3456 channels
    crossed = 3 * 2 * 3456 * 512
    assert products(build(model="dlrm_dcnv2", batch=100)) == 2 * 100 * (BOTTOM + crossed + 3456 * 1024 + TOP)
    # 5 tables of 4 channels: perceptrons 13-6-4 and 19-7-1, 19 = 4 + 6 x 5 / 2
    small = build(batch=10, tables=5, embedding=4, bottom=[6], top=[7], ranks=2)
    assert products(small) == 2 * 10 * (13 * 6 + 6 * 4 + 6 * 6 * 4 + 19 * 7 + 7)


def test_layers_by_kind() -> None:
    # 26 tables on 8 chips: this one has 4, one of which is on the host. 3 and 5 layers of the perceptrons.
    assert Counter(o.kind for o in build().ops) == {
        "EmbeddingBag": 3, "HostEmbeddingBag": 1, "HcomAllToAllV": 1, "Gemm": 8, "Relu": 7, "Sigmoid": 1,
        "Concat": 3, "BatchMatMul": 1, "Gather": 1,
    }  # fmt: skip
    # three cross layers of two products, a multiplication and an addition; only the vectors stand side by side
    assert Counter(o.kind for o in build(model="dlrm_dcnv2").ops) == {
        "EmbeddingBag": 3, "HostEmbeddingBag": 1, "HcomAllToAllV": 1, "Gemm": 8 + 6, "Relu": 7, "Sigmoid": 1,
        "Concat": 2, "Mul": 3, "Add": 3,
    }  # fmt: skip
    assert "HcomAllToAllV" not in {o.kind for o in build(ranks=1).ops}


def test_this_chip_has_the_largest_tables_and_the_host_the_largest_of_them() -> None:
    graph = build(ranks=8, cpu_share=0.5)
    # Tables by size: 19 0 21 9 20 10 22 11, 1 4 2 23 14 3 6 13, 7 17 15 24 8 25 18 12, 16 5; the first of each eight.
    kinds = {o.name: o.kind for o in graph.ops if o.name.endswith(".lookup")}
    assert kinds == {
        "table19.lookup": "HostEmbeddingBag", "table1.lookup": "HostEmbeddingBag",
        "table7.lookup": "EmbeddingBag", "table16.lookup": "EmbeddingBag",
    }  # fmt: skip
    assert [t.bytes for t in tables(graph)] == [1543 * 128 * 2, 4 * 128 * 2]
    assert len(tables(build(ranks=1, cpu_share=0))) == 26
    assert len(tables(build(ranks=1, cpu_share=0.1))) == 26 - 3
    assert len(tables(build(ranks=1, cpu_share=1))) == 0


def test_a_look_up_reads_its_rows_alone_for_the_samples_of_all_chips() -> None:
    graph = build(model="dlrm_dcnv2", ranks=2, batch=10, cpu_share=0)
    bag = op(graph, "table19.lookup")  # 12 look-ups a sample
    assert bag.bytes_read == 20 * 12 * (8 + 128 * 2)
    assert bag.bytes_written == 20 * 128 * 2
    assert bag.flops == 20 * 11 * 128
    assert tensor(graph, "table19.indices").bytes == 20 * 12 * 8
    assert tensor(graph, "table19.weight").bytes == 40_000_000 * 128 * 2
    assert op(build(batch=10, lookups=5, ranks=1), "table2.lookup").bytes_read == 10 * 5 * (8 + 256)


def test_the_all_to_all_stands_between_look_ups_and_interaction() -> None:
    graph = build(ranks=8, batch=100)
    names = [o.name for o in graph.ops]
    edges = {(names[u], names[v]) for u, v in graph.edges.tolist()}
    assert {u for u, v in edges if v == "lookups"} == {n for n in names if n.endswith(".lookup")}
    assert [v for u, v in edges if u == "lookups"] == ["all_to_all"]
    assert [v for u, v in edges if u == "all_to_all"] == ["interaction.vectors"]
    assert {u for u, v in edges if v == "interaction.vectors"} == {"all_to_all", "bottom3.relu"}
    assert {u for u, v in edges if v == "interaction.features"} == {"interaction.triangle", "bottom3.relu"}
    exchange = op(graph, "all_to_all")
    assert (exchange.participants, exchange.payload_bytes) == (8, 4 * 800 * 128 * 2)
    assert exchange.bytes_written == 26 * 100 * 128 * 2
    assert op(graph, "interaction.products").matmul == Matmul(100, 27, 27, 128)


def test_samples_can_be_cut_apart() -> None:
    graph = build(batch=64)
    assert {o.rows for o in graph.ops} == {Rows(64, 1)}
    wise = {t.name for t in graph.tensors if t.token_wise}
    assert wise == {"dense"} | {t.name for t in graph.tensors if t.name.endswith(".indices")}


def test_further_tables_are_those_of_the_benchmark_again() -> None:
    graph = build(ranks=1, tables=60, cpu_share=0)
    sizes = {t.name: t.bytes for t in tables(graph)}
    assert len(sizes) == 60
    assert sizes["table52.weight"] == sizes["table26.weight"] == sizes["table0.weight"] == 39_884_406 * 256
    assert op(graph, "interaction.products").matmul == Matmul(2048, 61, 61, 128)


@pytest.mark.parametrize("model", ["dlrm", "dlrm_dcnv2"])
@pytest.mark.parametrize("device", options("device"))
def test_it_lowers_on_every_device(device: str, model: str) -> None:
    graph = build(model=model)
    problem = lower(graph, device)
    assert (problem.n, problem.warnings) == (len(graph.ops), ())


def test_every_engine_has_its_share() -> None:
    graph = build()
    problem = lower(graph, "atlas_800i_a2")
    at = {o.name: problem.engine_names[e] for o, e in zip(graph.ops, problem.engine.tolist(), strict=True)}
    places = [at[name] for name in ("table19.lookup", "table1.lookup", "bottom1", "interaction.products", "all_to_all")]
    assert places == ["ai_cpu", "vector_core", "ai_core", "ai_core", "hccl"]


def test_equal_parameters_make_equal_graphs() -> None:
    assert build().content_hash() == build().content_hash()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"model": "wide"}, "model 'wide' is not known; there are: dlrm, dlrm_dcnv2"),
        ({"cpu_share": 1.5}, r"cpu_share is 1\.5; a number from 0 to 1"),
        ({"bottom": 512}, "bottom is 512; a list of widths is needed"),
        ({"top": [512, 0]}, r"top\[1\] is 0; a whole number of at least 1"),
        ({"tables": 0}, "tables is 0"),
        ({"lookups": 0}, "lookups is 0"),
        ({"ranks": 0}, "ranks is 0"),
    ],
)
def test_parameters_that_make_no_sense(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        build(**parameters)
