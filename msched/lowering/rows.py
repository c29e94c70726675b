"""Which ops can be cut along rows, and how many rows they have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from math import gcd
from typing import Literal

from msched.graph import Op, OpGraph, Rows, Tensor
from msched.lowering.placement import plain

Habit = Literal["product", "element", "norm"]

# In the spelling of `plain`: what computes every element from the same element of its inputs,
_ELEMENTS = """
    abs add addn addv2 biasadd cast ceil celu clip divide div elu erf exp fastgelu floor gelu hardsigmoid hardswish
    leakyrelu log logistic mish mul multiply muls neg pow power prelu quickgelu realdiv reciprocal relu relu6 round
    rsqrt selu sigmoid silu softplus sqrt square sub subtract swish tanh"""
_ELEMENT_WISE = frozenset(_ELEMENTS.split())
# and what computes every row from the same row: norms over channels, and rotations of a head.
_NORMS = frozenset(("addrmsnorm", "addlayernorm", "layernorm", "layernormalization", "layernormv3", "rmsnorm"))
_ROTATIONS = frozenset(("rotaryembedding", "rotarymul"))
_ALL_REDUCE = "allreduce"
_LINEAR = frozenset(("matmul", "matmulv2", "matmulv3", "gemm", "linear", "fullyconnection", "addmm"))
_KNOWN = _ELEMENT_WISE | _NORMS | _ROTATIONS | _LINEAR
_WIDER = 2  # the scale of a norm may be of twice the precision of its data


def rows_of(graph: OpGraph) -> list[Rows | None]:
    """The rows of each op, None where it cannot be cut.

    What the ops say. In a graph in which none says anything, what their kinds and sizes allow: products of data with a
    weight have the rows of their shape; element-wise ops and all-reduces whose data inputs are as large as their output
    have those of the products that they are tied to through others of these ops, so that all of them are cut at the
    same rows (of products that differ, at those that they have in common), and where there is no product as many rows
    as bytes. Norms and rotations, which mix the channels of a token, have the rows of the products too; without a
    product nothing tells where a token ends, and so too where the scale of a norm is larger than a row.
    """
    if any(op.rows is not None for op in graph.ops):
        return [op.rows for op in graph.ops]
    reads: list[list[Tensor]] = [[] for _ in graph.ops]
    written = [0] * len(graph.ops)
    for tensor in graph.tensors:
        if tensor.producer is not None:
            written[tensor.producer] += tensor.bytes
        for v in dict.fromkeys(tensor.consumers):
            reads[v].append(tensor)
    habits = [_habit(op, reads[v], written[v]) for v, op in enumerate(graph.ops)]
    data = ((t.producer, v) for t in graph.tensors if t.producer is not None for v in t.consumers)
    region = regions(len(habits), ((u, v) for u, v in data if habits[u] and habits[v]))
    common = [0] * len(habits)  # rows of the products of each region; 0 where it has none
    for op, habit, at in zip(graph.ops, habits, region, strict=True):
        if habit == "product" and op.matmul is not None:
            common[at] = gcd(common[at], op.matmul.batch * op.matmul.m)
    result: list[Rows | None] = []
    for v, habit in enumerate(habits):
        rows = common[region[v]]
        if habit is None or (habit == "norm" and not _holds_channels(reads[v], written[v], rows)):
            result.append(None)
        else:
            result.append(Rows(1, rows or written[v]))
    return result


def regions(n: int, ties: Iterable[tuple[int, int]]) -> list[int]:
    """For each of n ops the lowest one that a chain of ties, in any direction, leads to."""
    parent = list(range(n))

    def root(v: int) -> int:
        while parent[v] != v:
            parent[v] = parent[parent[v]]
            v = parent[v]
        return v

    for u, v in ties:
        low, high = sorted((root(u), root(v)))
        parent[high] = low
    return [root(v) for v in range(n)]


def _habit(op: Op, reads: Sequence[Tensor], written: int) -> Habit | None:
    """How an op works row by row, None where it is not known to."""
    kind = _known(op.kind)
    data = [t.bytes for t in reads if t.producer is not None]
    if kind in _LINEAR and op.matmul is not None:
        # one operand is data, the other a weight that every row needs; that the data stands on the left, so that a row
        # of it makes a row of the output, shows in its size unless the output is square
        shape = op.matmul
        left = len(data) == 1 and len(reads) > 1 and shape.m != shape.n and data[0] * shape.n == written * shape.k
        return "product" if written and left else None
    if not written or not data or set(data) != {written}:
        return None
    if kind in _NORMS or kind in _ROTATIONS:
        return "norm"
    return "element" if kind in _ELEMENT_WISE or kind.endswith(_ALL_REDUCE) else None


def _holds_channels(reads: Sequence[Tensor], written: int, rows: int) -> bool:
    """Whether each of so many rows of a norm holds all channels that are normalised together, as far as can be seen."""
    scale = max((t.bytes for t in reads if t.producer is None and t.bytes != written), default=0)
    return rows > 0 and scale * rows <= _WIDER * written


@cache
def _known(kind: str) -> str:
    """A kind, or that dotted part of it which the tables know: `com.microsoft.Gelu`, `aten.add.Tensor`."""
    names = [plain(name) for name in (kind, *reversed(kind.split(".")))]
    return next((n for n in names if n in _KNOWN or n.endswith(_ALL_REDUCE)), names[0])
