"""Problem: a network placed and priced on a device, as plain arrays; the only thing that a solver reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from operator import index as whole
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from msched.arrays import BoolArray, Int64Array, compressed_rows, frozen_bool, frozen_int64, pairs
from msched.errors import ProblemError
from msched.topology import find_cycle, topological_order

if TYPE_CHECKING:
    import networkx

SCHEMA = "msched.problem/1"
UNLIMITED = -1
Binding = Literal["free", "engine"]
_HORIZON = 2**60  # the sum of all durations, delays and costs stays below: no int64 overflow anywhere


@dataclass(frozen=True, eq=False)
class Problem:
    """What is scheduled. n ops, E engines, m dependencies, T tensors, M extra modes; times in ns, sizes in bytes.

    duration (n,), demand (n, E), engine (n,): time alone, units held start to finish, engine that binds the stream.
    capacity (E,): units. communication (E,): whether the engine moves data between chips.
    edges (m, 2): dependencies (before, after), each once. delay (m,): paid between streams, on top of the event.
    tensor_*: producer (UNLIMITED = -1 for none), bytes, consumers as CSR, persistent, graph output.
    workspace (n,): bytes live only during the op.
    streams, tasks_per_stream, events, memory_bytes: limits, None for none. engine_streams (E,): -1 for none.
    binding: `free` lets any op go on any stream; `engine` gives each stream one engine.
    gap_ns, record_ns, wait_ns, host_issue_ns: costs (contract, section 1).
    label (n,), communicator (n,): ops that share a stream, collectives that keep one order; -1 for none.
    mode_op (M,) sorted, mode_duration (M,), mode_demand (M, E): alternatives to the op's own duration and demand,
        which are its mode 0; the k-th row of an op is its mode k.

    Two problems are equal when all arrays and scalars are. Raises ProblemError that names the op or the argument.
    """

    name: str
    op_names: tuple[str, ...]
    engine_names: tuple[str, ...]
    duration: Int64Array
    demand: Int64Array
    engine: Int64Array
    capacity: Int64Array
    communication: BoolArray
    edges: Int64Array
    delay: Int64Array
    tensor_producer: Int64Array
    tensor_bytes: Int64Array
    tensor_consumer_start: Int64Array
    tensor_consumer: Int64Array
    tensor_persistent: BoolArray
    tensor_output: BoolArray
    workspace: Int64Array
    engine_streams: Int64Array
    label: Int64Array
    communicator: Int64Array
    mode_op: Int64Array
    mode_duration: Int64Array
    mode_demand: Int64Array
    streams: int | None = None
    tasks_per_stream: int | None = None
    events: int | None = None
    memory_bytes: int | None = None
    binding: Binding = "free"
    gap_ns: int = 0
    record_ns: int = 0
    wait_ns: int = 0
    host_issue_ns: int = 0
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            for kind, frozen in (("BoolArray", frozen_bool), ("Int64Array", frozen_int64)):
                if kind in str(field.type):
                    try:
                        object.__setattr__(self, field.name, frozen(value))
                    except (TypeError, ValueError, OverflowError) as error:
                        raise ProblemError(f"{field.name}: {error}") from error
        _check_shapes(self)
        _check_values(self)
        if len(self.topological_order) < self.n:
            cycle = find_cycle(self.n, self.edges, self.topological_order)
            names = [self.op_names[v] for v in [*cycle, cycle[0]]]
            raise ProblemError("the dependencies have a cycle: " + " -> ".join(names))

    @property
    def n(self) -> int:
        """Number of ops."""
        return self.duration.size

    @cached_property
    def topological_order(self) -> Int64Array:
        """Ops in topological order, first in first out by index: shape (n,)."""
        return topological_order(self.n, self.edges)

    @cached_property
    def _successors(self) -> tuple[Int64Array, Int64Array]:
        return compressed_rows(self.edges[:, 0], self.n)

    @cached_property
    def _predecessors(self) -> tuple[Int64Array, Int64Array]:
        return compressed_rows(self.edges[:, 1], self.n)

    @property
    def successor_start(self) -> Int64Array:
        """Row starts of `successor` and `successor_edge`: shape (n + 1,)."""
        return self._successors[0]

    @property
    def successor_edge(self) -> Int64Array:
        """Index into `edges` and `delay` of each entry of `successor`: shape (m,)."""
        return self._successors[1]

    @cached_property
    def successor(self) -> Int64Array:
        """Successors of op v: `successor[successor_start[v]:successor_start[v + 1]]`."""
        return np.ascontiguousarray(self.edges[self.successor_edge, 1])

    @property
    def predecessor_start(self) -> Int64Array:
        """Row starts of `predecessor` and `predecessor_edge`: shape (n + 1,)."""
        return self._predecessors[0]

    @property
    def predecessor_edge(self) -> Int64Array:
        """Index into `edges` and `delay` of each entry of `predecessor`: shape (m,)."""
        return self._predecessors[1]

    @cached_property
    def predecessor(self) -> Int64Array:
        """Predecessors of op v: `predecessor[predecessor_start[v]:predecessor_start[v + 1]]`."""
        return np.ascontiguousarray(self.edges[self.predecessor_edge, 0])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Problem):
            return NotImplemented
        return all(
            np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b
            for a, b in ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        )

    def __hash__(self) -> int:
        return hash((self.name, self.duration.tobytes(), self.edges.tobytes()))

    @staticmethod
    def from_arrays(
        *,
        duration: Sequence[int] | Int64Array,
        edges: Iterable[tuple[int, int]] | Int64Array = (),
        demand: Any = None,
        capacity: Any = None,
        streams: int | None = None,
        engine: Any = None,
        delay: Any = None,
        record_ns: int = 0,
        wait_ns: int = 0,
        gap_ns: int = 0,
        host_issue_ns: int = 0,
        tensors: Iterable[tuple[int | None, int, Sequence[int]]] = (),
        outputs: Iterable[int] = (),
        workspace: Any = None,
        memory_bytes: int | None = None,
        binding: Binding = "free",
        engine_streams: Sequence[int | None] | None = None,
        tasks_per_stream: int | None = None,
        events: int | None = None,
        label: Any = None,
        communicator: Any = None,
        modes: Iterable[tuple[int, int, Sequence[int]]] = (),
        communication: Sequence[bool] | None = None,
        op_names: Sequence[str] | None = None,
        engine_names: Sequence[str] | None = None,
        name: str = "problem",
    ) -> Problem:
        """A problem from plain values; only `duration` is needed.

        duration (n,) ns. edges: pairs (before, after); one given twice counts once, with its larger delay.
        demand (n, E), capacity (E,) units: without them no engine limits anything.
        engine (n,): defaults to the engine of which the op holds the largest share.
        delay: ns, one figure a dependency in the order of `edges`.
        tensors: (producer or None, bytes, [consumers]); one without producer is persistent. Data dependencies must
            stand in `edges` too. `outputs` are indices of tensors that live to the end; a tensor that is neither
            consumed nor an output lives during its producer.
        modes: (op, duration, demand of each engine), alternatives to the op's own.
        engine_streams: most streams of each engine, None for no limit. label, communicator (n,): -1 for none.

        Raises ProblemError that names the argument and the op.
        """
        durations = _array("duration", duration, (0,))
        n = durations.size
        arcs, delays = _canonical_edges(edges, delay, n)
        try:
            rows = [(-1 if p is None else whole(p), whole(b), [whole(c) for c in cs]) for p, b, cs in tensors]
            extra = sorted(((whole(v), k, whole(d), list(q)) for k, (v, d, q) in enumerate(modes)), key=lambda r: r[:2])
        except (TypeError, ValueError) as error:
            raise ProblemError(
                f"tensors are (producer or None, bytes, [consumers]), modes (op, duration, [demands]): {error}"
            ) from error
        consumers = [c for _, _, cs in rows for c in cs]
        persistent = np.array([p < 0 for p, _, _ in rows], np.bool_)
        output = np.zeros(len(rows), np.bool_)
        for index in outputs:
            if not 0 <= index < len(rows):
                raise ProblemError(f"outputs: there is no tensor {index}; there are {len(rows)}")
            output[index] = True
        demands, capacities, binder = _engines(n, demand, capacity, engine)
        count = capacities.size
        return Problem(
            name=name,
            op_names=tuple(op_names) if op_names is not None else tuple(f"op{v}" for v in range(n)),
            engine_names=tuple(engine_names) if engine_names is not None else tuple(f"engine{e}" for e in range(count)),
            duration=durations,
            demand=demands,
            engine=binder,
            capacity=capacities,
            communication=np.asarray(communication if communication is not None else [False] * count),
            edges=arcs,
            delay=delays,
            tensor_producer=_array("tensors", [p for p, _, _ in rows], (0,)),
            tensor_bytes=_array("tensors", [b for _, b, _ in rows], (0,)),
            tensor_consumer_start=frozen_int64(np.cumsum([0, *(len(cs) for _, _, cs in rows)])),
            tensor_consumer=_array("tensors", consumers, (0,)),
            tensor_persistent=persistent,
            tensor_output=output,
            workspace=_array("workspace", workspace if workspace is not None else np.zeros(n, np.int64), (0,)),
            engine_streams=_array(
                "engine_streams",
                [UNLIMITED] * count
                if engine_streams is None
                else [UNLIMITED if k is None else k for k in engine_streams],
                (0,),
            ),
            label=_array("label", label if label is not None else np.full(n, -1), (0,)),
            communicator=_array("communicator", communicator if communicator is not None else np.full(n, -1), (0,)),
            mode_op=_array("modes", [v for v, _, _, _ in extra], (0,)),
            mode_duration=_array("modes", [d for _, _, d, _ in extra], (0,)),
            mode_demand=_array("modes", [q for _, _, _, q in extra], (0, count)),
            streams=streams,
            tasks_per_stream=tasks_per_stream,
            events=events,
            memory_bytes=memory_bytes,
            binding=binding,
            gap_ns=gap_ns,
            record_ns=record_ns,
            wait_ns=wait_ns,
            host_issue_ns=host_issue_ns,
        )

    def to_json(self) -> bytes:
        """The problem as JSON of schema `msched.problem/1`; `from_json` gives back an equal problem."""
        body = {f.name: v.tolist() if isinstance(v := getattr(self, f.name), np.ndarray) else v for f in fields(self)}
        return msgspec.json.encode({"schema": SCHEMA, **body})

    @staticmethod
    def from_json(data: bytes | str) -> Problem:
        """Inverse of `to_json`. Raises ProblemError that names the missing, unknown or broken field."""
        try:
            body = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ProblemError(f"not a problem of schema {SCHEMA}: {error}") from error
        if not isinstance(body, dict) or body.pop("schema", None) != SCHEMA:
            raise ProblemError(f"not a problem of schema {SCHEMA}: it says no such schema")
        known = {f.name for f in fields(Problem)}
        if set(body) != known:
            missing, unknown = sorted(known - set(body)), sorted(set(body) - known)
            raise ProblemError(f"schema {SCHEMA}: missing fields {missing}, unknown fields {unknown}")
        if not isinstance(body["name"], str):
            raise ProblemError(f"name is {body['name']!r}; text is needed")
        for key in ("op_names", "engine_names", "warnings"):
            if not isinstance(body[key], list) or not all(isinstance(s, str) for s in body[key]):
                raise ProblemError(f"{key}: a list of strings is needed")
            body[key] = tuple(body[key])
        empty_demand = np.zeros((0, len(body["engine_names"])), np.int64)
        for key in ("demand", "mode_demand"):
            body[key] = body[key] if body[key] else empty_demand
        body["edges"] = body["edges"] if body["edges"] else np.zeros((0, 2), np.int64)
        return Problem(**body)

    def to_networkx(self) -> networkx.DiGraph[int]:
        """Nodes are op indices with `name`, `duration`, `engine` and `demand` (engine name to units); edges carry
        `delay`; `graph.graph["problem"]` is the whole problem as a plain mapping."""
        import networkx

        rest = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _ON_NODES}
        result: networkx.DiGraph[int] = networkx.DiGraph(name=self.name, problem=rest)
        for v in range(self.n):
            result.add_node(
                v,
                name=self.op_names[v],
                duration=int(self.duration[v]),
                engine=int(self.engine[v]),
                demand=tuple(self.demand[v].tolist()),
                workspace=int(self.workspace[v]),
                label=int(self.label[v]),
                communicator=int(self.communicator[v]),
            )
        for (u, v), d in zip(self.edges.tolist(), self.delay.tolist(), strict=True):
            result.add_edge(u, v, delay=d)
        return result

    @staticmethod
    def from_networkx(graph: networkx.DiGraph[Any]) -> Problem:
        """Inverse of `to_networkx`; the edges come back in the order of the original, new ones behind them.

        Raises ProblemError: not a graph of `to_networkx`, or a node that lacks an attribute.
        """
        rest = dict(graph.graph.get("problem", {}))
        if not rest:
            raise ProblemError('the graph has no graph.graph["problem"]; lower an OpGraph, or use Problem.from_arrays')
        try:
            nodes = [graph.nodes[v] for v in range(graph.number_of_nodes())]
            rest["op_names"] = tuple(node["name"] for node in nodes)
            for key in ("duration", "engine", "demand", "workspace", "label", "communicator"):
                rest[key] = [node[key] for node in nodes]
        except KeyError as error:
            raise ProblemError(f"nodes are ops 0 to n - 1 with all attributes of an op; one lacks {error}") from error
        rest["demand"] = _array("demand", rest["demand"], (0,)).reshape(
            len(nodes), -1 if nodes else len(rest["engine_names"])
        )
        old = [(u, v) for u, v in rest["edges"].tolist() if graph.has_edge(u, v)]
        edges = list(dict.fromkeys([*old, *graph.edges]))
        rest["edges"], rest["delay"] = pairs(edges), [graph.edges[u, v].get("delay", 0) for u, v in edges]
        return Problem(**rest)


_ON_NODES = {"op_names", "duration", "engine", "demand", "workspace", "label", "communicator", "delay"}


def _array(argument: str, values: Any, empty: tuple[int, ...]) -> Int64Array:
    try:
        return frozen_int64(values, empty)
    except (TypeError, ValueError, OverflowError) as error:
        raise ProblemError(f"{argument}: {error}") from error


def _canonical_edges(edges: Any, delay: Any, n: int) -> tuple[Int64Array, Int64Array]:
    try:
        arcs = pairs(edges)
    except (TypeError, ValueError, OverflowError) as error:
        raise ProblemError(f"edges: {error}") from error
    delays = _array("delay", delay if delay is not None else np.zeros(len(arcs), np.int64), (0,))
    if delays.shape != (len(arcs),):
        raise ProblemError(f"delay: {delays.size} figures for {len(arcs)} edges; one a dependency is needed")
    for u, v in arcs[((arcs < 0) | (arcs >= n)).any(axis=1)].tolist():
        raise ProblemError(f"edges: ({u}, {v}) names an op that does not exist; ops are 0 to {n - 1}")
    key = arcs[:, 0] * max(n, 1) + arcs[:, 1]
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    if first.size == len(arcs):
        return arcs, delays
    largest = np.zeros(first.size, np.int64)
    np.maximum.at(largest, inverse, delays)
    by_position = np.argsort(first)
    return arcs[first[by_position]], largest[by_position]


def _engines(n: int, demand: Any, capacity: Any, engine: Any) -> tuple[Int64Array, Int64Array, Int64Array]:
    if (demand is None) != (capacity is None):
        raise ProblemError("demand and capacity go together: give both, or neither for no engine limits")
    if demand is None:
        binder = _array("engine", engine if engine is not None else np.zeros(n, np.int64), (0,))
        count = int(binder.max(initial=0)) + 1
        return np.zeros((n, count), np.int64), np.zeros(count, np.int64), binder
    capacities = _array("capacity", capacity, (0,))
    demands = _array("demand", demand, (n, capacities.size))
    if demands.shape != (n, capacities.size):
        raise ProblemError(f"demand has shape {demands.shape}; {n} ops and {capacities.size} engines were given")
    if engine is None:
        share = demands / np.maximum(capacities, 1)
        binder = frozen_int64(share.argmax(axis=1) if capacities.size else np.zeros(n, np.int64))
    else:
        binder = _array("engine", engine, (0,))
    return demands, capacities, binder


def _check_shapes(p: Problem) -> None:
    if p.edges.ndim != 2 or p.tensor_consumer_start.ndim != 1:
        raise ProblemError("edges must be pairs (before, after), and tensor_consumer_start a plain list")
    n, count, tensors, modes = p.duration.size, p.capacity.size, p.tensor_bytes.size, p.mode_op.size
    shapes: dict[str, tuple[int, ...]] = {
        "duration": (n,), "demand": (n, count), "engine": (n,), "capacity": (count,), "communication": (count,),
        "delay": (len(p.edges),), "edges": (len(p.edges), 2), "tensor_producer": (tensors,),
        "tensor_bytes": (tensors,), "tensor_consumer_start": (tensors + 1,), "tensor_persistent": (tensors,),
        "tensor_output": (tensors,), "workspace": (n,), "engine_streams": (count,), "label": (n,),
        "communicator": (n,), "mode_op": (modes,), "mode_duration": (modes,), "mode_demand": (modes, count),
        "tensor_consumer": (int(p.tensor_consumer_start[-1]) if p.tensor_consumer_start.size else 0,),
    }  # fmt: skip
    for name, shape in shapes.items():
        if getattr(p, name).shape != shape:
            raise ProblemError(f"{name} has shape {getattr(p, name).shape} where {shape} is needed")
    if len(p.op_names) != n or len(p.engine_names) != count:
        raise ProblemError(f"{len(p.op_names)} op names for {n} ops, {len(p.engine_names)} names for {count} engines")
    if len(set(p.engine_names)) != count:
        raise ProblemError(f"engine_names: {list(p.engine_names)} names an engine twice")


def _check_values(p: Problem) -> None:
    n, count = p.n, p.capacity.size

    def op(mask: BoolArray) -> str:
        return repr(p.op_names[int(np.flatnonzero(mask)[0])])

    for figure in ("duration", "workspace"):
        if (bad := getattr(p, figure) < 0).any():
            raise ProblemError(f"{figure} of op {op(bad)} is negative")
    for mark in ("label", "communicator"):
        if (bad := getattr(p, mark) < -1).any():
            raise ProblemError(f"{mark} of op {op(bad)} is below -1, which stands for none")
    if count == 0 and n:
        raise ProblemError("at least one engine is needed")
    if (bad := (p.engine < 0) | (p.engine >= count)).any():
        raise ProblemError(f"op {op(bad)} is bound to an unknown engine; engines are 0 to {count - 1}")
    for table, owner, where in ((p.demand, np.arange(n), "demand"), (p.mode_demand, p.mode_op, "a mode's demand")):
        if ((over := (table < 0) | (table > p.capacity)) & True).any():
            row, e = (int(i) for i in np.argwhere(over)[0])
            raise ProblemError(
                f"{where} of op {p.op_names[owner[row]]!r} on engine {p.engine_names[e]!r} is {table[row, e]}; "
                f"it must lie between 0 and the capacity {p.capacity[e]}"
            )
    if (p.mode_op < 0).any() or (p.mode_op >= n).any() or (np.diff(p.mode_op) < 0).any() or (p.mode_duration < 0).any():
        raise ProblemError("modes: sorted by op, of ops that exist, with durations that are not negative")
    if ((p.edges < 0) | (p.edges >= n)).any():
        raise ProblemError(f"edges name an op that does not exist; ops are 0 to {n - 1}")
    if (p.delay < 0).any():
        u, v = p.edges[np.flatnonzero(p.delay < 0)[0]]
        raise ProblemError(f"delay of dependency {p.op_names[u]!r} -> {p.op_names[v]!r} is negative")
    if np.unique(p.edges[:, 0] * max(n, 1) + p.edges[:, 1]).size != len(p.edges):
        raise ProblemError("edges: a dependency is given twice")
    _check_tensors(p)
    if (p.engine_streams < UNLIMITED).any() or (p.capacity < 0).any():
        raise ProblemError("engine_streams are -1 (no limit) or more, capacities 0 or more")
    if p.binding not in ("free", "engine"):
        raise ProblemError(f"binding is {p.binding!r}; it must be 'free' or 'engine'")
    for name, least in (("streams", 1), ("tasks_per_stream", 1), ("events", 0), ("memory_bytes", 0)):
        limit = getattr(p, name)
        if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < least):
            raise ProblemError(f"{name} is {limit!r}; a whole number of at least {least}, or None, is needed")
    for name in ("gap_ns", "record_ns", "wait_ns", "host_issue_ns"):
        cost = getattr(p, name)
        if not isinstance(cost, int) or isinstance(cost, bool) or cost < 0:
            raise ProblemError(f"{name} is {cost!r}; a whole number of ns, 0 or more, is needed")
    total = sum(p.duration.tolist()) + sum(p.mode_duration.tolist()) + sum(p.delay.tolist())
    total += (n + len(p.edges)) * (p.gap_ns + p.record_ns + p.wait_ns + p.host_issue_ns)
    if total >= _HORIZON or sum(p.tensor_bytes.tolist()) + sum(p.workspace.tolist()) >= _HORIZON:
        raise ProblemError("durations, costs or sizes add up to 2^60 or more, which 64-bit arithmetic cannot carry")


def _check_tensors(p: Problem) -> None:
    n = p.n
    if (p.tensor_bytes < 0).any():
        raise ProblemError(f"tensor {int(np.flatnonzero(p.tensor_bytes < 0)[0])}: its bytes are negative")
    if (np.diff(p.tensor_consumer_start) < 0).any() or (p.tensor_consumer_start.size and p.tensor_consumer_start[0]):
        raise ProblemError("tensor_consumer_start must begin at 0 and never fall")
    if (p.tensor_producer >= n).any() or ((p.tensor_consumer < 0) | (p.tensor_consumer >= n)).any():
        raise ProblemError(f"a tensor is produced or consumed by an op that does not exist; ops are 0 to {n - 1}")
    if ((p.tensor_producer < 0) & ~p.tensor_persistent).any():
        index = int(np.flatnonzero((p.tensor_producer < 0) & ~p.tensor_persistent)[0])
        raise ProblemError(f"tensor {index} dangles: it has no producer and is not persistent")
    owner = np.repeat(p.tensor_producer, np.diff(p.tensor_consumer_start))
    needs = owner >= 0
    given = p.edges[:, 0] * max(n, 1) + p.edges[:, 1]
    wanted = owner[needs] * max(n, 1) + p.tensor_consumer[needs]
    if not (inside := np.isin(wanted, given)).all():
        key = int(wanted[~inside][0])
        raise ProblemError(
            f"op {p.op_names[key % n]!r} consumes a tensor of op {p.op_names[key // n]!r}, "
            "but no dependency orders them; add the edge"
        )
