"""The arguments of `Problem.from_arrays`, brought into the arrays of a problem; each error names its argument."""

from __future__ import annotations

from operator import index as whole
from typing import Any

import numpy as np

from msched.arrays import BoolArray, Int64Array, distinct, frozen_bool, frozen_int64, pairs
from msched.errors import ProblemError
from msched.problem_arrays import UNLIMITED, integers

_TABLE = 2**28  # most entries of a table of demands that no one wrote down: 2 GiB


def booleans(argument: str, values: Any) -> BoolArray:
    """`values` as a read-only array. Raises ProblemError that names `argument`."""
    try:
        return frozen_bool(values)
    except (TypeError, ValueError) as error:
        raise ProblemError(f"{argument}: {error}") from error


def fields_of_tensors(tensors: Any, outputs: Any) -> dict[str, Any]:
    """The fields `tensor_*` of (producer or None, bytes, [consumers]) rows and the indices of outputs."""
    try:
        rows = [(-1 if p is None else whole(p), whole(b), [whole(c) for c in cs]) for p, b, cs in tensors]
    except (TypeError, ValueError) as error:
        raise ProblemError(f"tensors are (producer or None, bytes, [consumers]): {error}") from error
    try:
        chosen = [whole(index) for index in outputs]
    except (TypeError, ValueError) as error:
        raise ProblemError(f"outputs are indices of tensors: {error}") from error
    output = np.zeros(len(rows), np.bool_)
    for index in chosen:
        if not 0 <= index < len(rows):
            raise ProblemError(f"outputs: there is no tensor {index}; there are {len(rows)}")
        output[index] = True
    return {
        "tensor_producer": integers("tensors", [p for p, _, _ in rows], (0,)),
        "tensor_bytes": integers("tensors", [b for _, b, _ in rows], (0,)),
        "tensor_consumer_start": frozen_int64(np.cumsum([0, *(len(cs) for _, _, cs in rows)])),
        "tensor_consumer": integers("tensors", [c for _, _, cs in rows for c in cs], (0,)),
        "tensor_persistent": np.array([p < 0 for p, _, _ in rows], np.bool_),
        "tensor_output": output,
    }


def fields_of_modes(modes: Any, count: int) -> dict[str, Any]:
    """The fields `mode_*` of (op, duration, demand of each of `count` engines) rows."""
    try:
        rows = sorted(((whole(v), k, whole(d), list(q)) for k, (v, d, q) in enumerate(modes)), key=lambda r: r[:2])
    except (TypeError, ValueError) as error:
        raise ProblemError(f"modes are (op, duration, [demands]): {error}") from error
    return {
        "mode_op": integers("modes", [v for v, _, _, _ in rows], (0,)),
        "mode_duration": integers("modes", [d for _, _, d, _ in rows], (0,)),
        "mode_demand": integers("modes", [q for _, _, _, q in rows], (0, count)),
    }


def stream_limits(engine_streams: Any, count: int) -> Int64Array:
    """Most streams of each engine, UNLIMITED for None: shape (count,)."""
    if engine_streams is None:
        return integers("engine_streams", [UNLIMITED] * count, (0,))
    try:
        limits = [UNLIMITED if limit is None else limit for limit in engine_streams]
    except TypeError as error:
        raise ProblemError(f"engine_streams: {error}; one limit an engine, or None for none, is needed") from error
    return integers("engine_streams", limits, (0,))


def canonical_edges(edges: Any, delay: Any, n: int) -> tuple[Int64Array, Int64Array]:
    """Dependencies, each once with its largest delay, in the order given: shapes (m, 2) and (m,)."""
    try:
        arcs = pairs(edges)
    except (TypeError, ValueError, OverflowError) as error:
        raise ProblemError(f"edges: {error}") from error
    delays = integers("delay", delay if delay is not None else np.zeros(len(arcs), np.int64), (0,))
    if delays.shape != (len(arcs),):
        raise ProblemError(f"delay: {delays.size} figures for {len(arcs)} edges; one a dependency is needed")
    if arcs.min(initial=0) < 0 or arcs.max(initial=-1) >= n:
        u, v = arcs[np.flatnonzero(((arcs < 0) | (arcs >= n)).any(axis=1))[0]].tolist()
        raise ProblemError(f"edges: ({u}, {v}) names an op that does not exist; ops are 0 to {n - 1}")
    key = arcs[:, 0] * max(n, 1) + arcs[:, 1]
    if distinct(key).size == len(arcs):
        return arcs, delays
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    largest = np.zeros(first.size, np.int64)
    np.maximum.at(largest, inverse, delays)
    by_position = np.argsort(first)
    return arcs[first[by_position]], largest[by_position]


def engines(n: int, demand: Any, capacity: Any, engine: Any) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Demands (n, E), capacities (E,) and the engine that binds each op (n,): if not given, of its largest share."""
    if (demand is None) != (capacity is None):
        raise ProblemError("demand and capacity go together: give both, or neither for no engine limits")
    if demand is None:
        binder = integers("engine", engine if engine is not None else np.zeros(n, np.int64), (0,))
        count = int(binder.max(initial=0)) + 1
        if n * count > _TABLE:
            op = int(binder.argmax())
            raise ProblemError(f"engine of op {op} is {count - 1}; count engines from 0, {_TABLE // n} of them at most")
        return np.zeros((n, count), np.int64), np.zeros(count, np.int64), binder
    capacities = integers("capacity", capacity, (0,))
    demands = integers("demand", demand, (n, capacities.size))
    if demands.shape != (n, capacities.size):
        raise ProblemError(
            f"demand has shape {demands.shape}; {n} ops and {capacities.size} engines were given by capacity"
        )
    if engine is None:
        share = demands / np.maximum(capacities, 1)
        binder = frozen_int64(share.argmax(axis=1) if capacities.size else np.zeros(n, np.int64))
    else:
        binder = integers("engine", engine, (0,))
    return demands, capacities, binder
