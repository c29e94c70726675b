"""An independent check of a problem, a plan and a timeline; shares no code with what it checks.

A module that can be called: `msched.validate(problem, plan, timeline)`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from msched.arrays import Int64Array
from msched.errors import OptionError, PlanError
from msched.plan import Plan
from msched.problem import Problem
from msched.rederivation import Rederivation, levels, neighbours

if TYPE_CHECKING:
    from msched.simulator import Timeline
    from msched.solvers.base import Dispatch


@dataclass(frozen=True)
class Violation:
    """One broken rule of the model: its short name, and what was found where and what is allowed."""

    rule: str
    reason: str


def validate(problem: Problem, plan: Plan, timeline: Timeline, dispatch: Dispatch = "arrival") -> list[Violation]:
    """Every rule that `plan`, or its run of fidelity `fixed`, breaks; an empty list when all is well.

    shape, order, mode, streams: arrays that fit, an issue order that extends dependencies and fences, streams from 0
        without holes. Where these fail nothing else can be asked, and only they are returned.
    streams, engine-streams, binding, label, tasks, events, memory: the limits of the problem.
    communicator: collectives of one communicator are ordered by dependencies, fences and stream order.
    fifo, overlap, gap: a stream runs one op at a time, in issue order. host-issue, dependency, fence: arrival.
    capacity, overtaking, late: no engine is over capacity; an op starts when, and only when, `dispatch` lets it.
    finish, makespan, waits, peak, utilisation, exposed, critical: figures of the timeline, computed again.

    Raises OptionError for a dispatch that does not exist or no timeline, PlanError for no plan. Takes
    O((n + m) n / 64) for the waits, else O(n log n), and under `greedy` O(n x distinct demands).
    """
    if dispatch not in ("arrival", "planned", "greedy"):
        raise OptionError(f"dispatch is {dispatch!r}; it must be arrival, planned or greedy")
    if not isinstance(plan, Plan):
        raise PlanError(f"validate needs a Plan, not {type(plan).__name__}; solve the problem first")
    if timeline is None:
        raise OptionError("validate needs the timeline of a run, not None; simulate the plan first")
    for stage in (_shapes, _structure):
        if broken := list(stage(problem, plan, timeline)):
            return broken
    run = Rederivation(problem, plan, timeline, dispatch)
    rules: tuple[Callable[[Rederivation], Iterator[Violation]], ...] = (
        _streams, _labels, _communicators, _waits, _stream_order, _arrival, _capacity, _dispatch, _figures
    )  # fmt: skip
    return [violation for rule in rules for violation in rule(run)]


def _shapes(problem: Problem, plan: Plan, timeline: Timeline) -> Iterator[Violation]:
    n, engines = problem.demand.shape
    arrays = {
        "stream": (plan.stream, (n,)), "order": (plan.order, (n,)), "mode": (plan.mode, (n,)),
        "start_ns": (timeline.start_ns, (n,)), "finish_ns": (timeline.finish_ns, (n,)),
        "utilisation": (timeline.utilisation, (engines,)), "waits": (timeline.waits, (len(timeline.waits), 2)),
        "critical_ops": (timeline.critical_ops, (len(timeline.critical_ops),)),
    }  # fmt: skip
    for name, (array, shape) in arrays.items():
        kind, what = ("f", "fractions") if name == "utilisation" else ("i", "whole numbers")
        if array is not None and (array.shape != shape or array.dtype.kind != kind):
            yield Violation(
                "shape", f"{name}: {array.dtype} of shape {array.shape}; needed are {what} of shape {shape}"
            )
    for name, ops in (("fences", plan.fences), ("waits", timeline.waits), ("critical_ops", timeline.critical_ops)):
        if ((ops < 0) | (ops >= n)).any():
            yield Violation("shape", f"{name} names an op that does not exist; ops are 0 to {n - 1}")


def _structure(problem: Problem, plan: Plan, timeline: Timeline) -> Iterator[Violation]:
    n, used = problem.n, np.unique(plan.stream)
    if not np.array_equal(used, np.arange(used.size)):
        yield Violation("streams", f"streams {', '.join(map(str, used))} are used; they count from 0 without holes")
    if plan.mode is not None:
        most = np.bincount(problem.mode_op, minlength=n)
        for v in np.flatnonzero((plan.mode < 0) | (plan.mode > most)):
            yield Violation("mode", f"op {problem.op_names[v]!r} runs in mode {plan.mode[v]}; it has 0 to {most[v]}")
    if not np.array_equal(np.sort(plan.order), np.arange(n)):
        yield Violation("order", f"the issue order must list each of the ops 0 to {n - 1} once")
        return
    position = np.argsort(plan.order)
    for rows, what in ((problem.edges, "dependency"), (plan.fences, "fence")):
        for u, v in rows[position[rows[:, 0]] >= position[rows[:, 1]]].tolist():
            names = f"{problem.op_names[u]!r} -> {problem.op_names[v]!r}"
            yield Violation("order", f"{what} {names}: issued at {position[u]} and {position[v]}, the wrong way round")


def _streams(run: Rederivation) -> Iterator[Violation]:
    p, plan = run.problem, run.plan
    if p.streams is not None and plan.streams > p.streams:
        yield Violation("streams", f"{plan.streams} streams are used; {p.streams} are allowed")
    if p.binding != "engine":
        return
    served = np.unique(np.column_stack([plan.stream, p.engine]), axis=0)
    for s in np.flatnonzero(np.bincount(served[:, 0]) > 1):
        engines = ", ".join(p.engine_names[e] for e in served[served[:, 0] == s, 1])
        yield Violation("binding", f"stream {s} serves the engines {engines}; one is allowed")
    count = np.bincount(served[:, 1], minlength=p.capacity.size)
    for e in np.flatnonzero((p.engine_streams >= 0) & (count > p.engine_streams)):
        most = p.engine_streams[e]
        yield Violation("engine-streams", f"engine {p.engine_names[e]!r} has {count[e]} streams; {most} are allowed")


def _labels(run: Rederivation) -> Iterator[Violation]:
    stream, name = run.plan.stream, run.problem.op_names
    for u, v in neighbours(run.problem.label, run.position).tolist():
        if stream[u] != stream[v]:
            where = f"on streams {stream[u]} and {stream[v]}"
            yield Violation("label", f"{name[u]!r} and {name[v]!r} are {where}; ops of one label share a stream")


def _communicators(run: Rederivation) -> Iterator[Violation]:
    name, near = run.problem.op_names, neighbours(run.problem.communicator, run.position)
    near = near[~run.implied(near)]
    if len(near):
        near = near[~np.isin(_keys(run, near), _keys(run, np.concatenate([run.links, run.chain])))]
    for u, v in near.tolist():
        what = f"collectives of communicator {run.problem.communicator[u]}"
        yield Violation("communicator", f"nothing orders {name[u]!r} before {name[v]!r}, {what}; a fence would")


def _keys(run: Rederivation, pairs: Int64Array) -> Int64Array:
    """One number a pair of ops, in the order of the pairs: shape (k,)."""
    return pairs[:, 0] * max(run.problem.n, 1) + pairs[:, 1]


def _waits(run: Rederivation) -> Iterator[Violation]:
    p, name, stream, n = run.problem, run.problem.op_names, run.plan.stream, max(run.problem.n, 1)
    right, told = _keys(run, run.waits), _keys(run, run.timeline.waits)
    for u, v in (divmod(key, n) for key in np.setdiff1d(right, told).tolist()):
        yield Violation("waits", f"{name[v]!r} must wait for {name[u]!r}, which nothing else implies")
    for u, v in (divmod(key, n) for key in np.setdiff1d(told, right).tolist()):
        yield Violation("waits", f"{name[v]!r} need not wait for {name[u]!r}: nothing asks for it, or others imply it")
    if twice := told.size - np.unique(told).size:
        yield Violation("waits", f"{twice} are listed twice; each is one event")
    if p.events is not None and len(right) > p.events:
        yield Violation("events", f"the plan needs {len(right)} events; {p.events} are allowed")
    tasks = np.bincount(np.concatenate([stream, stream[run.waits[:, 0]], np.repeat(stream[run.waits[:, 1]], 2)]))
    for s in np.flatnonzero(tasks > (p.tasks_per_stream or np.inf)):
        yield Violation("tasks", f"stream {s} has {tasks[s]} tasks; {p.tasks_per_stream} are allowed")


def _stream_order(run: Rederivation) -> Iterator[Violation]:
    name, start, finish = run.problem.op_names, run.timeline.start_ns, run.timeline.finish_ns
    least = finish[run.chain[:, 0]] + run.problem.gap_ns
    for i in np.flatnonzero(start[run.chain[:, 1]] < least):
        u, v = run.chain[i]
        rule = "fifo" if start[v] < start[u] else "overlap" if start[v] < finish[u] else "gap"
        told = f"{name[v]!r}, issued after {name[u]!r}, starts at {start[v]} ns; {least[i]} ns is the earliest"
        yield Violation(rule, f"stream {run.plan.stream[v]}: {told}")


def _arrival(run: Rederivation) -> Iterator[Violation]:
    name, start, finish = run.problem.op_names, run.timeline.start_ns, run.timeline.finish_ns
    least = finish[run.links[:, 0]] + run.lag
    for i in np.flatnonzero(start[run.links[:, 1]] < least):
        (u, v), rule = run.links[i], "dependency" if i < len(run.problem.edges) else "fence"
        told = f"{name[v]!r} starts at {start[v]} ns; after {name[u]!r}, which ends at {finish[u]} ns"
        yield Violation(rule, f"{told}, {least[i]} ns is the earliest")
    issued = (run.position + 1) * run.problem.host_issue_ns
    for v in np.flatnonzero(start < issued):
        yield Violation("host-issue", f"{name[v]!r} starts at {start[v]} ns; {issued[v]} ns is the earliest")


def _capacity(run: Rederivation) -> Iterator[Violation]:
    for e, capacity in enumerate(run.problem.capacity.tolist()):
        time, level = levels(run.timeline.start_ns, run.timeline.finish_ns, run.held[:, e])
        for i in np.flatnonzero(level > capacity)[:1]:
            where = f"engine {run.problem.engine_names[e]!r} at {time[i]} ns"
            yield Violation("capacity", f"{where}: {level[i]} units are held; {capacity} are there")


def _dispatch(run: Rederivation) -> Iterator[Violation]:
    name, start, due = run.problem.op_names, run.timeline.start_ns, run.arrival.copy()
    fits = np.full(run.problem.n, run.dispatch != "greedy")
    if run.dispatch == "greedy":
        fits[(run.held == 0).all(axis=1)] = True
        fits |= run.passed_over()
    else:
        for e, capacity in enumerate(run.problem.capacity.tolist()):
            queue = np.argsort(run.turn)
            queue = queue[run.held[queue, e] > 0]
            ahead = np.maximum.accumulate(np.append(0, start[queue]))[:-1]
            for v, begun in zip(queue[start[queue] < ahead], ahead[start[queue] < ahead], strict=True):
                told = f"one ahead of it on engine {run.problem.engine_names[e]!r} starts at {begun} ns"
                yield Violation("overtaking", f"{name[v]!r} starts at {start[v]} ns; {told} ({run.dispatch})")
            due[queue] = np.maximum(due[queue], ahead)
            # Once all ahead of an op have started, units are only given back until it starts: one look is enough.
            time, level = levels(start, run.timeline.finish_ns, run.held[:, e])
            just_before = np.append(level, 0)[np.searchsorted(time, start[queue] - 1, side="right") - 1]
            fits[queue] &= just_before + run.held[queue, e] <= capacity
    for v in np.flatnonzero(fits & (start > due)):
        told = f"arrived at {run.arrival[v]} ns, it could have started earlier ({run.dispatch})"
        yield Violation("late", f"{name[v]!r} starts at {start[v]} ns; {told}")


def _figures(run: Rederivation) -> Iterator[Violation]:
    p, timeline, start, finish = run.problem, run.timeline, run.timeline.start_ns, run.timeline.finish_ns
    for v in np.flatnonzero(finish != start + run.duration):
        told = f"{start[v]} to {finish[v]} ns, but takes {run.duration[v]} ns"
        yield Violation("finish", f"{p.op_names[v]!r} runs from {told}")
    makespan, peak = int(finish.max(initial=0)), run.peak_bytes
    if timeline.makespan_ns != makespan:
        yield Violation("makespan", f"{timeline.makespan_ns} ns is reported; the last op ends at {makespan} ns")
    if timeline.peak_bytes != peak:
        yield Violation("peak", f"{timeline.peak_bytes} bytes are reported; {peak} are live at once")
    if p.memory_bytes is not None and peak > p.memory_bytes:
        yield Violation("memory", f"{peak} bytes are live at once; {p.memory_bytes} are allowed")
    work, room = run.duration.astype(float) @ run.held, p.capacity * float(makespan)
    busy = np.divide(work, room, out=np.zeros(room.size), where=room > 0)
    for e in np.flatnonzero(~np.isclose(timeline.utilisation, busy, rtol=1e-9, atol=1e-12)):
        told = f"{timeline.utilisation[e]} is reported; {busy[e]} of it is held"
        yield Violation("utilisation", f"engine {p.engine_names[e]!r}: {told}")
    moves = p.communication[p.engine]
    time, moving = levels(start, finish, np.where(moves, 1, 0))
    computing = levels(start, finish, np.where(moves, 0, 1))[1]
    exposed = int(np.diff(time)[(moving[:-1] > 0) & (computing[:-1] == 0)].sum())
    if timeline.exposed_communication_ns != exposed:
        told = f"{timeline.exposed_communication_ns} ns are reported; communication runs alone for {exposed} ns"
        yield Violation("exposed", told)
    critical = timeline.critical_ops
    if (np.diff(start[critical]) < 0).any() or (finish[critical[-1:]] != makespan).any():
        yield Violation(
            "critical", f"the critical ops must be in time order and end with one that ends at {makespan} ns"
        )


class _Callable(ModuleType):
    """Lets the module be called like its function while its types stay importable from it."""

    def __call__(
        self, problem: Problem, plan: Plan, timeline: Timeline, dispatch: Dispatch = "arrival"
    ) -> list[Violation]:
        return validate(problem, plan, timeline, dispatch)


# Python looks up __call__ on a module's class, so `msched.validate(...)` needs this module to have one of its own.
sys.modules[__name__].__class__ = _Callable
