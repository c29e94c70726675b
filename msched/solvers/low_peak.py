"""Traversals with a low peak: ops one at a time, so that few bytes are live at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from msched.arrays import Int64Array
from msched.problem import Problem
from msched.solvers.tensors import op_tensors


def low_peak_order(problem: Problem) -> Int64Array:
    """Ops in the order, shape (n,), of the lowest serial peak among three: topological, and greedy by net bytes
    forwards and, on the reversed graph, backwards.

    After the memory-aware traversals of Liu (1987), whose optimal tree order also runs what frees most first; on a
    general graph the least peak is NP-hard (Sethi 1975). O(n x ready ops).
    """
    orders = [problem.topological_order, _forwards(problem), _backwards(problem)]
    return min(orders, key=lambda order: serial_peak(problem, order))


def serial_peak(problem: Problem, order: Int64Array) -> int:
    """Most live bytes, beside the persistent tensors, when the ops run one at a time in this order."""
    outputs, inputs = op_tensors(problem)
    size, left = problem.tensor_bytes.tolist(), np.diff(problem.tensor_consumer_start).tolist()
    kept, workspace = problem.tensor_output.tolist(), problem.workspace.tolist()
    live = peak = 0
    for v in order.tolist():
        live += sum(size[t] for t in outputs[v])
        peak = max(peak, live + workspace[v])
        for t in inputs[v]:
            left[t] -= 1
            if left[t] == 0 and not kept[t]:
                live -= size[t]
        live -= sum(size[t] for t in outputs[v] if left[t] == 0 and not kept[t])
    return peak


def _forwards(problem: Problem) -> Int64Array:
    outputs, inputs = op_tensors(problem)
    size, left = problem.tensor_bytes.tolist(), np.diff(problem.tensor_consumer_start).tolist()
    kept = problem.tensor_output.tolist()

    def change(v: int) -> int:
        freed = sum(size[t] for t in inputs[v] if left[t] == 1 and not kept[t])
        return int(sum(size[t] for t in outputs[v]) - freed)

    def take(v: int) -> None:
        for t in inputs[v]:
            left[t] -= 1

    return _greedy(problem.predecessor_start, problem.successor_start, problem.successor, change, take)


def _backwards(problem: Problem) -> Int64Array:
    outputs, inputs = op_tensors(problem)
    size = problem.tensor_bytes.tolist()
    live = problem.tensor_output.tolist()

    def change(v: int) -> int:
        return int(sum(size[t] for t in set(inputs[v]) if not live[t]) - sum(size[t] for t in outputs[v]))

    def take(v: int) -> None:
        for t in inputs[v]:
            live[t] = True

    order = _greedy(problem.successor_start, problem.predecessor_start, problem.predecessor, change, take)
    return np.ascontiguousarray(order[::-1])


def _greedy(
    into: Int64Array, out: Int64Array, target: Int64Array, change: Callable[[int], int], take: Callable[[int], None]
) -> Int64Array:
    """Ready ops one by one, the least change of live bytes first, ties by how recently they became ready."""
    pending = np.diff(into).tolist()
    starts, targets = out.tolist(), target.tolist()
    ready = [v for v, k in enumerate(pending) if k == 0]
    order = []
    while ready:
        at = min(range(len(ready)), key=lambda i: (change(ready[i]), -i))
        v = ready.pop(at)
        take(v)
        order.append(v)
        for w in targets[starts[v] : starts[v + 1]]:
            pending[w] -= 1
            if pending[w] == 0:
                ready.append(w)
    return np.array(order, np.int64)
