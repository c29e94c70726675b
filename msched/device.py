"""Device: the chip that a network is scheduled on (engines, limits, costs, memory, placement classes)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from msched.errors import DeviceError


class Engine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One kind of hardware unit.

    units: how many ops of one unit each run at once (cores, channels, links).
    streams: most streams that may be bound to it, None for no limit of its own.
    independent: its ops keep a stream of their own. attach: its ops may ride on a predecessor's stream.
    skip: its ops need no stream unless they have inputs (GE's local engine).
    communication: it moves data between chips; its time beside computation counts as hidden.
    flops_per_ns: peak of one unit for its usual data type. bytes_per_ns: most memory traffic of one unit.
    tile: rows and columns of the block of a matrix product that one unit computes at a time.
    block_bytes: bytes that one unit of an elementwise op takes at a time.
    """

    units: int
    streams: int | None = None
    independent: bool = False
    attach: bool = False
    skip: bool = False
    communication: bool = False
    flops_per_ns: float = 0.0
    bytes_per_ns: float = 0.0
    tile: tuple[int, int] = (128, 256)
    block_bytes: int = 32768


class Link(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The network between chips: latency of one step (alpha) and bandwidth of one direction (beta).

    chips: how many it joins, as those of one server; None where nothing says. What lies beyond has no figures.
    """

    latency_ns: int
    bytes_per_ns: float
    chips: int | None = None


class Memory(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Device memory. bytes_per_ns is its bandwidth (1 byte/ns = 1 GB/s); alignment of every buffer in bytes."""

    bytes: int
    bytes_per_ns: float
    alignment: int = 512


class Device(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A chip, as `conf/device/*.yaml` describes it.

    placement: class of work (matrix, vector, attention, control, image, collective, copy) to the engines that it
        holds and the units of each that one of its blocks takes.
    streams, tasks_per_stream, events: limits, None for no limit. concurrent_streams: what the hardware serves at once.
    gap_ns: between two tasks of one stream. record_ns, wait_ns: of an event. host_issue_ns: a task, 0 when sunk.
    task_floor_ns: the shortest task. sources: figure to where it comes from, `assumed` where nothing public says.

    Raises DeviceError through `device_from`.
    """

    name: str
    engines: dict[str, Engine]
    placement: dict[str, dict[str, int]]
    memory: Memory
    link: Link
    streams: int | None = None
    tasks_per_stream: int | None = None
    events: int | None = None
    concurrent_streams: int | None = None
    gap_ns: int = 0
    record_ns: int = 0
    wait_ns: int = 0
    host_issue_ns: int = 0
    task_floor_ns: int = 0
    sources: dict[str, str] = {}


def device_from(values: Mapping[str, Any]) -> Device:
    """A checked Device from plain values (a YAML mapping). Raises DeviceError that names the key."""
    name = values.get("name", "?")
    try:
        device = msgspec.convert(dict(values), Device)
    except msgspec.ValidationError as error:
        raise DeviceError(f"device {name!r}: {error}") from error
    if not device.engines:
        raise DeviceError(f"device {name!r} has no engines")
    rates = [rate for engine in device.engines.values() for rate in (engine.flops_per_ns, engine.bytes_per_ns)]
    if not all(map(math.isfinite, (*rates, device.memory.bytes_per_ns, device.link.bytes_per_ns))):
        raise DeviceError(f"device {name!r}: rates and bandwidths must be finite numbers")
    for key, engine in device.engines.items():
        if engine.units < 1 or engine.flops_per_ns < 0 or engine.bytes_per_ns < 0 or engine.block_bytes < 1:
            raise DeviceError(f"device {name!r}, engine {key!r}: units, rates and block_bytes must be positive")
        if min(engine.tile) < 1 or (engine.streams is not None and engine.streams < 1):
            raise DeviceError(f"device {name!r}, engine {key!r}: tile and streams must be at least 1")
    for work, needs in device.placement.items():
        for key, units in needs.items():
            if key not in device.engines:
                known = ", ".join(device.engines)
                raise DeviceError(f"device {name!r}, placement {work!r}: no engine {key!r} (it has {known})")
            if not 1 <= units <= device.engines[key].units:
                raise DeviceError(f"device {name!r}, placement {work!r}: {units} units of {key!r} are not to be had")
    limits = {"streams": device.streams, "tasks_per_stream": device.tasks_per_stream, "events": device.events}
    for key, limit in limits.items():
        if limit is not None and limit < (0 if key == "events" else 1):
            raise DeviceError(f"device {name!r}: {key} is {limit}")
    costs = (device.gap_ns, device.record_ns, device.wait_ns, device.host_issue_ns, device.task_floor_ns)
    if min(*costs, device.link.latency_ns, device.memory.bytes) < 0:
        raise DeviceError(f"device {name!r}: costs, latencies and sizes must not be negative")
    if device.link.chips is not None and device.link.chips < 1:
        raise DeviceError(f"device {name!r}: link.chips is {device.link.chips}; at least 1, or null, is needed")
    if device.memory.bytes_per_ns <= 0 or device.link.bytes_per_ns <= 0 or device.memory.alignment < 1:
        raise DeviceError(f"device {name!r}: bandwidths and alignment must be positive")
    return device
