"""The simulator of the model in plain Python, slow and read off section 3: the oracle of the compiled one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from msched.plan import Plan
from msched.problem import Problem
from tests.reference.waits import waits


@dataclass(frozen=True)
class Report:
    """What a timeline says of a run, each figure on its own so that a test can falsify one."""

    start_ns: NDArray[np.int64]
    finish_ns: NDArray[np.int64]
    makespan_ns: int
    peak_bytes: int
    utilisation: NDArray[np.float64]
    exposed_communication_ns: int
    critical_ops: NDArray[np.int64]
    waits: NDArray[np.int64]


def report(problem: Problem, plan: Plan, start: list[int], finish: list[int] | None = None) -> Report:
    """True figures of these times, whether or not any rule allows them; of the critical ops only the last."""
    duration, demand = chosen(problem, plan)
    ops, end = range(problem.n), finish or [s + d for s, d in zip(start, duration, strict=True)]
    makespan = max(end, default=0)
    moves = [bool(problem.communication[e]) for e in problem.engine]
    exposed = 0
    for now in range(makespan):
        running = [moves[v] for v in ops if start[v] <= now < end[v]]
        exposed += bool(running) and all(running)
    work = [sum(duration[v] * demand[v][e] for v in ops) for e in range(problem.capacity.size)]
    return Report(
        start_ns=np.array(start, np.int64),
        finish_ns=np.array(end, np.int64),
        makespan_ns=makespan,
        peak_bytes=peak_bytes(problem, start, end),
        utilisation=np.array(
            [w / (c * makespan) if c * makespan else 0.0 for w, c in zip(work, problem.capacity.tolist(), strict=True)]
        ),
        exposed_communication_ns=exposed,
        critical_ops=np.array([v for v in ops if end[v] == makespan][:1], np.int64),
        waits=np.array(sorted(waits(problem, plan)), np.int64).reshape(-1, 2),
    )


def start_times(problem: Problem, plan: Plan, dispatch: str) -> list[int]:
    """Start of each op in ns: walks from instant to instant, and at each starts one op after the other."""
    order, stream = plan.order.tolist(), plan.stream.tolist()
    position = {op: k for k, op in enumerate(order)}
    duration, demand = chosen(problem, plan)
    needs = [{e for e, units in enumerate(demand[op]) if units and duration[op]} for op in range(problem.n)]
    links = [(u, v, delay) for (u, v), delay in zip(problem.edges.tolist(), problem.delay.tolist(), strict=True)]
    links += [(u, v, 0) for u, v in plan.fences.tolist()]
    before_in_stream = {
        v: [u for u in order[: position[v]] if stream[u] == stream[v]][-1:] for v in range(problem.n)
    }  # fmt: skip
    start: dict[int, int] = {}

    def arrival(v: int) -> int | None:
        """None while something before v has not started, so that its finish is not known."""
        times = [(position[v] + 1) * problem.host_issue_ns]
        needed = [(u, problem.gap_ns) for u in before_in_stream[v]]
        for u, w, delay in links:
            if w == v:
                needed.append((u, 0 if stream[u] == stream[v] else problem.record_ns + problem.wait_ns + delay))
        for u, lag in needed:
            if u not in start:
                return None
            times.append(start[u] + duration[u] + lag)
        return max(times)

    def startable(v: int, now: int, arrived: dict[int, int]) -> bool:
        if not needs[v]:
            return True
        if dispatch == "planned":
            ahead = [u for u in order[: position[v]] if u not in start]
        elif dispatch == "arrival":
            ahead = [u for u in arrived if (arrived[u], position[u]) < (arrived[v], position[v])]
        else:
            ahead = []
        if any(needs[u] & needs[v] for u in ahead):
            return False
        running = [u for u in start if start[u] <= now < start[u] + duration[u]]
        return all(sum(demand[u][e] for u in [*running, v]) <= problem.capacity[e] for e in needs[v])

    now = 0
    while len(start) < problem.n:
        known = {v: t for v in range(problem.n) if v not in start and (t := arrival(v)) is not None}
        arrived = {v: t for v, t in known.items() if t <= now}
        first = (arrived.get, position.get) if dispatch != "planned" else (position.get,)
        ready = [v for v in arrived if startable(v, now, arrived)]
        if ready:
            start[min(ready, key=lambda v: [key(v) for key in first])] = now
        else:
            later = [t for t in known.values() if t > now]
            now = min(later + [start[u] + duration[u] for u in start if start[u] + duration[u] > now])
    return [start[v] for v in range(problem.n)]


def chosen(problem: Problem, plan: Plan) -> tuple[list[int], list[list[int]]]:
    """Duration and demand of each op in the mode that the plan chose."""
    duration, demand = problem.duration.tolist(), problem.demand.tolist()
    for v in range(problem.n):
        choice = 0 if plan.mode is None else int(plan.mode[v])
        if choice:
            rows = [row for row in range(len(problem.mode_op)) if problem.mode_op[row] == v]
            duration[v] = int(problem.mode_duration[rows[choice - 1]])
            demand[v] = problem.mode_demand[rows[choice - 1]].tolist()
    return duration, demand


def peak_bytes(problem: Problem, start: list[int], finish: list[int]) -> int:
    """Most live bytes: adds up, at each instant at which something is born, what is live (section 4)."""
    makespan = max(finish, default=0)
    always, intervals = 0, [(s, f, int(b)) for s, f, b in zip(start, finish, problem.workspace, strict=True)]
    for t, size in enumerate(problem.tensor_bytes.tolist()):
        if problem.tensor_persistent[t]:
            always += size
            continue
        producer = int(problem.tensor_producer[t])
        uses = problem.tensor_consumer[problem.tensor_consumer_start[t] : problem.tensor_consumer_start[t + 1]].tolist()
        end = max((finish[c] for c in uses), default=finish[producer])
        intervals.append((start[producer], makespan if problem.tensor_output[t] else end, size))
    return always + max((sum(b for s, f, b in intervals if s <= now < f) for now, _, _ in intervals), default=0)
