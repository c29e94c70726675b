"""PipeDream profiles (`graph.txt`): layers with measured times, activation and parameter bytes, and their edges.

Source of the format: PipeDream's profiler (Narayanan et al., SOSP 2019, section 3.1). A line is a layer,
`node4 -- Conv2d(3, 64) -- forward_compute_time=1.5, backward_compute_time=2.5, activation_size=4.0,
parameter_size=8.0` (milliseconds, bytes; an activation may be a tuple, `[4.0; 4.0]`), or, indented, an edge
`node4 -- node5`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

import msgspec

from msched.errors import FormatError, OptionError
from msched.graph import Op, OpGraph, Tensor

WHAT = "a PipeDream profile"
LARGEST_BYTES = 2**27

_FIGURE = r"[0-9]{1,20}(?:\.[0-9]{1,20})?"
_LAYER = re.compile(
    r"(?P<id>node[0-9]+) -- (?P<layer>.+) -- "
    rf"forward_compute_time=(?P<forward>{_FIGURE}), backward_compute_time=(?P<backward>{_FIGURE}), "
    rf'activation_size="?(?P<activation>{_FIGURE}|\[{_FIGURE}(?:; {_FIGURE})*\])"?, '
    rf"parameter_size=(?P<weight>{_FIGURE})"
    r"(?: -- stage_id=[0-9]+)?"
)
_EDGE = re.compile(r"\s+(?P<before>node[0-9]+) -- (?P<after>node[0-9]+)")
_INPUT = re.compile(r"Input[0-9]*")


class _Layer(NamedTuple):
    name: str
    kind: str
    forward_ns: int
    backward_ns: int
    activation_bytes: int
    weight_bytes: int


def recognises(head: bytes) -> bool:
    """The first line begins as a layer or an edge does, after a byte order mark or without."""
    return re.match(rb"(?:\xef\xbb\xbf)?\s*node[0-9]+ -- [^\r\n]", head) is not None


def parse(data: bytes, name: str, *, training: bool = False) -> OpGraph:
    """One op a layer, named by its node id, of the layer's class as its kind; times are measured durations.

    training: add the backward pass: per layer an op `ID.backward` of the same kind, which consumes the layer's
        activation and the gradients that the backward ops of its successors produce, and yields the weight gradient.

    The time on an `Input` row is data loading and becomes 0, with a warning. Raises FormatError with the line.
    """
    if not isinstance(training, bool):
        raise OptionError(f"training is {training!r}; it must be true or false")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(f"byte {error.start} is not UTF-8 text") from error
    warnings: list[str] = []
    layers, successors = _rows(text, warnings)
    build = _training if training else _inference
    ops, tensors = build(layers, successors)
    return OpGraph(name.removesuffix(".graph"), tuple(ops), tuple(tensors), warnings=tuple(warnings))


def _rows(text: str, warnings: list[str]) -> tuple[list[_Layer], list[list[int]]]:
    """Layers in the order of the file, and the successors of each in the order of its edges."""
    layers: dict[str, _Layer] = {}
    edges: dict[tuple[str, str], int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if edge := _EDGE.fullmatch(line.rstrip()):
            if edges.setdefault((edge["before"], edge["after"]), number) != number:
                warnings.append(f"line {number}: edge {line.strip()!r} is given twice and counts once")
        elif row := _LAYER.fullmatch(line.rstrip()):
            if row["id"] in layers:
                raise FormatError(f"line {number}: {row['id']} is described a second time")
            layers[row["id"]] = _layer(row, warnings)
        elif line.strip():
            raise FormatError(
                f"line {number}: neither a layer nor an edge of a PipeDream profile: {line.strip()[:80]!r}"
            )
    index = {node: i for i, node in enumerate(layers)}
    successors: list[list[int]] = [[] for _ in layers]
    for (before, after), number in edges.items():
        for node in (before, after):
            if node not in index:
                raise FormatError(f"line {number}: edge to {node}, which no line describes")
        successors[index[before]].append(index[after])
    return list(layers.values()), successors


def _layer(row: re.Match[str], warnings: list[str]) -> _Layer:
    kind = row["layer"].partition("(")[0].strip() or "Layer"
    forward = round(Decimal(row["forward"]) * 1_000_000)
    if _INPUT.fullmatch(kind):
        kind = "Input"
        if forward:
            warnings.append(f"the {row['forward']} ms of input {row['id']} are data loading and count as 0")
        forward = 0
    activation = sum(round(Decimal(figure)) for figure in row["activation"].strip("[]").split("; "))
    backward, weight = round(Decimal(row["backward"]) * 1_000_000), round(Decimal(row["weight"]))
    return _Layer(row["id"], kind, forward, backward, activation, weight)


def _inference(layers: Sequence[_Layer], successors: Sequence[Sequence[int]]) -> tuple[list[Op], list[Tensor]]:
    incoming = _incoming_bytes(layers, successors)
    ops, tensors = [], []
    for index, layer in enumerate(layers):
        ops.append(
            Op(
                name=layer.name,
                kind=layer.kind,
                bytes_read=incoming[index] + layer.weight_bytes,
                bytes_written=layer.activation_bytes,
                duration_ns=layer.forward_ns,
            )
        )
        after = tuple(successors[index])
        tensors.append(
            Tensor(name=layer.name, bytes=layer.activation_bytes, producer=index, consumers=after, output=not after)
        )
        if layer.weight_bytes:
            tensors.append(
                Tensor(name=f"{layer.name}.weight", bytes=layer.weight_bytes, consumers=(index,), persistent=True)
            )
    return ops, tensors


def _training(layers: Sequence[_Layer], successors: Sequence[Sequence[int]]) -> tuple[list[Op], list[Tensor]]:
    """Forward and backward pass: the backward op of layer i has index n + i."""
    n = len(layers)
    ops, forward = _inference(layers, successors)
    tensors = []
    for tensor in forward:
        owner = tensor.consumers[0] if tensor.producer is None else tensor.producer
        tensors.append(msgspec.structs.replace(tensor, consumers=(*tensor.consumers, n + owner), output=False))
    incoming = _incoming_bytes(layers, successors)
    for index, layer in enumerate(layers):
        gradients = len(successors[index]) * layer.activation_bytes
        ops.append(
            Op(
                name=f"{layer.name}.backward",
                kind=layer.kind,
                bytes_read=gradients + layer.activation_bytes + layer.weight_bytes,
                bytes_written=incoming[index] + layer.weight_bytes,
                duration_ns=layer.backward_ns,
            )
        )
        # each successor yields its own gradient of this activation
        tensors += [
            Tensor(
                name=f"{layer.name}.gradient.{layers[after].name}",
                bytes=layer.activation_bytes,
                producer=n + after,
                consumers=(n + index,),
            )
            for after in successors[index]
        ]
        if layer.weight_bytes:
            name = f"{layer.name}.weight.gradient"
            tensors.append(Tensor(name=name, bytes=layer.weight_bytes, producer=n + index, output=True))
    return ops, tensors


def _incoming_bytes(layers: Sequence[_Layer], successors: Sequence[Sequence[int]]) -> list[int]:
    incoming = [0] * len(layers)
    for index, layer in enumerate(layers):
        for after in successors[index]:
            incoming[after] += layer.activation_bytes
    return incoming
