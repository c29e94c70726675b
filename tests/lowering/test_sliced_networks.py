"""Generated networks in slices: they lower, keep their work, and cost what is stated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import msched
from msched.config import build, load, options
from msched.device import Device, device_from
from msched.graph import Op, OpGraph
from msched.lowering import lower
from msched.lowering.placement import work_of
from msched.lowering.slicing import Around, slice_graph
from msched.networks import network, networks

CHIP = device_from(load("device", "atlas_800i_a2"))
SMALL: dict[str, dict[str, Any]] = {
    "llama": {"layers": 1},
    "pangu": {"layers": 1},
    "moe": {"layers": 2},
    "training": {"layers": 1},
}
TIED = ("llama", "moe", "pangu", "recommendation", "training")


def work(graph: OpGraph) -> tuple[int, int, int, int]:
    return (
        sum(op.flops for op in graph.ops),
        sum(op.bytes_written for op in graph.ops),
        sum(op.payload_bytes for op in graph.ops),
        sum(tensor.bytes for tensor in graph.tensors),
    )


def check(graph: OpGraph, k: int, around: Around, device: Device) -> OpGraph:
    cut = slice_graph(graph, k, around=around)
    assert work(cut) == work(graph)
    assert sum(op.bytes_read for op in cut.ops) >= sum(op.bytes_read for op in graph.ops)
    assert len(cut.warnings) > len(graph.warnings)
    problem = lower(cut, device)
    assert problem.n >= lower(graph, device).n
    return cut


@pytest.mark.parametrize("name", list(networks()))
def test_every_network_lowers_in_slices_with_the_same_work(name: str) -> None:
    graph = network(name, **SMALL.get(name, {}))
    for k in (2, 4):
        cut = check(graph, k, "collectives", CHIP)
        # in the others nothing is tied to a collective, and a warning says so
        assert (len(cut.ops) > len(graph.ops)) == (name in TIED)
        if name not in TIED:
            assert cut.warnings[-1].startswith("nothing is sliced: no op that can be cut is tied to a collective")
        check(graph, k, "any", CHIP)


@pytest.mark.slow
@pytest.mark.parametrize("device", options("device"))
@pytest.mark.parametrize("workload", [w for w in options("workload") if w not in ("file", "pipedream")])
def test_every_workload_lowers_in_slices_on_every_device(workload: str, device: str) -> None:
    values = load("workload", workload)
    graph: OpGraph = build(values | ({"layers": 1} if values.get("layers") is None and "layers" in values else {}))
    chip = device_from(load("device", device))
    for k in (2, 4):
        check(graph, k, "any", chip)


def test_the_network_option_is_the_cut() -> None:
    parameters: dict[str, Any] = {"size": "7b", "layers": 1, "tensor_parallel": 8, "sequence": 256}
    assert network("llama", **parameters, slices=2) == slice_graph(network("llama", **parameters), 2)
    assert network("llama", **parameters, slices=1) == network("llama", **parameters)
    by_name = {"layer0.attention*": 2}
    assert network("llama", **parameters, slices=by_name) == slice_graph(network("llama", **parameters), by_name)


def test_slices_of_llama_by_hand() -> None:
    # 20 ops a layer and 7 around them, of which last_token, norm, lm_head and its all-gather stay whole
    whole = network("llama", layers=2)
    assert len(whole.ops) == 2 * 20 + 6
    assert len(network("llama", layers=2, slices=4).ops) == 4 * (2 * 20 + 2) + 4


def durations(graph: OpGraph) -> dict[str, list[int]]:
    """Op to the durations of its slices."""
    problem = lower(graph, CHIP)
    result: dict[str, list[int]] = {}
    for name, duration in zip(problem.op_names, problem.duration.tolist(), strict=True):
        result.setdefault(name.split(".slice")[0], []).append(duration)
    return result


def most_overhead_ns(op: Op, parts: list[Op]) -> float:
    """The most that slices of an op may take beyond the whole, from the roofline model and figures of the device.

    A slice may be the shortest task, or round each of its steps up: a nanosecond, a wave of blocks. Weights, keys and
    values are read again.
    """
    k, work_ = len(parts), work_of(op.kind)
    cost = k * (CHIP.task_floor_ns + 2.0)
    if work_ == "collective":
        return cost + (k - 1) * 2 * (op.participants - 1) * CHIP.link.latency_ns
    again = sum(part.bytes_read for part in parts) - op.bytes_read
    cost += again / (CHIP.memory.bytes_per_ns or 1)
    core = CHIP.engines["vector_core" if work_ == "vector" else "ai_core"]
    rate = (core.flops_per_ns or 1, core.bytes_per_ns or 1)
    if work_ == "vector":
        # blocks that do not fill the last round of cores
        return cost + k * core.block_bytes / rate[1]
    assert op.matmul is not None
    rows, columns = core.tile
    if work_ == "matrix":
        tall = 1 + (k - 1) * op.matmul.batch * -(-op.matmul.n // columns) / core.units
        wave = 2 * rows * columns * op.matmul.k / rate[0]
        return cost + (k - 1 + tall) * wave
    # attention: a wave of each slice, whose blocks are those of its rows
    tiles = [-(-part.matmul.m // rows) for part in parts if part.matmul is not None]
    waves = (part.flops / (op.matmul.batch * tall) for part, tall in zip(parts, tiles, strict=True))
    return cost + sum(waves) / rate[0]


@pytest.mark.parametrize("k", [2, 4])
def test_one_stream_takes_longer_by_the_stated_overheads_alone(k: int) -> None:
    whole = network("llama", size="7b", layers=2, tensor_parallel=8, sequence=2048)
    cut = slice_graph(whole, k)
    parts: dict[str, list[Op]] = {}
    for op in cut.ops:
        parts.setdefault(op.name.split(".slice")[0], []).append(op)
    before, after = durations(whole), durations(cut)
    most = 0.0
    for op in whole.ops:
        alone, together = before[op.name][0], sum(after[op.name])
        overhead = most_overhead_ns(op, parts[op.name]) if len(parts[op.name]) > 1 else 0.0
        assert alone <= together <= alone + overhead, op.name
        most += overhead
    makespan = []
    for graph in (whole, cut):
        problem = lower(graph, CHIP, parallelism="single_stream")
        makespan.append(msched.simulate(problem, msched.solve(problem, "single")).makespan_ns)
        # a single stream takes the sum of the durations and a gap between any two of them
        assert makespan[-1] == int(problem.duration.sum()) + (problem.n - 1) * problem.gap_ns
    gaps = (len(cut.ops) - len(whole.ops)) * CHIP.gap_ns
    assert makespan[0] + gaps <= makespan[1] <= makespan[0] + gaps + most


def test_a_slice_communicates_while_another_computes() -> None:
    """The gain that slicing is for: two streams, and less time than one takes for the whole graph."""
    parameters: dict[str, Any] = {"size": "7b", "layers": 2, "tensor_parallel": 8, "sequence": 2048}
    shortest = []
    for k in (1, 2):
        problem = lower(network("llama", **parameters, slices=k), CHIP, parallelism="cc_parallel")
        plan = msched.solve(problem, "blevel")
        shortest.append(msched.simulate(problem, plan).makespan_ns)
    talks = problem.communication[problem.engine]
    longer = max(int(problem.duration[talks].sum()), int(problem.duration[~talks].sum()))
    assert longer <= shortest[1] < shortest[0]
    assert np.unique(plan.stream[talks]).size == 1
