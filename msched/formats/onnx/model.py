"""An ONNX file as a checked model: local functions inlined, symbolic dimensions bound, shapes inferred."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from math import prod
from typing import Any

from msched.errors import FormatError, OptionError

LARGEST_NODES = 1_000_000  # after inlining: functions that call each other twice grow exponentially
_SHAPE_DATA_BYTES = 4096  # larger constants are weights; shape inference never looks into those
_BITS = {"DOUBLE": 64, "BOOL": 8, "STRING": 0, "FLOAT": 32}  # other element types carry theirs in their name
_NO_TEXT = ("null", "true", "false", "nan", "inf")  # to the grammar of a command line

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Value:
    """What is known of a tensor: bits of an element, and its shape (None when shape inference cannot tell)."""

    bits: int = 0
    shape: Shape | None = None

    @property
    def bytes(self) -> int:
        """Size in bytes, 0 where the shape is not known."""
        return 0 if self.shape is None else (prod(self.shape) * self.bits + 7) // 8


@dataclass
class Dimensions:
    """Sizes of open dimensions, by symbol, as `tensor[axis]` or as `tensor_axis`; those not given are 1, and noted.

    A dimension without a symbol, or with one that is no word, as the `?` that exporters write for several at once, is
    noted as `tensor_axis`, so that each can be given apart. No two are noted by the same name, and every name is one
    that the grammar of a command line takes for text.
    """

    given: Mapping[str, int]
    assumed: dict[str, None] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    _of_inputs: int = 0
    _owner: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.given, Mapping):
            raise OptionError(f"dimensions is {self.given!r}; a mapping of symbols to sizes is needed")
        for symbol, size in self.given.items():
            if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size < 2**31:
                raise OptionError(f"dimensions: {symbol} is {size!r}; a whole number of at least 1 is needed")

    def size(self, tensor: str, axis: int, symbol: str) -> int:
        """The size of a dimension that the file leaves open."""
        exact = f"{tensor}[{axis}]"
        word = self._word(tensor, axis, exact)
        for key in (exact, word, symbol):
            if key and key in self.given:
                self.used.add(key)
                return self.given[key]
        self.assumed[symbol if _is_word(symbol) else word] = None
        return 1

    def bind(self, inputs: Sequence[Any]) -> None:
        """Write the sizes into the open dimensions of `inputs` (ValueInfoProto): all other shapes follow from them."""
        shapes = [(v.name, v.type.tensor_type.shape.dim) for v in inputs if v.type.HasField("tensor_type")]
        self._owner = {dim.dim_param: dim.dim_param for _, dims in shapes for dim in dims if dim.dim_param}
        for name, dims in shapes:
            for axis, dim in enumerate(dims):
                if not dim.HasField("dim_value") or dim.dim_value < 0:
                    dim.dim_value = self.size(name, axis, dim.dim_param)
        self._of_inputs = len(self.assumed)

    def warnings(self) -> list[str]:
        """What was assumed. Raises OptionError for a given size that no tensor asked for."""
        if unused := [key for key in self.given if key not in self.used]:
            raise OptionError(
                f"dimensions: {some(unused)} is no open dimension of this model; open are: "
                f"{some([*sorted(self.used), *self.assumed], 20) or 'none'}"
            )
        if not self.assumed:
            return []
        names = list(self.assumed)
        known = [f"{name}: {size}" for name, size in self.given.items() if _is_word(name)]
        sizes = ", ".join([*known, *(f"{name}: 1" for name in names[: min(self._of_inputs, 8) or 8])])
        return [
            f"open dimensions taken as 1: {some(names, 20)}; give their sizes as 'workload.dimensions={{{sizes}}}' "
            f"on the command line, as dimensions={{...}} in Python"
        ]

    def _word(self, tensor: str, axis: int, exact: str) -> str:
        word = re.sub(r"[^A-Za-z0-9_]", "_", f"{tensor}_{axis}")
        if not re.match("[A-Za-z]", word):
            word = f"dim_{word}"
        while self._owner.setdefault(word, exact) != exact:
            word += "_"
        return word


def _is_word(symbol: str) -> bool:
    """Whether a command line takes it for text: `1_0` would be the number ten."""
    return bool(re.fullmatch("[A-Za-z][A-Za-z0-9_]*", symbol)) and symbol.lower() not in _NO_TEXT


def load(data: bytes, dimensions: Dimensions, warnings: list[str]) -> tuple[Any, dict[str, Value]]:
    """The model's graph (a GraphProto without calls to local functions) and what is known of each of its tensors."""
    import onnx
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    try:
        model = onnx.ModelProto.FromString(data)
    except DecodeError as error:
        raise FormatError(f"no complete ONNX model: {error}; the file may be truncated") from error
    if not model.HasField("graph"):
        raise FormatError("the ONNX model holds no graph; the file may be truncated")
    if not model.opset_import:
        raise FormatError("the ONNX model names no operator set (opset_import); the file may be truncated")
    _check_text(model)
    _check_size(model)
    if model.functions:
        import onnx.inliner

        try:
            model = onnx.inliner.inline_local_functions(model)
        except Exception as error:
            raise FormatError(f"its local functions cannot be inlined: {error}") from error
    return model.graph, _infer(model, dimensions, warnings)


