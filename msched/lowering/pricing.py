"""Pricing: how long an op takes alone, and how many blocks of it run at once.

A roofline (Williams, Waterman, Patterson 2009) with wave quantisation: an op is cut into blocks, one a unit of its
engine at a time, and takes the longer of its arithmetic and its memory traffic. Rates are read as the decimals that the
device file says, and every duration is a quotient of whole numbers rounded up to a nanosecond, so that no figure
depends on how a machine rounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from msched.device import Device
from msched.errors import ProblemError
from msched.graph import Op
from msched.lowering.placement import Place, Work, plain

Rate = tuple[int, int]  # numerator and denominator of what is done in a nanosecond


@dataclass(frozen=True)
class Lane:
    """What a place of a device can do: `blocks` at once, each at `flops` and `block_traffic`, and all within `traffic`.

    A rate of None sets no limit.
    """

    device: Device
    work: Work
    blocks: int
    tile: tuple[int, int]
    block_bytes: int
    flops: Rate | None
    block_traffic: Rate | None
    traffic: Rate


class Price(NamedTuple):
    """Duration alone in ns, the blocks held at once, and whether the op said how many it has."""

    duration_ns: int
    blocks: int
    sized: bool = True


def lane_of(place: Place, device: Device) -> Lane:
    """The lane of a place: the rates of its binding engine, and as many blocks as every engine of it has units for."""
    engine = device.engines[place.needs[0][0]]
    return Lane(
        device=device,
        work=place.work,
        blocks=min(device.engines[name].units // units for name, units in place.needs),
        tile=engine.tile,
        block_bytes=engine.block_bytes,
        flops=_rate(engine.flops_per_ns),
        block_traffic=_rate(engine.bytes_per_ns),
        traffic=_rate(device.memory.bytes_per_ns) or (1, 1),
    )


def price(op: Op, lane: Lane, read_bytes: int, written_bytes: int) -> Price:
    """Duration and blocks of an op in its lane, from its traffic with device memory.

    A matrix product of (m, k) by (k, n) has batch x ceil(m / tile rows) x ceil(n / tile columns) blocks, each of the
    full tile; attention, which one block computes for the rows of a tile from all keys (Dao 2023, FlashAttention-2,
    section 3.2), batch x ceil(m / tile rows), its softmax hidden behind its two products. On c units they take
    ceil(blocks / c) waves. Any other op has a block for each `block_bytes` of its traffic and spreads its arithmetic
    evenly. Where nothing says how many blocks an op has, it is taken to fill its engine; control, host, image and copy
    work to be a single block.

    A collective is one block and priced by `collective_ns`; without `payload_bytes`, its buffer is the larger of what
    it reads and what it writes. A measured duration stands as it is, zero included; the model never gives less than the
    shortest task of the device.

    Raises ProblemError for a collective that cannot be priced.
    """
    floor_ns, moved_bytes = lane.device.task_floor_ns, read_bytes + written_bytes
    if lane.work == "collective":
        payload_bytes = op.payload_bytes or max(read_bytes, written_bytes)
        if op.duration_ns is not None:
            return Price(op.duration_ns, 1)
        return Price(max(collective_ns(op, lane.device, payload_bytes), floor_ns), 1, payload_bytes > 0)
    blocks = _blocks(op, lane, moved_bytes)
    sized = blocks is not None
    if blocks is None:
        blocks = 1 if lane.work in ("control", "host", "image", "copy") else lane.blocks
    held = min(blocks, lane.blocks)
    if op.duration_ns is not None:
        return Price(op.duration_ns, held, sized)
    traffic = _quotient(moved_bytes, lane.traffic)
    if lane.block_traffic is not None:
        traffic = max(traffic, _quotient(moved_bytes, lane.block_traffic, held))
    return Price(max(_arithmetic_ns(op, lane, blocks, held), traffic, floor_ns), held, sized)


def collective_ns(op: Op, device: Device, payload_bytes: int) -> int:
    """Time of a collective over the link of a device, of latency alpha and bandwidth beta, by the alpha-beta model.

    Rings and long-message algorithms of Thakur, Rabenseifner and Gropp, Optimization of Collective Communication
    Operations in MPICH (2005), sections 4.1 to 4.5, for p ranks and a full buffer of S bytes, arithmetic left out:

    - all-gather, reduce-scatter, all-to-all: (p - 1) alpha + (p - 1) / p S / beta
    - all-reduce: 2 (p - 1) alpha + 2 (p - 1) / p S / beta
    - broadcast, reduce: (p - 1 + ceil(lg p)) alpha + 2 (p - 1) / p S / beta
    - gather, scatter: ceil(lg p) alpha + (p - 1) / p S / beta
    - send, receive, permute: alpha + S / beta; barrier: ceil(lg p) alpha

    Raises ProblemError for a collective that is not in this list, or that does not say how many ranks take part.
    """
    name, p, link = plain(op.kind), op.participants, device.link
    algorithm = next((a for a in _ALGORITHMS if a in name), None)
    if algorithm is None:
        raise ProblemError(
            f"op {op.name!r} on device {device.name!r}: no model prices a collective of kind {op.kind!r}; "
            f"its kind must contain one of {', '.join(_ALGORITHMS)}, or give it a duration_ns"
        )
    if algorithm in _POINT_TO_POINT:
        return link.latency_ns + _quotient(payload_bytes, _rate(link.bytes_per_ns) or (1, 1))
    if p < 1:
        raise ProblemError(
            f"op {op.name!r} ({op.kind}) on device {device.name!r}: a collective is priced by its number of ranks; "
            "give it participants and payload_bytes, or a duration_ns"
        )
    rounds = (p - 1).bit_length()  # ceil(lg p)
    steps, passes = {
        "allreduce": (2 * (p - 1), 2),
        "broadcast": (p - 1 + rounds, 2),
        "reduce": (p - 1 + rounds, 2),
        "gather": (rounds, 1),
        "scatter": (rounds, 1),
        "barrier": (rounds, 0),
    }.get(algorithm, (p - 1, 1))
    beta, scale = _rate(link.bytes_per_ns) or (1, 1)
    return steps * link.latency_ns + _quotient(passes * (p - 1) * payload_bytes, (beta, scale), p)


_POINT_TO_POINT = ("send", "recv", "receive", "permute")
# The longer names stand first: a reduce-scatter is neither a reduce nor a scatter.
_ALGORITHMS = (
    "allreduce", "reducescatter", "allgather", "alltoall", "broadcast", "barrier", "reduce", "gather", "scatter",
    *_POINT_TO_POINT,
)  # fmt: skip


def _blocks(op: Op, lane: Lane, moved_bytes: int) -> int | None:
    shape = op.matmul
    if shape is not None and lane.work in ("matrix", "attention"):
        columns = 1 if lane.work == "attention" else -(-shape.n // lane.tile[1])
        return shape.batch * -(-shape.m // lane.tile[0]) * columns
    return -(-moved_bytes // lane.block_bytes) if moved_bytes else None


def _arithmetic_ns(op: Op, lane: Lane, blocks: int, held: int) -> int:
    if lane.flops is None:
        return 0
    shape, waves = op.matmul, -(-blocks // held)
    if shape is not None and lane.work == "matrix":
        rows, columns = lane.tile
        return _quotient(waves * 2 * rows * columns * shape.k, lane.flops)
    if shape is not None and lane.work == "attention":
        flops = op.flops or 4 * shape.batch * shape.m * shape.n * shape.k
        return _quotient(waves * flops, lane.flops, blocks)
    return _quotient(op.flops, lane.flops, held)


@cache
def _rate(per_ns: float) -> Rate | None:
    if not per_ns:
        return None
    exact = Fraction(repr(per_ns))
    return exact.numerator, exact.denominator


def _quotient(amount: int, rate: Rate, shares: int = 1) -> int:
    """ceil(amount / (rate x shares)), exactly."""
    return -(-amount * rate[1] // (rate[0] * shares))
