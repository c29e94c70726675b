"""Between plans and the CP-SAT model: a plan as a complete hint, a solution as a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from msched.arrays import Int64Array
from msched.plan import Plan, durations_and_demands
from msched.problem import Problem
from msched.solvers.colouring import coloured
from msched.solvers.exact.model import Model
from msched.solvers.exact.scaled import Scaled, Streams


def makespan_of(model_duration: Int64Array, start: Int64Array) -> int:
    """Makespan in grains of start times in grains."""
    return int((start + model_duration).max(initial=0))


def scaled_duration(scaled: Scaled, mode: Int64Array | None) -> Int64Array:
    """Durations in grains of the modes (n,) that a plan chose, None for all 0: shape (n,)."""
    duration = scaled.duration.copy()
    if mode is not None:
        chosen = np.flatnonzero(mode)
        row = np.searchsorted(scaled.problem.mode_op, chosen) + mode[chosen] - 1
        duration[chosen] = scaled.mode_duration[row]
    return duration


def add_hint(model: Model, plan: Plan, start_ns: Int64Array) -> None:
    """Hint every variable of the model: a partial hint found nothing in 20 s where a complete one took 1.3 s.

    start_ns (n,): start times of `plan` under `planned`, which meet every constraint of the problem.
    """
    scaled = model.scaled
    start = start_ns // scaled.grain
    duration = scaled_duration(scaled, plan.mode)
    hints: dict[int, tuple[Any, int]] = {}
    for variable, value in _hints(model, plan, start, start + duration):
        hints[variable.index] = (variable, value)  # labels share variables; a hint given twice is an error
    for variable, value in hints.values():
        model.cp.add_hint(variable, value)


def _hints(model: Model, plan: Plan, start: Int64Array, end: Int64Array) -> Iterator[tuple[Any, int]]:
    problem = model.scaled.problem
    makespan = int(end.max())
    yield model.makespan, makespan
    for v in range(problem.n):
        yield model.start[v], int(start[v])
        for k, literal in enumerate(model.mode[v]):
            yield literal, int((0 if plan.mode is None else plan.mode[v]) == k)
        if model.mode[v]:
            yield model.size[v], int(end[v] - start[v])
            yield model.end[v], int(end[v])
    demand = durations_and_demands(problem, plan)[1]
    for (v, e), need in model.need.items():
        yield need, int(demand[v, e]) // model.unit[e]
    if model.lane:
        yield from _lane_hints(model, plan)
    for row, count in model.stream_count.items():
        yield count, int(np.unique(plan.stream[problem.engine == row]).size)
    for t, span in model.tensor_span.items():
        row_of = slice(problem.tensor_consumer_start[t], problem.tensor_consumer_start[t + 1])
        producer = problem.tensor_producer[t]
        last = int(end[problem.tensor_consumer[row_of]].max(initial=int(end[producer])))
        last = makespan if problem.tensor_output[t] else last
        yield span, last - int(start[producer])
        if t in model.tensor_end:
            yield model.tensor_end[t], last
    position = np.empty(problem.n, np.int64)
    position[plan.order] = np.arange(problem.n)
    for v, issue in enumerate(model.issue):
        yield issue, int(position[v]) * problem.host_issue_ns // model.scaled.grain
    for (u, v), first in model.first.items():
        yield first, int(position[u] < position[v])


def _lane_hints(model: Model, plan: Plan) -> Iterator[tuple[Any, int]]:
    """The plan's streams, numbered by first use in topological order as the model's symmetry breaking wants."""
    problem = model.scaled.problem
    lane: dict[int, int] = {}
    taken: dict[int, int] = {}
    for v in problem.topological_order.tolist():
        options = model.streams.options(problem, v)
        stream = int(plan.stream[v])
        if stream not in lane:
            lane[stream] = options.start + taken.get(options.start, 0)
            taken[options.start] = taken.get(options.start, 0) + 1
        for s, literal in model.lane[v].items():
            yield literal, int(s == lane[stream])
        for s, literal in model.opened.get(v, {}).items():
            yield literal, int(s < options.start + taken[options.start])
    for s, literal in enumerate(model.used):
        yield literal, int(s in lane.values())
    for (u, v), same in model.together.items():
        yield same, int(plan.stream[u] == plan.stream[v])


def decode(model: Model, value: Callable[[Any], int], *, moved: bool = True) -> Plan:
    """The plan of a solution: streams, issue order and modes, with its start times in ns as predictions.

    moved: under a memory limit, whether ops start when a fence can let them go; else when CP-SAT says.
    """
    problem, scaled = model.scaled.problem, model.scaled
    start = np.array([value(variable) for variable in model.start], np.int64)
    mode = np.array([next((k for k, m in enumerate(ms) if value(m)), 0) for ms in model.mode], np.int64)
    duration = scaled_duration(scaled, mode)
    if model.streams.policy == "count" and not scaled.gap:
        _left_justify_empty(problem, start, duration)
    order = issue_order(problem, start, duration)
    if moved and problem.memory_bytes is not None:
        _start_at_releases(model, order, start, duration)
    lanes = np.zeros(problem.n, np.int64)
    if model.streams.policy == "choice":
        lanes = np.array([next(s for s, x in lane.items() if value(x)) for lane in model.lane], np.int64)
    return _plan(scaled, model.streams, order, start, mode, lanes)


def plan_of(scaled: Scaled, streams: Streams, start: Int64Array, mode: Int64Array, stream: Int64Array) -> Plan:
    """The plan of start times in grains, modes and, where they are chosen, streams: shapes (n,)."""
    duration = scaled_duration(scaled, mode)
    return _plan(scaled, streams, issue_order(scaled.problem, start, duration), start, mode, stream)


def issue_order(problem: Problem, start: Int64Array, duration: Int64Array) -> Int64Array:
    """Ops by start; of those that start together first what takes no time: shape (n,)."""
    rank = np.empty(problem.n, np.int64)
    rank[problem.topological_order] = np.arange(problem.n)
    return np.lexsort((rank, duration > 0, start)).astype(np.int64)


def _plan(
    scaled: Scaled, streams: Streams, order: Int64Array, start: Int64Array, mode: Int64Array, lanes: Int64Array
) -> Plan:
    problem, duration = scaled.problem, scaled_duration(scaled, mode)
    stream = lanes
    if streams.policy == "fixed":
        stream = problem.engine if problem.binding == "engine" else np.zeros(problem.n, np.int64)
    elif streams.policy == "count":
        pool = problem.engine if problem.binding == "engine" else np.zeros(problem.n, np.int64)
        stream = coloured(problem, order, start, start + duration + scaled.gap, pool, streams.first)
    return Plan(
        stream=_renumbered(order, stream),
        order=order,
        mode=mode if mode.any() else None,
        predicted_start_ns=start * scaled.grain,
        predicted_makespan_ns=makespan_of(duration, start) * scaled.grain,
    )


def _left_justify_empty(problem: Problem, start: Int64Array, duration: Int64Array) -> None:
    """Move ops without duration to the end of their last producer, where that one's stream changes hands."""
    for v in problem.topological_order.tolist():
        if duration[v] == 0:
            row = slice(problem.predecessor_start[v], problem.predecessor_start[v + 1])
            before = problem.predecessor[row]
            start[v] = (start[before] + duration[before]).max(initial=0)


