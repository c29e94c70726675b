"""OpGraph: a network before any device is chosen (ops, tensors, control dependencies)."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from msched.arrays import Int64Array, distinct, frozen_int64, pairs
from msched.errors import GraphError
from msched.topology import find_cycle, topological_order

if TYPE_CHECKING:
    import networkx

SCHEMA = "msched.graph/1"
_LARGEST = 2**62  # sums of two stay inside int64

# The records below hold no cycles, so the garbage collector need not visit them (gc=False): at 100,000 ops it would
# take longer than all else.


class Matmul(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """The shape of a matrix product: `batch` independent products of (m, k) by (k, n)."""

    batch: int
    m: int
    n: int
    k: int


class Rows(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """The tokens of an op that can be cut along them: `batch` requests of `sequence` tokens, a row of output for each.

    A row needs the same row of the inputs; of those named in `attends` it needs all rows of its request, or with
    `causal` those up to its own. With `last`, the one row of each request (`sequence` is 1) needs the last of its own.
    """

    batch: int
    sequence: int
    attends: tuple[str, ...] = ()
    causal: bool = False
    last: bool = False


class Op(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """One op. Bytes are what it moves to and from device memory; `None` means that the input does not say.

    `matmul` gives matrix work its tiles. `participants` is the number of ranks of a collective and `payload_bytes`
    its full buffer (the reduced tensor of an all-reduce, the gathered one of an all-gather). `engine` and `stream`
    are what a profiler or a compiler recorded, `label` what a user asked for (ops of one label share a stream),
    `communicator` the group whose collectives keep one order. `rows` says how the op can be cut into slices.
    """

    name: str
    kind: str
    flops: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    workspace_bytes: int = 0
    duration_ns: int | None = None
    matmul: Matmul | None = None
    participants: int = 0
    payload_bytes: int = 0
    communicator: str | None = None
    engine: str | None = None
    stream: int | None = None
    label: str | None = None
    rows: Rows | None = None


class Tensor(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """One tensor: `producer` is an op index, or None for weights and network inputs, which are `persistent`.

    A persistent tensor is `token_wise` if it has rows for tokens (a network input, a cache), so that a slice of an op
    reads its share; every slice reads the whole of the others. `part_of` names the tensor of which this one is a slice.
    """

    name: str
    bytes: int
    producer: int | None = None
    consumers: tuple[int, ...] = ()
    persistent: bool = False
    output: bool = False
    token_wise: bool = False
    part_of: str | None = None


class _Document(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    schema: str
    name: str
    ops: tuple[Op, ...]
    tensors: tuple[Tensor, ...] = ()
    control: tuple[tuple[int, int], ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class OpGraph:
    """A directed acyclic graph of ops, checked on construction.

    ops: in any order; an op's index is its identity, names are unique.
    tensors: each a data dependency of its consumers on its producer.
    control: pairs (before, after) of op indices.
    warnings: what the reader or generator had to assume.

    Raises GraphError: a cycle (named), a negative figure, a duplicate op name, a tensor whose ends do not exist.
    """

    name: str
    ops: tuple[Op, ...]
    tensors: tuple[Tensor, ...] = ()
    control: tuple[tuple[int, int], ...] = ()
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field in ("ops", "tensors", "control", "warnings"):
            object.__setattr__(self, field, tuple(getattr(self, field)))
        object.__setattr__(self, "control", tuple((int(u), int(v)) for u, v in self.control))
        self._check_ops()
        self._check_tensors()
        self._check_order()

    @cached_property
    def edges(self) -> Int64Array:
        """Data and control dependencies (before, after), each once, sorted: shape (m, 2)."""
        n, data = max(len(self.ops), 1), [t for t in self.tensors if t.producer is not None and t.consumers]
        before = np.repeat(_whole(t.producer for t in data), _whole(len(t.consumers) for t in data))
        after = _whole(chain.from_iterable(t.consumers for t in data))
        control = pairs(self.control)
        key = distinct(np.concatenate([before * n + after, control[:, 0] * n + control[:, 1]]))
        return frozen_int64(np.stack(np.divmod(key, n), axis=1))

    @cached_property
    def order(self) -> Int64Array:
        """Op indices in a topological order: shape (n,)."""
        return topological_order(len(self.ops), self.edges)

    def to_json(self) -> bytes:
        """The graph as JSON of schema `msched.graph/1`; `from_json` gives back an equal graph."""
        return msgspec.json.encode(
            _Document(
                schema=SCHEMA,
                name=self.name,
                ops=self.ops,
                tensors=self.tensors,
                control=self.control,
                warnings=self.warnings,
            )
        )

    @staticmethod
    def from_json(data: bytes | str) -> OpGraph:
        """Inverse of `to_json`. Raises GraphError that names the place in the document."""
        try:
            document = msgspec.json.decode(data, type=_Document)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise GraphError(f"not a graph of schema {SCHEMA}: {error}") from error
        if document.schema != SCHEMA:
            raise GraphError(f"schema {document.schema!r} is not known here; this version reads {SCHEMA!r}")
        return OpGraph(document.name, document.ops, document.tensors, document.control, document.warnings)

    def content_hash(self) -> str:
        """SHA-256 of `to_json`, in hexadecimal: equal graphs, equal hashes."""
        return hashlib.sha256(self.to_json()).hexdigest()

    def to_networkx(self) -> networkx.DiGraph[int]:
        """Nodes are op indices with the fields of `Op`; tensors, control and name stand in `graph.graph`."""
        import networkx

        result: networkx.DiGraph[int] = networkx.DiGraph(
            name=self.name, tensors=self.tensors, control=self.control, warnings=self.warnings
        )
        for index, op in enumerate(self.ops):
            result.add_node(index, **msgspec.structs.asdict(op))
        result.add_edges_from(map(tuple, self.edges.tolist()))
        return result

    @staticmethod
    def from_networkx(graph: networkx.DiGraph[Any]) -> OpGraph:
        """Inverse of `to_networkx`. A graph made by hand needs only `kind` on its nodes; edges without a tensor become
        control dependencies, and nodes may be any hashable (their `name` defaults to `str(node)`).

        Raises GraphError for an attribute that `Op` does not have.
        """
        index = {node: i for i, node in enumerate(graph.nodes)}
        ops = []
        for node, attributes in graph.nodes(data=True):
            fields = {"name": str(node), **attributes}
            try:
                ops.append(msgspec.convert(fields, Op))
            except msgspec.ValidationError as error:
                raise GraphError(f"node {node!r}: {error}") from error
        try:
            tensors = msgspec.convert(graph.graph.get("tensors", ()), tuple[Tensor, ...])
            control = msgspec.convert(graph.graph.get("control", ()), tuple[tuple[int, int], ...])
            warnings = msgspec.convert(graph.graph.get("warnings", ()), tuple[str, ...])
        except msgspec.ValidationError as error:
            raise GraphError(f"tensors, control or warnings of the graph: {error}") from error
        given = {*control, *((t.producer, c) for t in tensors for c in t.consumers)}
        edges = ((index[u], index[v]) for u, v in graph.edges)
        control += tuple(edge for edge in edges if edge not in given)
        return OpGraph(str(graph.graph.get("name", "graph")), tuple(ops), tensors, control, warnings)

    def _check_ops(self) -> None:
        if len({op.name for op in self.ops}) < len(self.ops):
            name, count = next(item for item in Counter(op.name for op in self.ops).items() if item[1] > 1)
            raise GraphError(f"op name {name!r} is given to {count} ops; names must be unique")
        for op in self.ops:
            if not (
                0 <= op.flops <= _LARGEST
                and 0 <= op.bytes_read <= _LARGEST
                and 0 <= op.bytes_written <= _LARGEST
                and 0 <= op.workspace_bytes <= _LARGEST
                and 0 <= op.participants <= _LARGEST
                and 0 <= op.payload_bytes <= _LARGEST
            ):
                raise GraphError(f"op {op.name!r}: flops, bytes and participants must lie between 0 and 2^62")
            if op.duration_ns is not None and not 0 <= op.duration_ns <= _LARGEST:
                raise GraphError(f"op {op.name!r}: duration_ns is {op.duration_ns}; it must lie between 0 and 2^62")
            if (shape := op.matmul) is not None and not (
                shape.batch >= 1 and shape.m >= 1 and shape.n >= 1 and shape.k >= 1
            ):
                raise GraphError(f"op {op.name!r}: a matrix product needs batch, m, n and k of at least 1")
            if op.rows is not None and not (0 < op.rows.batch <= _LARGEST and 0 < op.rows.sequence <= _LARGEST):
                raise GraphError(f"op {op.name!r}: its rows need a batch and a sequence of 1 to 2^62")
            if op.rows is not None and op.rows.last and op.rows.sequence != 1:
                raise GraphError(f"op {op.name!r}: what keeps the last token of a request has a sequence of 1")

    def _check_tensors(self) -> None:
        n = len(self.ops)
        for tensor in self.tensors:
            if not 0 <= tensor.bytes <= _LARGEST:
                raise GraphError(f"tensor {tensor.name!r}: {tensor.bytes} bytes; it must lie between 0 and 2^62")
            for end in tensor.consumers:
                if not 0 <= end < n:
                    self._refuse_end(tensor, end)
            if tensor.producer is not None:
                if not 0 <= tensor.producer < n:
                    self._refuse_end(tensor, tensor.producer)
            elif not tensor.persistent:
                raise GraphError(f"tensor {tensor.name!r} has no producer; weights and network inputs are persistent")
        for u, v in self.control:
            if not (0 <= u < n and 0 <= v < n):
                raise GraphError(f"control dependency ({u}, {v}): the graph has ops 0 to {n - 1}")

    def _refuse_end(self, tensor: Tensor, end: int) -> None:
        raise GraphError(f"tensor {tensor.name!r} is tied to op {end}, but the graph has ops 0 to {len(self.ops) - 1}")

    def _check_order(self) -> None:
        if (self.edges[:, 0] < self.edges[:, 1]).all():
            return  # the indices are an order, and nothing has to be compiled to see it
        if len(self.order) < len(self.ops):
            cycle = find_cycle(len(self.ops), self.edges, self.order)
            names = [self.ops[v].name for v in [*cycle, cycle[0]]]
            raise GraphError("the graph has a cycle: " + " -> ".join(names))


def _whole(values: Iterable[Any]) -> Int64Array:
    return np.fromiter(values, np.int64)