def nodes_within(nodes: Sequence[Any]) -> Iterator[Any]:
    """Nodes and those of their sub-graphs, at any depth."""
    for node in nodes:
        yield node
        for body in bodies(node):
            yield from nodes_within(body.node)


def bodies(node: Any) -> list[Any]:
    """The sub-graphs that a node holds: branches of an If, the body of a Loop or a Scan."""
    return [graph for a in node.attribute for graph in ([a.g] if a.HasField("g") else a.graphs)]


def some(names: Sequence[str], most: int = 5) -> str:
    """A few names for a message, and how many more there are."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def _check_text(message: Any) -> None:
    """Protobuf does not check the text of ONNX, and hands over bytes where it is not UTF-8."""
    for kind, value in message.ListFields():
        if kind.type == kind.TYPE_MESSAGE:
            for inner in value if hasattr(value, "__len__") else (value,):
                _check_text(inner)
        elif kind.type == kind.TYPE_STRING:
            for text in (value,) if isinstance(value, str | bytes) else value:
                if not isinstance(text, str):
                    raise FormatError(f"{kind.full_name}: {text!r} is not UTF-8 text")


def _check_size(model: Any) -> None:
    """Refuse a model whose local functions call themselves, or grow beyond LARGEST_NODES once inlined."""
    functions = {(f.domain, f.name, f.overload): f for f in model.functions}

    def calls(nodes: Sequence[Any]) -> list[tuple[str, str, str]]:
        return [(node.domain, node.op_type, node.overload) for node in nodes_within(nodes)]

    inside = {key: calls(function.node) for key, function in functions.items()}
    try:
        callees_first = list(
            TopologicalSorter({k: [c for c in v if c in functions] for k, v in inside.items()}).static_order()
        )
    except CycleError as error:
        raise FormatError(f"local function {error.args[1][0][1]!r} calls itself") from error
    size: dict[tuple[str, str, str], int] = {}
    for key in callees_first:
        size[key] = min(sum(size.get(callee, 1) for callee in inside[key]), LARGEST_NODES + 1)
    total = sum(size.get(callee, 1) for callee in calls(model.graph.node))
    if total > LARGEST_NODES:
        raise FormatError(f"the model has more than {LARGEST_NODES} nodes with its local functions inlined")


def _infer(model: Any, dimensions: Dimensions, warnings: list[str]) -> dict[str, Value]:
    """Bind the open dimensions of the inputs, then let ONNX infer every shape that follows (of a light copy)."""
    import onnx.shape_inference

    graph = model.graph
    weights = {t.name for t in graph.initializer}
    dimensions.bind([value for value in graph.input if value.name not in weights])
    declared = {v.name: v.type for v in (*graph.value_info, *graph.output)}
    light = onnx.ModelProto()
    light.CopyFrom(model)
    for tensor in [*light.graph.initializer, *(a.t for n in light.graph.node for a in n.attribute if a.HasField("t"))]:
        if tensor.ByteSize() > _SHAPE_DATA_BYTES:
            for payload in ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data"):
                tensor.ClearField(payload)
    for value in (*light.graph.value_info, *light.graph.output):
        # a symbol that was declared before the inputs were bound would only stand in the way
        if any(not dim.HasField("dim_value") for dim in value.type.tensor_type.shape.dim):
            value.type.tensor_type.ClearField("shape")
    try:
        light = onnx.shape_inference.infer_shapes(light, strict_mode=False, data_prop=True)
    except Exception as error:
        warnings.append(f"shape inference gave up: {' '.join(str(error).split())[:200]}")
    inferred = {v.name: v.type for v in (*light.graph.value_info, *light.graph.output, *light.graph.input)}
    result = {}
    for name, kind in (declared | inferred).items():
        known = kind if kind.tensor_type.HasField("shape") or name not in declared else declared[name]
        result[name] = _value(name, known, dimensions)
    for tensor in graph.initializer:
        result[tensor.name] = Value(_bits(tensor.data_type), _sizes(tensor.name, tensor.dims))
    for sparse in graph.sparse_initializer:
        stored = _sizes(sparse.values.name, (*sparse.values.dims, len(sparse.dims) + 1))
        result[sparse.values.name] = Value(_bits(sparse.values.data_type), stored)
    return result


def _value(name: str, kind: Any, dimensions: Dimensions) -> Value:
    tensor = kind.tensor_type
    if not tensor.HasField("shape"):
        return Value(_bits(tensor.elem_type))
    sizes = [
        dim.dim_value
        if dim.HasField("dim_value") and dim.dim_value >= 0
        else dimensions.size(name, axis, dim.dim_param)
        for axis, dim in enumerate(tensor.shape.dim)
    ]
    return Value(_bits(tensor.elem_type), tuple(sizes))


def _sizes(name: str, dims: Sequence[int]) -> Shape:
    if min(dims, default=0) < 0:
        raise FormatError(f"initializer {name!r} has the shape {list(dims)}")
    return tuple(dims)


def _bits(element_type: int) -> int:
    import onnx

    try:
        name = onnx.TensorProto.DataType.Name(element_type)
    except ValueError:
        return 0
    digits = re.search(r"[0-9]+", name)
    return int(digits.group()) if digits else _BITS.get(name, 0)
