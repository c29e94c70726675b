"""Random layered graphs: the usual test bed of list scheduling, with engines, partial demands and tensors.

Layer by layer as in Tobita and Kasahara, A standard task graph set, Journal of Scheduling 5 (2002), section 2
("layrpred"): every op behind the first layer has a predecessor in the layer before it, and more by chance.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from msched.arrays import Int64Array, compressed_rows
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
_SPREAD = 0.8  # standard deviation of the logarithm of a duration
_SHORTEST_NS = 1000


def build(
    ops: int = 100,
    width: int = 8,
    seed: int = 0,
    edge_probability: float = 0.2,
    mix: Mapping[str, float] | None = None,
    median_ns: int = 50_000,
) -> OpGraph:
    """A graph of `ops` ops in layers of 1 to 2 `width` - 1 ops, the same for the same arguments.

    edge_probability: that an op depends on a given op of the layer before it besides the one that it always depends on;
        one such edge in four comes from the layer before that.
    mix: weight of each class of work (matrix, vector, control, image, collective); those left out do not occur.
    median_ns: of the measured durations, which are log-normal.

    Matrix products have 1 to 32 blocks of 128 x 256, vector ops 1 to 64 of 32 KiB and control ops 1 to 4, so that most
    of them leave cores free. Every op writes one tensor; those that nobody reads are outputs. All collectives share one
    communicator.

    Raises OptionError for a figure out of range or a class of work that is none.
    """
    at_least(0, seed=seed)
    at_least(1, ops=ops, width=width, median_ns=median_ns)
    if not isinstance(edge_probability, int | float) or not 0 <= edge_probability <= 1:
        raise OptionError(f"edge_probability is {edge_probability!r}; a number from 0 to 1 is needed")
    works, share = _shares(mix)
    rng = np.random.Generator(np.random.PCG64(seed))
    edges = _edges(rng, ops, width, edge_probability)
    work = rng.choice(len(works), ops, p=share)
    nodes = _ops(rng, [works[k] for k in work.tolist()], median_ns)
    start, entry = compressed_rows(edges[:, 0], ops)
    after, ends = edges[entry, 1].tolist(), start.tolist()
    tensors = tuple(
        Tensor(
            name=op.name,
            bytes=op.bytes_written,
            producer=index,
            consumers=tuple(after[ends[index] : ends[index + 1]]),
            output=ends[index] == ends[index + 1],
        )
        for index, op in enumerate(nodes)
    )
    return OpGraph(f"random_layered_{ops}", tuple(nodes), tensors)


def _shares(mix: Mapping[str, float] | None) -> tuple[list[str], np.ndarray]:
    weights = _MIX if mix is None else mix
    if not isinstance(weights, Mapping) or (unknown := [w for w in weights if w not in _KINDS]):
        what = f"has no class {unknown[0]!r}" if isinstance(weights, Mapping) else f"is {mix!r}"
        raise OptionError(f"mix {what}; weights of these are needed: {', '.join(_KINDS)}")
    if any(not isinstance(w, int | float) or not 0 <= w < 1e9 for w in weights.values()) or not sum(weights.values()):
        raise OptionError(f"mix is {dict(weights)!r}; the weights must be numbers from 0, at least one of them above 0")
    share = np.array(list(weights.values()), np.float64)
    return list(weights), share / share.sum()


def _edges(rng: np.random.Generator, n: int, width: int, probability: float) -> Int64Array:
    """Pairs (before, after), each once, sorted: shape (m, 2)."""
    first = np.cumsum(np.concatenate([[0], rng.integers(1, 2 * width, n)]))  # first op of each layer
    layer = np.searchsorted(first, np.arange(n), side="right") - 1
    later = np.flatnonzero(layer > 0)
    if later.size == 0:
        return np.zeros((0, 2), np.int64)
    size = np.diff(first)
    extra = np.repeat(later, rng.binomial(size[layer[later] - 1], probability))
    back = np.minimum(np.where(rng.random(extra.size) < 0.25, 2, 1), layer[extra])
    after = np.concatenate([later, extra])
    source = np.concatenate([layer[later] - 1, layer[extra] - back])
    before = first[source] + rng.integers(0, size[source])
    key = np.unique(before * n + after)
    return np.stack(np.divmod(key, n), axis=1).astype(np.int64)


def _ops(rng: np.random.Generator, works: list[str], median_ns: int) -> list[Op]:
    n = len(works)
    duration = np.maximum(rng.lognormal(np.log(median_ns), _SPREAD, n), _SHORTEST_NS).astype(np.int64).tolist()
    rows, columns = rng.integers(1, 9, n).tolist(), rng.integers(1, 5, n).tolist()
    depth, blocks = rng.choice(_DEPTHS, n).tolist(), rng.integers(0, 64, n).tolist()
    result = []
    for index, work in enumerate(works):
        name, kind, time = f"op{index}", _KINDS[work], duration[index]
        if work == "matrix":
            m, n_, k = rows[index] * _TILE[0], columns[index] * _TILE[1], depth[index]
            op = Op(
                name=name,
                kind=kind,
                flops=2 * m * n_ * k,
                bytes_read=2 * k * (m + n_),
                bytes_written=2 * m * n_,
                duration_ns=time,
                matmul=Matmul(1, m, n_, k),
            )
        else:
            most = 4 if work == "control" else 64
            half = (1 + blocks[index] % most) * _BLOCK_BYTES // 2
            ranks = {"participants": _RANKS, "payload_bytes": half} if work == "collective" else {}
            op = Op(
                name=name,
                kind=kind,
                flops=half // 2 if work == "vector" else 0,
                bytes_read=half,
                bytes_written=half,
                duration_ns=time,
                communicator="world" if ranks else None,
                **ranks,
            )
        result.append(op)
    return result
