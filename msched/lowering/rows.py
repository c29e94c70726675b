"""Which ops can be cut along rows, and how many rows they have."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from msched.graph import Op, OpGraph, Rows, Tensor
from msched.lowering.placement import plain

# In the spelling of `plain`: what computes every element from the same element of its inputs,
_ELEMENT_WISE = """
    abs add addn addv2 biasadd cast ceil celu clip divide div elu erf exp fastgelu floor gelu hardsigmoid hardswish
    leakyrelu log logistic mish mul multiply muls neg pow power prelu quickgelu realdiv reciprocal relu relu6 round
    rsqrt selu sigmoid silu softplus sqrt square sub subtract swish tanh"""
# and what computes every row from the same row: norms over channels, and rotations of a head.
_NORMS = "addrmsnorm addlayernorm layernorm layernormalization layernormv3 rmsnorm rotaryembedding rotarymul"
_ROW_WISE = frozenset(f"{_ELEMENT_WISE} {_NORMS}".split())
_ALL_REDUCE = "allreduce"
_LINEAR = frozenset(("matmul", "matmulv2", "matmulv3", "gemm", "linear", "fullyconnection", "addmm"))


def rows_of(graph: OpGraph) -> list[Rows | None]:
    """The rows of each op, None where it cannot be cut.

    What the ops say; in a graph in which none says anything, what their kinds and sizes allow. There the product of
    data with a weight has the rows of its shape, and an element-wise op as many as its output has bytes, the finest
    that can be meant.
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
    return [_inferred(op, reads[v], written[v]) for v, op in enumerate(graph.ops)]


def _inferred(op: Op, reads: Sequence[Tensor], written: int) -> Rows | None:
    kind = _known(op.kind)
    data = [t.bytes for t in reads if t.producer is not None]
    if kind in _LINEAR and op.matmul is not None:
        # one operand is data, the other a weight that every row needs; that the data stands on the left, so that a row
        # of it makes a row of the output, shows in its size unless the output is square
        shape = op.matmul
        left = len(data) == 1 and len(reads) > 1 and shape.m != shape.n and data[0] * shape.n == written * shape.k
        return Rows(1, shape.batch * shape.m) if written and left else None
    if (kind in _ROW_WISE or kind.endswith(_ALL_REDUCE)) and written and data and set(data) == {written}:
        return Rows(1, written)
    return None


@cache
def _known(kind: str) -> str:
    """A kind, or that dotted part of it which the tables know: `com.microsoft.Gelu`, `aten.add.Tensor`."""
    names = [plain(name) for name in (kind, *reversed(kind.split(".")))]
    return next((n for n in names if n in _ROW_WISE or n in _LINEAR or n.endswith(_ALL_REDUCE)), names[0])
