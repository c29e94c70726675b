"""OpGraph and Device to Problem."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, get_args

import numpy as np

from msched.arrays import Int64Array
from msched.device import Device, device_from
from msched.errors import OptionError, ProblemError
from msched.graph import OpGraph
from msched.lowering.folding import MOST_EDGES, fold, settled
from msched.lowering.parallelism import Parallelism, allow
from msched.lowering.placement import Override, Place, places
from msched.lowering.pricing import lane_of, price
from msched.problem import UNLIMITED, Binding, Problem

Collective = Literal["hccl", "aiv"]
_LONGEST_NS = 2**60


def lower(
    graph: OpGraph,
    device: str | Device,
    *,
    streams: int | None = None,
    binding: Binding = "free",
    memory_bytes: int | Literal["device"] | None = None,
    collective: Collective = "hccl",
    placement: Override | None = None,
    aiv_share: float = 1 / 3,
    parallelism: Parallelism = "full",
) -> Problem:
    """The graph placed and priced on a device: views and constants folded away, every op with engines and a duration.

    device: a Device, or the name of a file in conf/device.
    streams: None for as many as the device has. memory_bytes: None for no limit, "device" for what the device has.
    collective: "hccl" leaves collectives to their own engine; "aiv" lets them hold cores of the engine of vector work
        as well, `aiv_share` of its units (assumed: a third, as the ReduceScatter on 16 of 48 vector cores in the
        core-limit pages of torchair).
    placement: kind to a class of work ("matrix", ..., "free") or to {engine: units that one block holds}; it wins over
        recorded engines and the table of kinds (`msched.lowering.placement.places`).
    parallelism: what may run side by side (`msched.lowering.parallelism.allow`).

    Every assumption is a line in `Problem.warnings`, behind those of the graph. Sizes are rounded up to the alignment
    of the device. Raises OptionError for an option that the device cannot follow, ProblemError for an op that it cannot
    place or price; both name the op or the option, and the device.
    """
    chip = _device(device)
    _check(chip, streams, memory_bytes, collective, aiv_share)
    place, warnings = places(graph.ops, chip, placement or {})
    folded = fold(graph, [p.work for p in place], MOST_EDGES)
    ops, place = [graph.ops[v] for v in folded.kept], settled(folded, place)
    known = {p: i for i, p in enumerate(dict.fromkeys(place))}
    number = [known[p] for p in place]
    durations, blocks, assumed = _prices(graph, folded.kept, number, list(known), chip)
    which = np.array(number, np.int64)
    demand = _units(list(known), chip)[which] * blocks[:, None]
    if folded.barriers:
        assumed.append(
            f"{len(folded.barriers)} ops stay as barriers of no duration, each in place of more than {MOST_EDGES} "
            f"dependencies, and cost a second event there; the first is {ops[min(folded.barriers)].name!r}"
        )
    if collective == "aiv":
        assumed += _share_cores(demand, place, chip, aiv_share)
    align, engines = chip.memory.alignment, list(chip.engines)
    resident = sum(-(-t.bytes // align) * align for t in folded.tensors if t.persistent)
    if memory_bytes is None and resident > chip.memory.bytes:
        assumed.append(
            f"weights, caches and inputs take {resident} bytes, but device {chip.name!r} has {chip.memory.bytes}: they "
            "do not fit, and no limit was set (memory_bytes)"
        )
    problem = Problem(
        name=graph.name,
        op_names=tuple(op.name for op in ops),
        engine_names=tuple(engines),
        duration=durations,
        demand=demand,
        engine=_integers(engines.index(p.needs[0][0]) for p in known)[which],
        capacity=_integers(engine.units for engine in chip.engines.values()),
        communication=np.array([engine.communication for engine in chip.engines.values()], np.bool_),
        edges=folded.edges,
        delay=np.zeros(len(folded.edges), np.int64),
        tensor_producer=_integers(UNLIMITED if t.producer is None else t.producer for t in folded.tensors),
        tensor_bytes=_integers(-(-t.bytes // align) * align for t in folded.tensors),
        tensor_consumer_start=np.cumsum([0, *(len(t.consumers) for t in folded.tensors)]),
        tensor_consumer=_integers(c for t in folded.tensors for c in t.consumers),
        tensor_persistent=np.array([t.persistent for t in folded.tensors], np.bool_),
        tensor_output=np.array([t.output for t in folded.tensors], np.bool_),
        workspace=_integers(-(-op.workspace_bytes // align) * align for op in ops),
        engine_streams=_integers(UNLIMITED if e.streams is None else e.streams for e in chip.engines.values()),
        label=_numbered(op.label for op in ops),
        communicator=_numbered(op.communicator for op in ops),
        mode_op=_integers(()),
        mode_duration=_integers(()),
        mode_demand=np.zeros((0, len(engines)), np.int64),
        streams=chip.streams if streams is None else streams,
        tasks_per_stream=chip.tasks_per_stream,
        events=chip.events,
        memory_bytes=chip.memory.bytes if memory_bytes == "device" else memory_bytes,
        binding=binding,
        gap_ns=chip.gap_ns,
        record_ns=chip.record_ns,
        wait_ns=chip.wait_ns,
        host_issue_ns=chip.host_issue_ns,
        warnings=(*graph.warnings, *warnings, *assumed),
    )
    return allow(problem, parallelism, chip.streams)


def _device(device: str | Device) -> Device:
    if isinstance(device, Device):
        return device
    from msched.config import load

    return device_from(load("device", device))


def _check(
    device: Device, streams: int | None, memory_bytes: int | str | None, collective: str, aiv_share: float
) -> None:
    if collective not in get_args(Collective):
        raise OptionError(f"collective is {collective!r}; it must be one of: {', '.join(get_args(Collective))}")
    if not isinstance(aiv_share, int | float) or not 0 < aiv_share <= 1:
        raise OptionError(f"aiv_share is {aiv_share!r}; a share of the vector cores, above 0 and at most 1, is needed")
    if collective == "aiv" and not device.placement.get("vector"):
        raise OptionError(f"collective 'aiv': device {device.name!r} has no place for vector work to share")
    if isinstance(memory_bytes, str) and memory_bytes != "device":
        raise OptionError(f"memory_bytes is {memory_bytes!r}; a number of bytes, 'device' or None is needed")
    if isinstance(streams, int) and device.streams is not None and streams > device.streams:
        raise OptionError(f"streams is {streams}, but device {device.name!r} has {device.streams}")


def _prices(
    graph: OpGraph, kept: Sequence[int], number: Sequence[int], places_: Sequence[Place], device: Device
) -> tuple[Int64Array, Int64Array, list[str]]:
    """Duration and blocks of each kept op, and a warning for each kind of figure that had to be assumed.

    `number` says which of `places_` each kept op has.
    """
    lanes = [lane_of(p, device) if p.work != "free" else None for p in places_]  # only barriers are free here
    moved: tuple[list[int], list[int]] | None = None  # only built where an op says nothing of its bytes
    durations, blocks = [], []
    implied: list[str] = []
    unsized: list[str] = []
    unpriced: list[str] = []
    far: list[int] = []
    for v, i in zip(kept, number, strict=True):
        op, lane = graph.ops[v], lanes[i]
        if lane is None:
            durations.append(0)
            blocks.append(0)
            continue
        if said := bool(op.bytes_read or op.bytes_written):
            read, written = op.bytes_read, op.bytes_written
        else:
            moved = moved or _traffic(graph)
            read, written = moved[0][v], moved[1][v]
        duration, block, sized = price(op, lane, read, written)
        if op.duration_ns is None and lane.work == "collective" and op.participants > (device.link.chips or 2**63):
            far.append(v)
        if duration > _LONGEST_NS:
            raise ProblemError(
                f"op {op.name!r} ({op.kind}) would take {duration:.1e} ns on device {device.name!r}, "
                "more than can be counted; check its flops, bytes and shape"
            )
        durations.append(duration)
        blocks.append(block)
        if not said and op.duration_ns is None and (read or written) and not op.payload_bytes:
            implied.append(op.name)
        if not sized:
            (unpriced if op.duration_ns is None and not op.flops else unsized).append(op.name)
    cases = (
        (implied, "say nothing of the bytes that they move: taken to read and write each of their tensors once"),
        (
            unsized,
            "say nothing of their size: taken to fill their engine (control, host, image and copy work: one unit)",
        ),
        (unpriced, "say neither duration nor size: priced at the shortest task, as if they filled their engine"),
    )
    warnings = [f"{len(names)} ops {what}; the first is {names[0]!r}" for names, what in cases if names]
    if far:
        most = max(graph.ops[v].participants for v in far)
        warnings.append(
            f"{len(far)} collectives join up to {most} chips, but the link of device {device.name!r} joins "
            f"{device.link.chips}: priced as if it joined all, so too cheap; the first is {graph.ops[far[0]].name!r}"
        )
    return np.array(durations, np.int64), np.array(blocks, np.int64), warnings


def _traffic(graph: OpGraph) -> tuple[list[int], list[int]]:
    """Bytes of the tensors that each op reads, and of those that it writes."""
    read, written = [0] * len(graph.ops), [0] * len(graph.ops)
    for tensor in graph.tensors:
        if tensor.producer is not None:
            written[tensor.producer] += tensor.bytes
        for v in dict.fromkeys(tensor.consumers):
            read[v] += tensor.bytes
    return read, written


def _units(places_: Sequence[Place], device: Device) -> Int64Array:
    """Units that one block holds on each engine: shape (places, E)."""
    column = {name: e for e, name in enumerate(device.engines)}
    units = np.zeros((len(places_), len(column)), np.int64)
    for i, p in enumerate(places_):
        for name, count in p.needs:
            units[i, column[name]] = count
    return units


def _share_cores(demand: Int64Array, place: Sequence[Place], device: Device, share: float) -> list[str]:
    """Let collectives hold a share of the cores of vector work, in `demand`; the warning that says how many."""
    collective = np.array([p.work == "collective" for p in place], np.bool_)
    core = next(iter(device.placement["vector"]))
    most = device.engines[core].units
    units = max(1, round(most * share))
    column = demand[:, list(device.engines).index(core)]
    column[collective] = np.maximum(column[collective], units)
    return [f"collectives hold {units} of {most} units of {core!r}: assumed (aiv_share)"] if collective.any() else []


def _integers(values: Iterable[int]) -> Int64Array:
    return np.fromiter(values, np.int64)


def _numbered(names: Iterable[str | None]) -> Int64Array:
    """Numbers by first appearance, -1 for None."""
    number: dict[str, int] = {}
    return _integers(UNLIMITED if name is None else number.setdefault(name, len(number)) for name in names)
