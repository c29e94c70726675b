"""A problem as PyJobShop (Lan and Berkhout 2025, arXiv 2502.13483) expresses it, and what it reaches on it.

Engines are machines or renewable resources, streams a renewable resource of which every op holds one unit, and memory
is one that a task for each tensor holds from the start of its producer to the end of its last consumer.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from msched.problem import UNLIMITED, Problem

if TYPE_CHECKING:
    import pyjobshop


@dataclass(frozen=True)
class Reached:
    """Makespan in ns (None: nothing found), proven bound in ns, whether they are proven equal, wall seconds."""

    makespan_ns: int | None
    bound_ns: int
    optimal: bool
    seconds: float


def inexpressible(problem: Problem) -> str:
    """Why PyJobShop cannot express the problem; empty where it can. Limits on tasks and events are not looked at."""
    # A gap costs nothing where every op may have a stream of its own.
    gap = problem.gap_ns > 0 and not (problem.streams is None and problem.binding == "free")
    if gap or problem.record_ns or problem.wait_ns or problem.delay.any():
        return "costs that depend on the stream"
    if problem.host_issue_ns:
        return "a host that issues one op after another"
    if problem.binding == "engine" and (problem.streams is not None or (problem.engine_streams != UNLIMITED).any()):
        return "streams that serve one engine"
    if (problem.label != UNLIMITED).any():
        return "ops that share a stream"
    if _reordered(problem):
        return "collectives of one communicator that may overlap"
    return ""


def _reordered(problem: Problem) -> bool:
    """Whether two collectives of one communicator can run at once, so that their order is more than an engine's."""
    member = problem.communicator != UNLIMITED
    alone = (problem.demand * 2 > problem.capacity)[member]
    return bool(member.any()) and not bool(alone.all(axis=0).any())


def solve(problem: Problem, time_limit: float, workers: int, seed: int) -> Reached:
    """The problem under a wall time in seconds, building the model included."""
    began = time.perf_counter()
    model = build(problem)
    left = max(time_limit - (time.perf_counter() - began), 0.1)
    result = model.solve("ortools", left, display=False, num_workers=workers, random_seed=seed)
    found = result.status.value in ("Optimal", "Feasible")
    return Reached(
        round(result.objective) if found else None,
        int(np.ceil(result.lower_bound - 1e-6)) if np.isfinite(result.lower_bound) else 0,
        result.status.value == "Optimal",
        time.perf_counter() - began,
    )


def build(problem: Problem) -> pyjobshop.Model:
    """The model, its objective the makespan."""
    from pyjobshop import Model

    model = Model()
    unary = [capacity == 1 for capacity in problem.capacity.tolist()]
    engines: list[Any] = [
        model.add_machine() if alone else model.add_renewable(capacity)
        for alone, capacity in zip(unary, problem.capacity.tolist(), strict=True)
    ]
    streams = model.add_renewable(problem.streams) if problem.streams is not None else None
    memory = None
    if problem.memory_bytes is not None:
        always = int(problem.tensor_bytes[problem.tensor_persistent].sum())
        memory = model.add_renewable(problem.memory_bytes - always)
    tasks = [model.add_task(name=name) for name in problem.op_names]
    modes = [*enumerate(zip(problem.duration.tolist(), problem.demand.tolist(), strict=True))]
    alternatives = zip(problem.mode_duration.tolist(), problem.mode_demand.tolist(), strict=True)
    modes += [*zip(problem.mode_op.tolist(), alternatives, strict=True)]
    for op, (duration, demand) in modes:
        # A machine is held by being named, and has no units.
        needs = [(engines[e], 0 if unary[e] else held) for e, held in enumerate(demand) if held]
        needs += [(streams, 1)] if streams is not None else []
        needs += [(memory, int(problem.workspace[op]))] if memory is not None else []
        model.add_mode(tasks[op], [need for need, _ in needs], duration, [held for _, held in needs])
    for before, after in problem.edges.tolist():
        model.add_end_before_start(tasks[before], tasks[after])
    if memory is not None:
        _add_tensors(model, problem, tasks, memory)
    return model


def _add_tensors(model: pyjobshop.Model, problem: Problem, tasks: list[Any], memory: Any) -> None:
    start, size = problem.tensor_consumer_start.tolist(), problem.tensor_bytes.tolist()
    for k in np.flatnonzero(~problem.tensor_persistent & (problem.tensor_bytes > 0)).tolist():
        producer = int(problem.tensor_producer[k])
        life = model.add_task(allow_idle=True)
        model.add_mode(life, [memory], 0, [size[k]])
        model.add_start_at_start(life, tasks[producer])
        users = tasks if problem.tensor_output[k] else [tasks[producer]]
        for user in [*users, *(tasks[c] for c in problem.tensor_consumer[start[k] : start[k + 1]].tolist())]:
            model.add_end_before_end(user, life)
