"""Lowering of real networks, and of real kernels against what an Ascend profiler recorded of them."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest

from msched.config import load, options
from msched.device import device_from
from msched.formats import read
from msched.graph import Matmul, Op
from msched.lowering import lower
from msched.lowering.placement import Place, work_of
from msched.lowering.pricing import lane_of, price

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
PIPEDREAM = sorted((DATA / "pipedream").glob("*.graph.txt"))
KERNELS = DATA / "msinsight" / "level1_rank0" / "kernel_details.csv"
LIGHT = sorted((Path(onnx.__file__).parent / "backend" / "test" / "data" / "light").glob("*.onnx"))


@pytest.mark.skipif(not PIPEDREAM, reason="../shared/data/pipedream is not there")
@pytest.mark.parametrize("device", options("device"))
def test_pipedream_profiles_lower_to_their_measured_times(device: str) -> None:
    for path in PIPEDREAM:
        graph = read(path)
        problem = lower(graph, device)
        assert problem.duration.sum() == sum(op.duration_ns or 0 for op in graph.ops), path.name
        assert not [w for w in problem.warnings if "in no table" in w], path.name


def test_the_light_onnx_models_lower_without_an_unknown_kind() -> None:
    assert len(LIGHT) == 9
    for path in LIGHT:
        graph = read(path)
        problem = lower(graph, "atlas_800i_a2")
        left = {op.name: op.kind for op in graph.ops if op.name in problem.op_names}
        assert not [kind for kind in left.values() if kind in ("ConstantOfShape", "Reshape", "Dropout", "Unsqueeze")]
        # Each Conv and Gemm, and nothing else, goes to the cubes.
        assert {v for v in left if left[v] in ("Conv", "Gemm")} == set(np.array(problem.op_names)[problem.engine == 0])


def rows() -> list[dict[str, str]]:
    with KERNELS.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.skipif(
    not KERNELS.is_file(), reason="../shared/data/msinsight/level1_rank0/kernel_details.csv is not there"
)
def test_kinds_are_placed_where_the_profiler_saw_them() -> None:
    seen = {"AI_CORE": "matrix", "AI_VECTOR_CORE": "vector", "MIX_AIV": "vector", "HCCL": "collective"}
    kinds = [(row["Type"], row["Accelerator Core"]) for row in rows()]
    judged = Counter((kind, core) for kind, core in kinds if core in seen)
    assert sum(judged.values()) > 180
    assert [(kind, core) for kind, core in judged if work_of(kind) != seen[core]] == []


@pytest.mark.skipif(
    not KERNELS.is_file(), reason="../shared/data/msinsight/level1_rank0/kernel_details.csv is not there"
)
def test_matrix_products_hold_the_cores_that_the_profiler_saw() -> None:
    # The trace is of a 910B with 24 cubes and 48 vector cores. Its own tiling differs where one side is 1000 long.
    device = device_from(load("device", "atlas_800i_a2"))
    lane = lane_of(Place("matrix", (("ai_core", 1),)), device)
    agree = []
    for row in rows():
        if row["Type"].startswith("MatMul"):
            first, second = (
                [int(size) for size in text.split(",") if size]
                for text in row["Input Shapes"].strip('"').split(";")[:2]
            )
            m, n = (int(size) for size in row["Output Shapes"].strip('"').split(","))
            shape = Matmul(batch=1, m=m, n=n, k=round((np.prod(first) * np.prod(second) / (m * n)) ** 0.5))
            held = price(Op(name="m", kind=row["Type"], matmul=shape), lane, 1, 0).blocks
            agree.append(held == int(row["Block Dim"]))
    assert (len(agree), sum(agree)) == (9, 7)
