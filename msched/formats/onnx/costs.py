"""What an ONNX operator computes and moves, from the shapes of its tensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from msched.formats.onnx.model import Shape, Value
from msched.graph import Matmul

# These copy or rename and compute nothing.
# fmt: off
_MOVES = frozenset((
    "Cast", "CastLike", "Concat", "Constant", "ConstantOfShape", "DepthToSpace", "Expand", "Flatten", "Gather",
    "GatherElements", "GatherND", "Identity", "Pad", "Reshape", "ScatterElements", "ScatterND", "Shape", "Size",
    "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
))
# fmt: on
# Of their first input these read no more than they write.
_READS_PART = frozenset({"Gather", "GatherElements", "GatherND", "Slice"})
_READS_NOTHING = frozenset({"Shape", "Size"})
_POOLS = frozenset({"MaxPool", "AveragePool", "LpPool"})
_RECURRENT = frozenset({"LSTM", "GRU", "RNN"})


def arithmetic(node: Any, inputs: Sequence[Value], outputs: Sequence[Value]) -> tuple[int, Matmul | None]:
    """Floating point operations, and the matrix product that the operator is, if it is one.

    Two operations a multiply-add (a convolution as implicit GEMM, its bias not counted; a recurrent layer all its
    steps), one for each element of a kernel window in pooling, none for data movement, else one an element of the
    largest tensor. Where a shape is not known, 0.
    """
    if product := _matmul(node, [v.shape for v in inputs], [v.shape for v in outputs]):
        return 2 * product.batch * product.m * product.n * product.k, product
    standard = node.domain in ("", "ai.onnx")
    if standard and node.op_type in _MOVES:
        return 0, None
    if standard and node.op_type in _RECURRENT and len(inputs) > 2:
        steps = prod((inputs[0].shape or (0,))[:2])
        return 2 * steps * sum(prod(v.shape or (0,)) for v in inputs[1:3]), None
    elements = [prod(v.shape) for v in (*inputs, *outputs) if v.shape is not None]
    if standard and node.op_type in _POOLS and outputs and outputs[0].shape is not None:
        return prod(outputs[0].shape) * prod(attribute(node, "kernel_shape", [1])), None
    return max(elements, default=0), None


def traffic(node: Any, inputs: dict[str, Value], outputs: dict[str, Value]) -> tuple[int, int]:
    """Bytes read and written; an input that is used twice is read once."""
    written = sum(v.bytes for v in outputs.values())
    if node.op_type in _READS_NOTHING:
        return 0, written
    read = sum(v.bytes for v in inputs.values())
    if node.op_type in _READS_PART and node.input and node.input[0] in inputs:
        whole = inputs[node.input[0]].bytes
        read += min(written, whole) - whole
    return read, written


def attribute(node: Any, name: str, default: Any) -> Any:
    """The value of an integer, list of integers or text attribute, of the type of its default."""
    for a in node.attribute:
        if a.name == name:
            if isinstance(default, int):
                return a.i
            return list(a.ints) if isinstance(default, list) else a.s.decode(errors="replace")
    return default


def _matmul(node: Any, inputs: list[Shape | None], outputs: list[Shape | None]) -> Matmul | None:
    if node.domain not in ("", "ai.onnx") or node.op_type not in _PRODUCTS:
        return None
    shape_of, *operands = _PRODUCTS[node.op_type]
    if not outputs or outputs[0] is None or len(inputs) <= max(operands):
        return None
    left, right = (inputs[i] for i in operands)
    if not left or not right:
        return None
    sizes = shape_of(node, left, right, outputs[0])
    return Matmul(*sizes) if sizes is not None and min(sizes) >= 1 else None


Sizes = tuple[int, int, int, int]  # batch, m, n, k


def _convolution(node: Any, data: Shape, weight: Shape, out: Shape) -> Sizes | None:
    group = attribute(node, "group", 1)
    if len(weight) < 3 or len(out) != len(weight) or group < 1 or weight[0] % group:
        return None
    return group, out[0] * prod(out[2:]), weight[0] // group, prod(weight[1:])


def _transposed_convolution(node: Any, data: Shape, weight: Shape, out: Shape) -> Sizes | None:
    group = attribute(node, "group", 1)
    if len(weight) < 3 or len(data) != len(weight) or group < 1 or weight[0] % group:
        return None
    return group, data[0] * prod(data[2:]), prod(weight[1:]), weight[0] // group


def _gemm(node: Any, left: Shape, right: Shape, out: Shape) -> Sizes | None:
    if len(left) != 2 or len(right) != 2:
        return None
    m, k = left[::-1] if attribute(node, "transA", 0) else left
    return 1, m, right[0] if attribute(node, "transB", 0) else right[1], k


def _product(node: Any, left: Shape, right: Shape, out: Shape) -> Sizes | None:
    k, n = left[-1], right[-1] if len(right) > 1 else 1
    if len(right) <= 2:  # every row of a batch meets the same matrix: one tall product
        return 1, prod(left[:-1]), n, k
    m = left[-2] if len(left) > 1 else 1
    return prod(out) // max(m * n, 1), m, n, k


def _einsum(node: Any, left: Shape, right: Shape, out: Shape) -> Sizes | None:
    terms, arrow, result = attribute(node, "equation", "").replace(" ", "").partition("->")
    first, comma, second = terms.partition(",")
    if "." in terms or "," in second or not comma or len(first) != len(left) or len(second) != len(right):
        return None
    size = dict(zip(first, left, strict=True)) | dict(zip(second, right, strict=True))
    if not arrow:
        result = "".join(label for label, count in Counter(first + second).items() if count == 1)

    def extent(keep: Callable[[str], bool]) -> int:
        return prod(length for label, length in size.items() if keep(label))

    return (
        extent(lambda x: x in first and x in second and x in result),
        extent(lambda x: x in first and x not in second and x in result),
        extent(lambda x: x in second and x not in first and x in result),
        extent(lambda x: x not in result),
    )


_PRODUCTS: dict[str, tuple[Callable[[Any, Shape, Shape, Shape], Sizes | None], int, int]] = {
    "Conv": (_convolution, 0, 1),
    "ConvInteger": (_convolution, 0, 1),
    "ConvTranspose": (_transposed_convolution, 0, 1),
    "DeformConv": (_convolution, 0, 1),
    "QLinearConv": (_convolution, 0, 3),
    "Gemm": (_gemm, 0, 1),
    "MatMul": (_product, 0, 1),
    "MatMulInteger": (_product, 0, 1),
    "QLinearMatMul": (_product, 0, 3),
    "Einsum": (_einsum, 0, 1),
}
