"""Problem: a network placed and priced on a device, as plain arrays; the only thing that a solver reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from operator import index as whole
from typing import TYPE_CHECKING, Any

import numpy as np

from msched.arrays import Int64Array, compressed_rows, frozen_int64, pairs
from msched.errors import ProblemError
from msched.problem_arrays import UNLIMITED, Binding, ProblemArrays, integers
from msched.problem_exchange import SCHEMA, fields_of_graph, fields_of_json, graph_of, json_of
from msched.topology import find_cycle, topological_order

if TYPE_CHECKING:
    import networkx

__all__ = ["SCHEMA", "UNLIMITED", "Binding", "Problem"]


@dataclass(frozen=True, eq=False)
class Problem(ProblemArrays):
    """What is scheduled: the fields of `ProblemArrays`, which says what each is, in what shape and unit.

    Two problems are equal when all arrays and scalars are. Raises ProblemError that names the op or the argument, or
    the ops of a cycle.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.topological_order) < self.n:
            cycle = find_cycle(self.n, self.edges, self.topological_order)
            names = [self.op_names[v] for v in [*cycle, cycle[0]]]
            raise ProblemError("the dependencies have a cycle: " + " -> ".join(names))

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
        durations = integers("duration", duration, (0,))
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
            tensor_producer=integers("tensors", [p for p, _, _ in rows], (0,)),
            tensor_bytes=integers("tensors", [b for _, b, _ in rows], (0,)),
            tensor_consumer_start=frozen_int64(np.cumsum([0, *(len(cs) for _, _, cs in rows)])),
            tensor_consumer=integers("tensors", consumers, (0,)),
            tensor_persistent=persistent,
            tensor_output=output,
            workspace=integers("workspace", workspace if workspace is not None else np.zeros(n, np.int64), (0,)),
            engine_streams=integers(
                "engine_streams",
                [UNLIMITED] * count
                if engine_streams is None
                else [UNLIMITED if k is None else k for k in engine_streams],
                (0,),
            ),
            label=integers("label", label if label is not None else np.full(n, -1), (0,)),
            communicator=integers("communicator", communicator if communicator is not None else np.full(n, -1), (0,)),
            mode_op=integers("modes", [v for v, _, _, _ in extra], (0,)),
            mode_duration=integers("modes", [d for _, _, d, _ in extra], (0,)),
            mode_demand=integers("modes", [q for _, _, _, q in extra], (0, count)),
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
        return json_of(self)

    @staticmethod
    def from_json(data: bytes | str) -> Problem:
        """Inverse of `to_json`. Raises ProblemError that names the missing, unknown or broken field."""
        return Problem(**fields_of_json(data))

    def to_networkx(self) -> networkx.DiGraph[int]:
        """Nodes are op indices with `name`, `duration`, `engine`, `demand` (units of each engine), `workspace`, `label`
        and `communicator`; edges carry `delay`; `graph.graph["problem"]` maps the other fields by name."""
        return graph_of(self)

    @staticmethod
    def from_networkx(graph: networkx.DiGraph[Any]) -> Problem:
        """Inverse of `to_networkx`; the edges come back in the order of the original, new ones behind them.

        Raises ProblemError: not a graph of `to_networkx`, or a node that lacks an attribute.
        """
        return Problem(**fields_of_graph(graph))


def _canonical_edges(edges: Any, delay: Any, n: int) -> tuple[Int64Array, Int64Array]:
    try:
        arcs = pairs(edges)
    except (TypeError, ValueError, OverflowError) as error:
        raise ProblemError(f"edges: {error}") from error
    delays = integers("delay", delay if delay is not None else np.zeros(len(arcs), np.int64), (0,))
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
        binder = integers("engine", engine if engine is not None else np.zeros(n, np.int64), (0,))
        count = int(binder.max(initial=0)) + 1
        return np.zeros((n, count), np.int64), np.zeros(count, np.int64), binder
    capacities = integers("capacity", capacity, (0,))
    demands = integers("demand", demand, (n, capacities.size))
    if demands.shape != (n, capacities.size):
        raise ProblemError(f"demand has shape {demands.shape}; {n} ops and {capacities.size} engines were given")
    if engine is None:
        share = demands / np.maximum(capacities, 1)
        binder = frozen_int64(share.argmax(axis=1) if capacities.size else np.zeros(n, np.int64))
    else:
        binder = integers("engine", engine, (0,))
    return demands, capacities, binder
