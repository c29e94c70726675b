"""The limits of a problem: which no plan can meet, and which a given plan breaks. The one place that checks them."""

from __future__ import annotations

import numpy as np

from msched.arrays import Int64Array
from msched.bounds import shortest_durations
from msched.plan import Plan
from msched.problem import UNLIMITED, Problem
from msched.simulator import Timeline


def impossible(problem: Problem) -> str:
    """Why no plan of the problem can meet its limits, or an empty string when nothing simple forbids one."""
    for check in (unbindable, _tasks_for_streams, _events_between_engines, _memory_of_one_op, _memory_of_outputs):
        if reason := check(problem):
            return reason
    return ""


def broken(problem: Problem, plan: Plan, timeline: Timeline) -> str:
    """Which limit a plan breaks, or an empty string."""
    if reason := misplaced(problem, plan.stream) or overcounted(problem, plan, timeline.waits):
        return reason
    if problem.memory_bytes is not None and timeline.peak_bytes > problem.memory_bytes:
        return f"the plan's peak is {timeline.peak_bytes} live bytes, the limit is {problem.memory_bytes}"
    return ""


def overcounted(problem: Problem, plan: Plan, waits: Int64Array) -> str:
    """Which limit on what waits are counted by, tasks of a stream or events, a plan breaks, or an empty string."""
    if problem.tasks_per_stream is not None and problem.n:
        tasks = tasks_in_streams(plan, waits)
        if (most := int(tasks.max())) > problem.tasks_per_stream:
            return (
                f"stream {int(tasks.argmax())} holds {most} tasks (ops, records and waits), "
                f"the limit is {problem.tasks_per_stream}; allow more streams"
            )
    if problem.events is not None and len(waits) > problem.events:
        return f"the plan needs {len(waits)} events, the limit is {problem.events}; use fewer streams"
    return ""


def tasks_in_streams(plan: Plan, waits: Int64Array) -> Int64Array:
    """Tasks of each stream, shape (streams,): its ops, one record for each wait on them, two tasks for each wait."""
    count = plan.streams
    ops = np.bincount(plan.stream, minlength=count)
    records = np.bincount(plan.stream[waits[:, 0]], minlength=count)
    received = np.bincount(plan.stream[waits[:, 1]], minlength=count)
    return (ops + records + 2 * received).astype(np.int64)


def misplaced(problem: Problem, stream: Int64Array) -> str:
    """Which limit on streams, labels or binding an assignment (n,), numbered without holes, breaks; or empty."""
    used = int(stream.max(initial=-1)) + 1
    if problem.streams is not None and used > problem.streams:
        return f"the plan uses {used} streams, the limit is {problem.streams}"
    labelled = np.flatnonzero(problem.label >= 0)
    if (op := _odd_one(problem.label[labelled], stream[labelled])) is not None:
        return f"op {problem.op_names[labelled[op]]!r} is on another stream than the rest of its label"
    if problem.binding != "engine":
        return ""
    if (op := _odd_one(stream, problem.engine)) is not None:
        return f"op {problem.op_names[op]!r} shares a stream with ops of another engine, but binding is 'engine'"
    for e, limit in enumerate(problem.engine_streams.tolist()):
        own = np.unique(stream[problem.engine == e]).size
        if limit != UNLIMITED and own > limit:
            return f"engine {problem.engine_names[e]!r} has {own} streams, its limit is {limit}"
    return ""


def _odd_one(group: Int64Array, value: Int64Array) -> int | None:
    """An entry whose value differs from the first of its group, or None."""
    _, first, inverse = np.unique(group, return_index=True, return_inverse=True)
    odd = np.flatnonzero(value != value[first][inverse])
    return int(odd[0]) if odd.size else None


def unbindable(problem: Problem) -> str:
    """Why streams cannot be bound to engines as the problem asks, or an empty string."""
    if problem.binding != "engine":
        return ""
    used = np.unique(problem.engine)
    names = ", ".join(problem.engine_names[e] for e in used)
    if problem.streams is not None and used.size > problem.streams:
        return (
            f"binding 'engine' needs a stream for each of the {used.size} engines in use ({names}), "
            f"but streams is {problem.streams}; allow {used.size} streams or binding 'free'"
        )
    for e in used.tolist():
        if problem.engine_streams[e] == 0:
            return f"engine {problem.engine_names[e]!r} is in use, but may have no stream"
    for label in np.unique(problem.label[problem.label >= 0]).tolist():
        engines = np.unique(problem.engine[problem.label == label])
        if engines.size > 1:
            op = problem.op_names[int(np.flatnonzero(problem.label == label)[0])]
            return f"the label of op {op!r} joins ops of {engines.size} engines, which binding 'engine' forbids"
    return ""


