"""Why the step took as long as it did: a chain of ops, each released by the one before."""

from __future__ import annotations

import numpy as np

from msched.arrays import Int64Array
from msched.plan import Plan, durations_and_demands
from msched.problem import Problem


def critical_chain(problem: Problem, plan: Plan, start: Int64Array, finish: Int64Array) -> Int64Array:
    """Op indices in time order, the last being one that finishes last: shape (k,).

    An op is released by what ended exactly then: the op before it in its stream, a producer, an op that freed a unit
    of one of its engines; or by an op of its engine that started at the same instant, when it had to queue behind it.
    """
    n = problem.n
    if not n:
        return np.zeros(0, np.int64)
    duration, demand = durations_and_demands(problem, plan)
    holds = (demand > 0) & (duration > 0)[:, None]
    sync = problem.record_ns + problem.wait_ns
    before: list[list[tuple[int, int]]] = [[] for _ in range(n)]  # (lag, op)
    for (u, v), delay in zip(problem.edges.tolist(), problem.delay.tolist(), strict=True):
        if plan.stream[u] != plan.stream[v]:
            before[v].append((sync + delay, u))
    for u, v in plan.fences.tolist():
        if plan.stream[u] != plan.stream[v]:
            before[v].append((sync, u))
    last: dict[int, int] = {}
    for v in plan.order.tolist():
        s = int(plan.stream[v])
        if s in last:
            before[v].append((problem.gap_ns, last[s]))
        last[s] = v
    ending: dict[int, list[int]] = {}
    starting: dict[int, list[int]] = {}
    for v in plan.order.tolist():
        ending.setdefault(int(finish[v]), []).append(v)
        starting.setdefault(int(start[v]), []).append(v)
    op = int(np.flatnonzero(finish == finish.max())[0])
    chain, seen = [op], {op}
    while True:
        now = int(start[op])
        causes = [u for lag, u in sorted(before[op]) if int(finish[u]) + lag == now and u not in seen]
        if not causes:
            near = [*ending.get(now, ()), *starting.get(now, ())]
            causes = [u for u in near if u not in seen and (holds[u] & holds[op]).any()]
        if not causes:
            return np.array(chain[::-1], np.int64)
        op = causes[0]
        chain.append(op)
        seen.add(op)
