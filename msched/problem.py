"""Problem: a network placed and priced on a device, as plain arrays; the only thing that a solver reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from msched.arrays import Int64Array, compressed_rows
from msched.errors import ProblemError
from msched.problem_arguments import (
    booleans,
    canonical_edges,
    engines,
    fields_of_modes,
    fields_of_tensors,
    stream_limits,
)
from msched.problem_arrays import UNLIMITED, Binding, ProblemArrays, integers, texts
from msched.problem_exchange import SCHEMA, fields_of_graph, fields_of_json, graph_of, json_of
from msched.topology import find_cycle

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
        from msched.topology_kernel import topological_order

        return topological_order(self.successor_start, self.successor)

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
        arcs, delays = canonical_edges(edges, delay, n)
        tensor_fields = fields_of_tensors(tensors, outputs)
        demands, capacities, binder = engines(n, demand, capacity, engine)
        count = capacities.size
        return Problem(
            name=name,
            op_names=texts("op_names", op_names) if op_names is not None else tuple(f"op{v}" for v in range(n)),
            engine_names=texts("engine_names", engine_names)
            if engine_names is not None
            else tuple(f"engine{e}" for e in range(count)),
            duration=durations,
            demand=demands,
            engine=binder,
            capacity=capacities,
            communication=booleans("communication", communication if communication is not None else [False] * count),
            edges=arcs,
            delay=delays,
            **tensor_fields,
            workspace=integers("workspace", workspace if workspace is not None else np.zeros(n, np.int64), (0,)),
            engine_streams=stream_limits(engine_streams, count),
            label=integers("label", label if label is not None else np.full(n, -1), (0,)),
            communicator=integers("communicator", communicator if communicator is not None else np.full(n, -1), (0,)),
            **fields_of_modes(modes, count),
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