def _start_at_releases(model: Model, order: Int64Array, start: Int64Array, duration: Int64Array) -> None:
    """Move every op back to the last time before it at which something lets it go, so that a fence can hold it there.

    That is a finish, alone or with the gap or an event after it, the end of one of its own delays, or an issue of the
    host. None lies in between, so there each constraint that the op met at its start is met already, and since the
    times only grow in number the order stays as it was.
    """
    scaled, problem = model.scaled, model.scaled.problem
    after = np.unique([0, scaled.gap, scaled.fence_lag])
    times = np.arange(problem.n + 1) * scaled.host if scaled.host else np.zeros(1, np.int64)
    for v in order.tolist():
        row = slice(problem.predecessor_start[v], problem.predecessor_start[v + 1])
        before, lag = problem.predecessor[row], scaled.lag[problem.predecessor_edge[row]]
        own = start[before] + duration[before] + lag
        start[v] = max(times[np.searchsorted(times, start[v], side="right") - 1], own[own <= start[v]].max(initial=0))
        times = np.union1d(times, np.append(start[v] + duration[v] + after, start[v]))


def _renumbered(order: Int64Array, stream: Int64Array) -> Int64Array:
    """Streams numbered by first use, without holes: shape (n,)."""
    _, first, number = np.unique(stream[order], return_index=True, return_inverse=True)
    result = np.empty(order.size, np.int64)
    result[order] = np.argsort(np.argsort(first))[number]
    return result
