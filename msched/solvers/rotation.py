"""Rotation: where streams hold too many tasks and none is free to go on on, all of them are filled evenly over time.

The ops of a stream go on on whichever stream is idle, as soon as their own is ahead of its share. What GE's last step
does with streams to spare (`splitting`) so comes to use what room the others leave.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from msched.arrays import Int64Array
from msched.plan import Plan, durations_and_demands
from msched.plan import waits as waits_of
from msched.problem import Problem
from msched.simulator import start_times
from msched.solvers.limits import misplaced, tasks_in_streams

_AHEAD = (1 / 4, 1 / 8, 1 / 16, 1 / 32)  # of the limit, that a stream may be ahead of its share: cuts against evenness


def rotate(problem: Problem, plan: Plan, dispatch: str) -> Plan | None:
    """`plan` on other streams, as many as there may be, none with more tasks than it may hold; None if none was found.

    The order stays. Ops that follow each other on a stream still do, by a fence where they are apart now, so that only
    that wait may take longer than before. Tried with ever more cuts; of those that fit the one that ends first is kept.
    """
    limit, streams = problem.tasks_per_stream, problem.streams
    if limit is None or streams is None:
        return None
    waits = waits_of(problem, plan)
    weight = np.ones(problem.n, np.int64)
    np.add.at(weight, waits[:, 0], 1)
    np.add.at(weight, waits[:, 1], 2)
    start = start_times(problem, plan, dispatch)
    duration = durations_and_demands(problem, plan)[0]
    found: list[tuple[int, int, Plan]] = []
    for ahead in _AHEAD:
        stream, links = _rotated(problem, plan, start, start + duration, weight, int(limit * ahead))
        fences = np.unique(np.concatenate([plan.fences, links]), axis=0)
        moved = replace(plan, stream=stream, fences=fences)
        waits = waits_of(problem, moved)
        if misplaced(problem, stream) or tasks_in_streams(moved, waits).max() > limit:
            continue
        end = int((start_times(problem, moved, dispatch) + duration).max())
        found.append((end, len(waits), moved))
    return min(found, key=lambda entry: entry[:2])[2] if found else None


def _rotated(
    problem: Problem, plan: Plan, start: Int64Array, finish: Int64Array, weight: Int64Array, ahead: int
) -> tuple[Int64Array, Int64Array]:
    """Streams (n,) for ops of so many tasks each (n,), and fences (k, 2) for the pairs that a cut takes apart."""
    assert problem.streams is not None
    count, sync = problem.streams, problem.record_ns + problem.wait_ns
    last, tasks = [-1] * count, [0] * count
    before = [-1] * plan.streams
    stream = np.empty(problem.n, np.int64)
    links: list[tuple[int, int]] = []
    issued, total = 0, int(weight.sum())
    bound = problem.binding == "engine"
    for v in plan.order.tolist():
        u = before[plan.stream[v]]
        before[plan.stream[v]] = v
        own = int(stream[u]) if u >= 0 else -1
        if own >= 0 and last[own] != u:
            own = -1  # another has gone on there
        share = issued // count + ahead
        best = own
        if own < 0 or (tasks[own] > share and (start[v] >= finish[u] + sync or tasks[own] > share + ahead)):
            reserved = {int(stream[w]) for w in before if w >= 0 and w != v and last[stream[w]] == w}
            idle = [
                s
                for s in range(count)
                if last[s] < 0
                or (
                    finish[last[s]] + problem.gap_ns <= start[v]
                    and not (bound and problem.engine[last[s]] != problem.engine[v])
                )
            ]
            most = tasks[own] - ahead if own >= 0 else total
            behind = [s for s in idle if tasks[s] <= most]
            free = [s for s in behind if s not in reserved] or behind
            if free:
                best = min(free, key=tasks.__getitem__)
            elif own < 0:  # no stream is idle: behind whoever ends first
                best = min(range(count), key=lambda s: int(finish[last[s]]))
        if u >= 0 and best != stream[u]:
            links.append((u, v))
        stream[v] = best
        last[best] = v
        tasks[best] += int(weight[v])
        issued += int(weight[v])
    numbers = np.unique(stream, return_inverse=True)[1].astype(np.int64)
    return numbers, np.array(links, np.int64).reshape(-1, 2)
