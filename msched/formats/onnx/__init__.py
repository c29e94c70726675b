"""ONNX models (protobuf): a node becomes an op with flops and bytes, a weight or constant a persistent tensor.

Source of the format and of the operators: ONNX IR and operator specifications, onnx.ai (IR version 3 and later).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from msched.errors import FormatError
from msched.formats.onnx.costs import arithmetic, traffic
from msched.formats.onnx.model import Dimensions, Value, bodies, load, nodes_within, some
from msched.graph import Op, OpGraph, Tensor

WHAT = "an ONNX model"
LARGEST_BYTES = 2**31 - 1  # what protobuf can hold

_VARINT, _BLOCK = 0, 2
# Fields of ModelProto and how each is coded on the wire.
_MODEL_FIELDS = {1: _VARINT, 5: _VARINT} | dict.fromkeys((2, 3, 4, 6, 7, 8, 14, 20, 25, 26), _BLOCK)
_RANDOM = frozenset(
    ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial")
)


def recognises(head: bytes) -> bool:
    """Fields of a ModelProto as far as `head` goes, its IR version, graph or operator set among them."""
    at, seen = 0, set()
    while at < len(head):
        key, at = _varint(head, at)
        number, wire = key >> 3, key & 7
        if _MODEL_FIELDS.get(number) != wire:
            return False
        seen.add(number)
        value, at = _varint(head, at)
        at += value if wire == _BLOCK else 0
    return bool(seen & {1, 7, 8})


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of base 128, low digits first, and where it ends."""
    value = shift = 0
    while at < len(data) and shift < 64:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            break
    return value, at


def parse(data: bytes, name: str, *, dimensions: Mapping[str, int] | None = None) -> OpGraph:
    """The main graph of a model, one op a node. Weights in other files are not looked at: their shapes suffice.

    Nodes that compute constants (weights stored as Constant or ConstantOfShape, and all that follows from constants
    alone) fold into persistent tensors. An If, Loop or Scan stays one op that reads what its body captures.

    dimensions: sizes of symbolic dimensions, by symbol or as `tensor[axis]`; the others are 1, with a warning.

    Raises FormatError that names the node, OptionError for a dimension that the model does not have.
    """
    warnings: list[str] = []
    bound = Dimensions(dimensions if dimensions is not None else {})
    graph, values = load(data, bound, warnings)
    warnings += bound.warnings()
    _check_single_assignment(graph)
    constant = _constants(graph)
    nodes = [node for node in graph.node if not any(map(constant.__contains__, node.output))]
    reads = [_reads(node) for node in nodes]
    names = _names(nodes)
    ops = [_op(node, read, label, values) for node, read, label in zip(nodes, reads, names, strict=True)]
    unknown = [t for node, read in zip(nodes, reads, strict=True) for t in (*read, *node.output) if t]
    if shapeless := [t for t in dict.fromkeys(unknown) if values.get(t, Value()).shape is None]:
        warnings.append(f"shape not known, counted as 0 bytes: {some(shapeless)}")
    if control := [f"{label} ({node.op_type})" for node, label in zip(nodes, names, strict=True) if bodies(node)]:
        warnings.append(f"control flow kept as one op, its body is neither scheduled nor costed: {some(control)}")
    return OpGraph(name, tuple(ops), tuple(_tensors(graph, nodes, reads, names, values)), warnings=tuple(warnings))


def _weights(graph: Any) -> list[str]:
    return [*(t.name for t in graph.initializer), *(t.values.name for t in graph.sparse_initializer)]


def _check_single_assignment(graph: Any) -> None:
    """Every tensor has one origin, and every tensor that is read has one at all."""
    origin = dict.fromkeys([*_weights(graph), *(v.name for v in graph.input)], "an input or initializer")
    for index, node in enumerate(graph.node):
        for output in filter(None, node.output):
            if output in origin:
                raise FormatError(
                    f"node {_label(node, index)!r} writes {output!r}, already written by {origin[output]}"
                )
            origin[output] = f"node {_label(node, index)!r}"
    for index, node in enumerate(graph.node):
        for tensor in _reads(node):
            if tensor not in origin:
                raise FormatError(f"node {_label(node, index)!r} reads {tensor!r}, which nothing in the graph produces")