def _tasks_for_streams(problem: Problem) -> str:
    limit, streams = problem.tasks_per_stream, problem.streams
    if limit is None:
        return ""
    if streams is not None and problem.n > limit * streams:
        return f"{problem.n} ops do not fit on {streams} streams of at most {limit} tasks"
    sizes = np.bincount(problem.label[problem.label >= 0])
    if sizes.size and sizes.max() > limit:
        return f"a label joins {int(sizes.max())} ops on one stream, which takes at most {limit} tasks"
    return ""


def _events_between_engines(problem: Problem) -> str:
    """Where streams are bound to engines, an engine with an op that depends on another engine waits once at least, and
    one with an op that another engine depends on records once."""
    if problem.binding != "engine":
        return ""
    before, after = problem.engine[problem.edges[:, 0]], problem.engine[problem.edges[:, 1]]
    count = problem.capacity.size
    ops = np.bincount(problem.engine, minlength=count)
    records = np.minimum(np.bincount(before[before != after], minlength=count), 1)
    received = np.minimum(np.bincount(after[before != after], minlength=count), 1)
    least = int(max(records.sum(), received.sum()))
    if problem.events is not None and least > problem.events:
        return (
            f"the dependencies between engines take {least} events at least, but events is {problem.events}; "
            f"allow {least} or more, or binding 'free'"
        )
    if (limit := problem.tasks_per_stream) is None:
        return ""
    spare = problem.n if problem.streams is None else problem.streams - int((ops > 0).sum())
    for e in np.flatnonzero(ops).tolist():
        tasks, own = int(ops[e] + records[e] + 2 * received[e]), int(problem.engine_streams[e])
        streams = min(int(ops[e]), spare + 1, problem.n if own == UNLIMITED else own)
        if tasks > limit * streams:
            return (
                f"engine {problem.engine_names[e]!r} has {tasks} tasks at least (ops, records and waits), which do not "
                f"fit on {streams} streams of at most {limit} tasks; allow more of either, or binding 'free'"
            )
    return ""


def memory_needs(problem: Problem) -> Int64Array:
    """Bytes live while each op runs, whatever the plan: persistent tensors, its inputs, outputs and workspace: (n,)."""
    passing = ~problem.tensor_persistent
    need = problem.workspace.copy()
    np.add.at(need, problem.tensor_producer[passing], problem.tensor_bytes[passing])
    owner = np.repeat(np.arange(problem.tensor_bytes.size), np.diff(problem.tensor_consumer_start))
    entry = np.unique(np.stack([owner, problem.tensor_consumer], axis=1)[passing[owner]], axis=0)
    np.add.at(need, entry[:, 1], problem.tensor_bytes[entry[:, 0]])
    need[shortest_durations(problem) == 0] = 0  # an empty interval holds nothing
    return need + int(problem.tensor_bytes[problem.tensor_persistent].sum())


def _memory_of_one_op(problem: Problem) -> str:
    if problem.memory_bytes is None or not problem.n:
        return ""
    need = memory_needs(problem)
    op = int(need.argmax())
    if need[op] > problem.memory_bytes:
        return (
            f"op {problem.op_names[op]!r} alone needs {need[op]} live bytes (its inputs, outputs and workspace beside "
            f"the persistent tensors), but memory_bytes is {problem.memory_bytes}"
        )
    return ""


def _memory_of_outputs(problem: Problem) -> str:
    if problem.memory_bytes is None or not problem.n:
        return ""
    takes_time = shortest_durations(problem)[problem.tensor_producer] > 0
    kept = problem.tensor_persistent | (problem.tensor_output & takes_time)
    total = int(problem.tensor_bytes[kept].sum())
    if total > problem.memory_bytes:
        return f"persistent tensors and outputs alone are {total} bytes, but memory_bytes is {problem.memory_bytes}"
    return ""
