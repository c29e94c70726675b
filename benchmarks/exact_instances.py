"""The problems that the exact solver is measured on, set by set, with what is published of them."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import msched
from msched.graph import OpGraph
from msched.problem import Problem

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
DEVICE = "atlas_800i_a2"  # five engines
LIMITS_S = {
    "stg": 15.0, "psplib-j30": 30.0, "psplib-j60": 30.0, "psplib-j120": 30.0, "jobshop": 60.0, "pipedream": 10.0,
    "onnx": 10.0, "random": 60.0, "moe": 60.0, "training": 60.0, "llama": 60.0, "memory": 30.0, "build": 0.0,
}  # fmt: skip
_STREAMS = 8
_ONNX = ("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet", "vgg19",
         "zfnet512")  # fmt: skip


@dataclass(frozen=True)
class Instance:
    """A problem to be built when its turn comes; the best published bound and makespan, where there are any."""

    name: str
    build: Callable[[], Problem]
    lower: int | None = None
    upper: int | None = None


def instances(name: str, gap_ns: int = 0) -> list[Instance]:
    """The instances of a set of `LIMITS_S`, always in the same order. gap_ns: between tasks of a stream of networks.

    Raises FileNotFoundError where the set is read from files that are not there.
    """
    family, _, size = name.partition("-")
    sets: dict[str, Callable[[], Iterator[Instance]]] = {
        "stg": partial(_published, "stg"),
        "psplib": partial(_published, "psplib", f"{size}_"),
        "jobshop": _job_shops,
        "pipedream": partial(_pipedream, gap_ns),
        "onnx": partial(_onnx, gap_ns),
        "random": partial(_random, gap_ns),
        "moe": partial(_moe, gap_ns),
        "training": partial(_training, gap_ns),
        "llama": partial(_llama, gap_ns),
        "memory": _memory,
        "build": partial(_build, gap_ns),
    }
    return list(sets[family]())


@cache
def _optima() -> list[dict[str, str]]:
    with (DATA / "OPTIMA.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _published(family: str, prefix: str = "") -> Iterator[Instance]:
    for row in _optima():
        name = row["instance"]
        if row["set"] != family or not name.startswith(prefix):
            continue
        path = {
            "stg": DATA / "stg" / name,
            "psplib": DATA / "psplib" / name.partition("_")[0] / f"{name}.rcp",
            "jsp": DATA / "jsp" / name,
            "fjsp": DATA / "fjsp" / f"{name}.fjs",
        }[family]
        streams = int(row["procs"]) if row["procs"] else None
        yield Instance(
            f"{Path(name).stem}{f' on {streams}' if streams else ''}",
            partial(msched.read_problem, path, streams),
            int(row["lower"]) if row["lower"] else None,
            int(row["upper"]) if row["upper"] else None,
        )


def _job_shops() -> Iterator[Instance]:
    yield from _published("jsp")
    yield from _published("fjsp")


def _lowered(graph: Callable[[], OpGraph], gap_ns: int, streams: int = _STREAMS, sync_ns: int = 0) -> Problem:
    problem = msched.lower(graph(), DEVICE, streams=streams)
    return replace(problem, record_ns=sync_ns // 2, wait_ns=sync_ns - sync_ns // 2, gap_ns=gap_ns)


def _on_few_streams(name: str, graph: Callable[[], OpGraph], gap_ns: int) -> Iterator[Instance]:
    for streams in (2, 4, 8):
        for sync_ns in (0, 2_000):
            yield Instance(
                f"{name}, {streams} streams, sync {sync_ns // 1_000} us",
                partial(_lowered, graph, gap_ns, streams, sync_ns),
            )


def _pipedream(gap_ns: int) -> Iterator[Instance]:
    paths = sorted((DATA / "pipedream").glob("*.graph.txt"))
    if not paths:
        raise FileNotFoundError(f"{DATA / 'pipedream'} holds no profiles")
    for path in paths:
        yield from _on_few_streams(path.name.removesuffix(".graph.txt"), partial(msched.read, path), gap_ns)


def _onnx(gap_ns: int) -> Iterator[Instance]:
    for name in _ONNX:
        yield from _on_few_streams(name, _network("onnx_light", model=name), gap_ns)


def _network(name: str, **parameters: Any) -> Callable[[], OpGraph]:
    return partial(msched.network, name, **parameters)


def _random(gap_ns: int) -> Iterator[Instance]:
    for ops in (50, 100, 200, 500, 1_000, 2_000):
        yield Instance(f"random layered, {ops} ops", partial(_lowered, _network("random_layered", ops=ops), gap_ns))


def _moe(gap_ns: int) -> Iterator[Instance]:
    for layers, experts in ((1, "grouped"), (1, "single"), (4, "grouped")):
        for slices in (2, 4):
            graph = _network(
                "moe", size="v3", tensor_parallel=4, expert_parallel=32, layers=layers, dense_layers=0,
                experts=experts, slices=slices,
            )  # fmt: skip
            yield Instance(
                f"deepseek v3, {layers} layers, experts {experts}, {slices} slices", partial(_lowered, graph, gap_ns)
            )


def _training(gap_ns: int) -> Iterator[Instance]:
    for tensor_parallel in (1, 8):
        graph = _network("training", layers=15, tensor_parallel=tensor_parallel, data_parallel=8)
        yield Instance(f"llama 7b, 15 layers, {tensor_parallel} x 8 chips", partial(_lowered, graph, gap_ns))


def _llama(gap_ns: int) -> Iterator[Instance]:
    for layers in (4, 80):
        for phase in ("prefill", "decode"):
            for slices in (1, 2, 4):
                # A cut along the batch needs a request for each slice.
                batch = 1 if phase == "prefill" else 16
                graph = _network("llama", layers=layers, phase=phase, batch=batch, slices=slices)
                yield Instance(
                    f"llama 65b, {layers} layers, {phase}, {slices} slices", partial(_lowered, graph, gap_ns)
                )


def _limited(given: dict[str, Any], memory_bytes: int | None) -> Problem:
    return Problem.from_arrays(**{**given, "memory_bytes": memory_bytes})


def _memory() -> Iterator[Instance]:
    given = json.loads((DATA / "instances" / "memory_200ops.json").read_text(encoding="utf-8"))
    given.pop("about")
    # 4858 is the optimum without a limit, and was reached under 230 (the file's own note says how).
    for limit, upper in ((None, 4858), (260, 4858), (230, 4858), (210, None), (182, None)):
        yield Instance(f"200 ops within {limit or 'any'} bytes", partial(_limited, given, limit), 4858, upper)


def _build(gap_ns: int) -> Iterator[Instance]:
    graph = _network("llama", slices=4)
    yield Instance("llama 65b, prefill, 4 slices", partial(_lowered, graph, gap_ns))
