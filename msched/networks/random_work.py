"""What the random families share: ops of five classes of work that leave units free, and the graph that ties them.

The families differ in their dependencies alone, so that what a solver gains on one and not on another is due to these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from msched.arrays import Int64Array, distinct
from msched.errors import OptionError
from msched.graph import Matmul, Op, OpGraph, Tensor
from msched.networks.assembly import at_least

_KINDS = {
    "matrix": "MatMul",
    "vector": "Add",
    "control": "NonMaxSuppression",
    "image": "ResizeBilinear",
    "collective": "HcomAllReduce",
}
_MIX = {"matrix": 0.35, "vector": 0.4, "control": 0.1, "image": 0.05, "collective": 0.1}
_TILE = (128, 256)  # the block of a matrix product that one core takes, as on the shipped Ascend parts
_BLOCK_BYTES = 32768  # the traffic that one vector core takes at a time
_DEPTHS = (64, 128, 256, 512)  # inner dimension of a matrix product
_RANKS = 8
_SHORTEST_NS = 1000
_WIDEST_SPREAD = 3  # durations stay far inside int64 even at the longest median


def generator(seed: int) -> np.random.Generator:
    """The source of all that is random in a graph. Raises OptionError for a seed that is no whole number from 0."""
    at_least(0, seed=seed)
    return np.random.Generator(np.random.PCG64(seed))


def number(option: str, value: float, least: float, most: float) -> None:
    """Raise OptionError unless `value` is a number from `least` to `most`."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
        raise OptionError(f"{option} is {value!r}; a number from {least} to {most} is needed")


def flag(option: str, value: bool) -> None:
    """Raise OptionError unless `value` is true or false."""
    if not isinstance(value, bool):
        raise OptionError(f"{option} is {value!r}; true or false is needed")


def draw(
    rng: np.random.Generator, count: int, mix: Mapping[str, float] | None, median_ns: int, spread: float
) -> list[Op]:
    """`count` ops named op0, op1, ..., each of one class of work.

    mix: weight of each class of work (matrix, vector, control, image, collective); those left out do not occur. None
        for 35 % matrix, 40 % vector, 10 % control, 5 % image and 10 % collective work.
    median_ns, spread: of the measured durations, which are log-normal: their median, and the standard deviation of
        their logarithm, from 0 (all equal) to 3. None is shorter than 1 us.

    Matrix products have 1 to 32 blocks of 128 x 256, vector ops 1 to 64 of 32 KiB and control ops 1 to 4, so that most
    of them leave cores free. All collectives share one communicator of eight ranks.

    Raises OptionError for a figure out of range or a class of work that is none.
    """
    at_least(1, median_ns=median_ns)
    number("spread", spread, 0, _WIDEST_SPREAD)
    works, share = _shares(mix)
    which = rng.choice(len(works), count, p=share).tolist()
    drawn = rng.lognormal(np.log(median_ns), spread, count)
    if not spread:  # exp(log(median)) need not be the median
        drawn = np.full(count, median_ns)
    duration = np.maximum(drawn, _SHORTEST_NS).astype(np.int64).tolist()
    rows, columns = rng.integers(1, 9, count).tolist(), rng.integers(1, 5, count).tolist()
    depth, blocks = rng.choice(_DEPTHS, count).tolist(), rng.integers(0, 64, count).tolist()
    result = []
    for index in range(count):
        work, name = works[which[index]], f"op{index}"
        if work == "matrix":
            result.append(_product(name, duration[index], rows[index], columns[index], depth[index]))
        else:
            result.append(_other(name, duration[index], work, blocks[index]))
    return result


def tied(
    name: str, ops: Sequence[Op], before: Int64Array, after: Int64Array, control: Sequence[tuple[int, int]] = ()
) -> OpGraph:
    """The graph in which op `after[k]` reads the output of op `before[k]`, shapes (m,); a pair given twice counts once.

    Every op writes one tensor; those that nobody reads are outputs. `control` are dependencies that carry no data.
    """
    n = len(ops)
    producer, consumer = np.divmod(distinct(before * n + after), n)
    first, readers = np.searchsorted(producer, np.arange(n + 1)).tolist(), consumer.tolist()
    tensors = tuple(
        Tensor(
            name=op.name,
            bytes=op.bytes_written,
            producer=index,
            consumers=tuple(readers[first[index] : first[index + 1]]),
            output=first[index] == first[index + 1],
        )
        for index, op in enumerate(ops)
    )
    return OpGraph(name, tuple(ops), tensors, tuple(control))


def _shares(mix: Mapping[str, float] | None) -> tuple[list[str], np.ndarray]:
    weights = _MIX if mix is None else mix
    if not isinstance(weights, Mapping) or (unknown := [w for w in weights if w not in _KINDS]):
        what = f"has no class {unknown[0]!r}" if isinstance(weights, Mapping) else f"is {mix!r}"
        raise OptionError(f"mix {what}; weights of these are needed: {', '.join(_KINDS)}")
    if any(not isinstance(w, int | float) or not 0 <= w < 1e9 for w in weights.values()) or not sum(weights.values()):
        raise OptionError(f"mix is {dict(weights)!r}; the weights must be numbers from 0, at least one of them above 0")
    share = np.array(list(weights.values()), np.float64)
    return list(weights), share / share.sum()


def _product(name: str, duration_ns: int, rows: int, columns: int, k: int) -> Op:
    m, n = rows * _TILE[0], columns * _TILE[1]
    return Op(
        name=name,
        kind=_KINDS["matrix"],
        flops=2 * m * n * k,
        bytes_read=2 * k * (m + n),
        bytes_written=2 * m * n,
        duration_ns=duration_ns,
        matmul=Matmul(1, m, n, k),
    )


def _other(name: str, duration_ns: int, work: str, blocks: int) -> Op:
    half = (1 + blocks % (4 if work == "control" else 64)) * _BLOCK_BYTES // 2
    collective = work == "collective"
    return Op(
        name=name,
        kind=_KINDS[work],
        flops=half // 2 if work == "vector" else 0,
        bytes_read=half,
        bytes_written=half,
        duration_ns=duration_ns,
        participants=_RANKS if collective else 0,
        payload_bytes=half if collective else 0,
        communicator="world" if collective else None,
    )
