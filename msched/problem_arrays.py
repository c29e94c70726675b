"""The arrays of a problem, and what they must satisfy."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np

from msched.arrays import BoolArray, Int64Array, distinct, frozen_bool, frozen_int64
from msched.errors import ProblemError

UNLIMITED = -1
Binding = Literal["free", "engine"]
_HORIZON = 2**60  # the sum of all durations, delays and costs stays below: no int64 overflow anywhere
_WORK = 2**61  # so does a capacity times that sum: the unit-time that ops can hold, twice, fits in int64
_COUNT = 2**31  # of streams, tasks and events; an array index on every machine
_LABELS = 2**20  # solvers keep one entry a label or communicator


@dataclass(frozen=True, eq=False)
class ProblemArrays:
    """What a `Problem` holds. n ops, E engines, m dependencies, T tensors, M extra modes; times in ns, sizes in bytes.

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

    Arrays are copied and read-only. So that no sum or product of them leaves int64, all times and costs add up to less
    than 2^60 ns, all sizes to less than 2^60 bytes, and every capacity times (times, ops and modes) to less than 2^61;
    limits on streams, tasks and events are below 2^31, labels and communicators below 2^20 or n.
    Raises ProblemError that names the op or the argument.
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
        _check_texts(self)
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

    @property
    def n(self) -> int:
        """Number of ops."""
        return self.duration.size


def integers(argument: str, values: Any, empty: tuple[int, ...]) -> Int64Array:
    """`values` as a read-only array, of shape `empty` if there are none. Raises ProblemError that names `argument`."""
    try:
        array = frozen_int64(values, empty)
    except (TypeError, ValueError, OverflowError) as error:
        raise ProblemError(f"{argument}: {error}") from error
    if array.ndim != len(empty):
        needed = "a plain list" if len(empty) == 1 else "a list of rows"
        raise ProblemError(f"{argument} has shape {array.shape} where {needed} is needed")
    return array


def texts(argument: str, values: Any) -> tuple[str, ...]:
    """`values` as plain strings. Raises ProblemError that names `argument`."""
    try:
        names = () if isinstance(values, str | bytes) else tuple(values)
    except TypeError as error:
        raise ProblemError(f"{argument}: {error}; a list of strings is needed") from error
    if isinstance(values, str | bytes) or not all(isinstance(name, str) for name in names):
        raise ProblemError(f"{argument}: a list of strings is needed")
    return tuple(map(str, names))


def _check_texts(p: ProblemArrays) -> None:
    if not isinstance(p.name, str):
        raise ProblemError(f"name is {p.name!r}; text is needed")
    for argument in ("op_names", "engine_names", "warnings"):
        object.__setattr__(p, argument, texts(argument, getattr(p, argument)))
    for argument, given in (("name", (p.name,)), ("op_names", p.op_names), ("engine_names", p.engine_names)):
        try:
            "".join(given).encode()
        except UnicodeEncodeError as error:
            raise ProblemError(f"{argument}: text that is not Unicode: {error}") from error


def _check_shapes(p: ProblemArrays) -> None:
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