def _reads(node: Any) -> list[str]:
    """Tensors that a node reads, each once: its inputs, then what its sub-graphs capture from outside."""
    return list(dict.fromkeys([*filter(None, node.input), *_captured(node)]))


def _captured(node: Any) -> list[str]:
    result: dict[str, None] = {}
    for body in bodies(node):
        local = {*_weights(body), *(v.name for v in body.input), *(o for n in body.node for o in n.output)}
        wanted = [*(t for inner in body.node for t in _reads(inner)), *(v.name for v in body.output)]
        result |= dict.fromkeys(t for t in wanted if t not in local)
    return list(result)


def _constants(graph: Any) -> set[str]:
    """Names of the tensors that do not depend on a network input: initializers, and what is computed from them."""
    known = set(_weights(graph))
    for node in graph.node:
        pure = node.domain in ("", "ai.onnx") and node.op_type not in _RANDOM and not bodies(node)
        inputs = [*filter(None, node.input)]
        if pure and known.issuperset(inputs) and (inputs or node.op_type == "Constant"):
            known |= set(filter(None, node.output))
    return known


def _label(node: Any, index: int) -> str:
    return str(node.name or next(filter(None, node.output), f"{node.op_type}_{index}"))


def _names(nodes: list[Any]) -> list[str]:
    """Node names, else those of first outputs; one that is already taken gets a number."""
    wanted = [_label(node, index) for index, node in enumerate(nodes)]
    taken = set(wanted)
    seen: Counter[str] = Counter()
    result = []
    for label in wanted:
        seen[label] += 1
        unique = label
        while seen[label] > 1 and unique in taken:
            unique = f"{label}#{seen[label]}"
            seen[label] += unique in taken
        taken.add(unique)
        result.append(unique)
    return result


def _op(node: Any, reads: list[str], name: str, values: Mapping[str, Value]) -> Op:
    inputs = [values.get(t, Value()) for t in node.input]
    outputs = [values.get(t, Value()) for t in node.output]
    flops, matmul = (0, None) if bodies(node) else arithmetic(node, inputs, outputs)
    read, written = traffic(
        node, {t: values.get(t, Value()) for t in reads}, {t: values.get(t, Value()) for t in node.output if t}
    )
    kind = node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"
    return Op(name=name, kind=kind, flops=flops, bytes_read=read, bytes_written=written, matmul=matmul)


def _tensors(
    graph: Any, nodes: list[Any], reads: list[list[str]], names: list[str], values: Mapping[str, Value]
) -> Iterable[Tensor]:
    """Network inputs, then constants that are used, then what each op writes."""
    producer = {output: index for index, node in enumerate(nodes) for output in filter(None, node.output)}
    consumers: dict[str, list[int]] = {}
    for index, read in enumerate(reads):
        for tensor in read:
            consumers.setdefault(tensor, []).append(index)
    outputs = {v.name: None for v in graph.output}
    weights = set(_weights(graph))
    inputs = [v.name for v in graph.input if v.name not in weights]
    sources = dict.fromkeys([*inputs, *(t for t in (*consumers, *outputs) if t not in producer)])
    for tensor in (*sources, *producer):
        yield Tensor(
            name=tensor,
            bytes=values.get(tensor, Value()).bytes,
            producer=producer.get(tensor),
            consumers=tuple(consumers.get(tensor, ())),
            persistent=tensor not in producer,
            output=tensor in outputs,
        )
    for index, node in enumerate(nodes):
        if held := sum(_held_bytes(body) for body in bodies(node)):
            yield Tensor(name=f"{names[index]}.body", bytes=held, consumers=(index,), persistent=True)


def _held_bytes(body: Any) -> int:
    """Bytes of the weights that stand inside a sub-graph, at any depth."""
    inner = [g for node in nodes_within(body.node) for g in bodies(node)]
    constants = [a.t for node in nodes_within(body.node) for a in node.attribute if a.HasField("t")]
    return sum(t.ByteSize() for t in (*(t for graph in (body, *inner) for t in graph.initializer), *constants))