def _check_values(p: ProblemArrays) -> None:
    n, count = p.n, p.capacity.size

    def op(mask: BoolArray) -> str:
        return repr(p.op_names[int(np.flatnonzero(mask)[0])])

    for figure in ("duration", "workspace"):
        if (bad := getattr(p, figure) < 0).any():
            raise ProblemError(f"{figure} of op {op(bad)} is negative")
    for mark in ("label", "communicator"):
        if (bad := getattr(p, mark) < -1).any():
            raise ProblemError(f"{mark} of op {op(bad)} is below -1, which stands for none")
        if (bad := getattr(p, mark) >= max(n, _LABELS)).any():
            raise ProblemError(f"{mark} of op {op(bad)} is {getattr(p, mark)[bad][0]}; count them from 0")
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
    if distinct(p.edges[:, 0] * max(n, 1) + p.edges[:, 1]).size != len(p.edges):
        raise ProblemError("edges: a dependency is given twice")
    _check_tensors(p)
    if (p.engine_streams < UNLIMITED).any() or (p.capacity < 0).any():
        raise ProblemError("engine_streams are -1 (no limit) or more, capacities 0 or more")
    if not isinstance(p.binding, str) or p.binding not in ("free", "engine"):
        raise ProblemError(f"binding is {p.binding!r}; it must be 'free' or 'engine'")
    for name, least in (("streams", 1), ("tasks_per_stream", 1), ("events", 0), ("memory_bytes", 0)):
        limit = getattr(p, name)
        if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < least):
            raise ProblemError(f"{name} is {limit!r}; a whole number of at least {least}, or None, is needed")
    for name in ("gap_ns", "record_ns", "wait_ns", "host_issue_ns"):
        cost = getattr(p, name)
        if not isinstance(cost, int) or isinstance(cost, bool) or cost < 0:
            raise ProblemError(f"{name} is {cost!r}; a whole number of ns, 0 or more, is needed")
        if cost >= _HORIZON:
            raise ProblemError(f"{name} is {cost} ns, which 64-bit arithmetic cannot carry; it must be below 2^60")
    _check_magnitudes(p)


def _check_magnitudes(p: ProblemArrays) -> None:
    """No sum or product that a solver, a bound or the simulator forms leaves int64."""
    for name, most in (("streams", _COUNT), ("tasks_per_stream", _COUNT), ("events", _COUNT), ("memory_bytes", 2**63)):
        if (limit := getattr(p, name)) is not None and limit >= most:
            raise ProblemError(f"{name} is {limit}; a number below 2^{most.bit_length() - 1}, or None, is needed")
    if (p.engine_streams >= _COUNT).any():
        raise ProblemError(f"engine_streams: {p.engine_streams.max()} is not below 2^31; None stands for no limit")
    lanes = max(p.streams or 0, int(p.engine_streams.max(initial=0)))
    total = _total(p.duration) + _total(p.mode_duration) + _total(p.delay) + lanes * p.gap_ns
    total += (p.n + len(p.edges) + 1) * (p.gap_ns + p.record_ns + p.wait_ns + p.host_issue_ns)
    if total >= _HORIZON or _total(p.tensor_bytes) + _total(p.workspace) >= _HORIZON:
        raise ProblemError("durations, costs or sizes add up to 2^60 or more, which 64-bit arithmetic cannot carry")
    most = max((_WORK - 1) // (total + p.n + p.mode_op.size + 1), 0)
    if (over := p.capacity > most).any():
        e = int(np.flatnonzero(over)[0])
        raise ProblemError(
            f"capacity of engine {p.engine_names[e]!r} is {p.capacity[e]}; times the {total} ns of all durations and "
            f"costs it reaches 2^61, which 64-bit arithmetic cannot carry; count in a unit so large that it is at most "
            f"{most}"
        )


def _total(figures: Int64Array) -> int:
    """The exact sum of figures that are not negative."""
    if int(figures.max(initial=0)) * figures.size < 2**63:
        return int(figures.sum())
    return sum(figures.tolist())


def _check_tensors(p: ProblemArrays) -> None:
    n = p.n
    if (p.tensor_producer < UNLIMITED).any():
        index = int(np.flatnonzero(p.tensor_producer < UNLIMITED)[0])
        raise ProblemError(
            f"tensor {index}: its producer is {p.tensor_producer[index]}; an op, or -1 for none, is needed"
        )
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
    if not needs.any():
        return
    given = np.sort(p.edges[:, 0] * max(n, 1) + p.edges[:, 1])
    wanted = owner[needs] * max(n, 1) + p.tensor_consumer[needs]
    if not (inside := np.append(given, -1)[np.searchsorted(given, wanted)] == wanted).all():
        key = int(wanted[~inside][0])
        raise ProblemError(
            f"op {p.op_names[key % n]!r} consumes a tensor of op {p.op_names[key // n]!r}, "
            "but no dependency orders them; add the edge"
        )
