"""Handovers: streams for a schedule such that as many dependencies as can be lie inside a stream, by min-cost flow.

An op hands its stream over to an op that starts later. On the interval order of a schedule the chains of handovers are
paths, and a least number of paths that cover all ops is a matching (Dilworth 1950; Ford and Fulkerson 1962); with a
price on each dependency that is handed over, and at most so many paths, it is a min-cost flow through time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from msched.arrays import Int64Array
from msched.plan import Plan
from msched.problem import Problem
from msched.waits_kernel import minimal_waits


def handed_over(problem: Problem, plan: Plan, start: Int64Array, finish: Int64Array) -> Int64Array | None:
    """A stream for each op, shape (n,), with the most dependencies and fences between neighbours of a stream.

    The ops run from `start` to `finish` (n,), in ns, and the streams are as many as the plan has: of each engine where
    they are bound. Dependencies that others imply are not counted. None where the schedule overlaps on a stream, or
    labels decide on streams.
    """
    if (problem.label >= 0).any() or not problem.n:
        return None
    rows = np.concatenate([problem.edges, plan.fences])
    rows = minimal_waits(plan.order, np.arange(problem.n), rows)
    position = np.empty(problem.n, np.int64)
    position[plan.order] = np.arange(problem.n)
    stream = np.empty(problem.n, np.int64)
    group = problem.engine if problem.binding == "engine" else np.zeros(problem.n, np.int64)
    first = 0
    for row in np.unique(group).tolist():
        ops = plan.order[group[plan.order] == row]
        inside = rows[(group[rows[:, 0]] == row) & (group[rows[:, 1]] == row)]
        count = int(np.unique(plan.stream[ops]).size)
        lanes = _lanes(ops, start, finish + problem.gap_ns, inside, position, count)
        if lanes is None:
            return None
        stream[ops] = first + lanes
        first += count
    return np.unique(stream, return_inverse=True)[1].astype(np.int64)


def _lanes(
    ops: Int64Array, start: Int64Array, release: Int64Array, rows: Int64Array, position: Int64Array, count: int
) -> Int64Array | None:
    """The stream, below `count`, of each of the ops, that hold one from `start` to `release`."""
    from ortools.graph.python import min_cost_flow

    k = ops.size
    begin, end = start[ops], release[ops]
    # What ends comes before what begins at that time, so that it can hand over; but an empty interval in this order.
    time = np.concatenate([begin, end])
    empty = np.tile(begin == end, 2)
    kind = np.where(empty, 2, np.repeat([1, 0], k))
    at = np.lexsort((np.repeat([0, 1], k), np.tile(position[ops], 2), kind, time))
    event = np.empty(2 * k, np.int64)
    event[at] = np.arange(2 * k)  # of the begins, then of the ends
    index = np.full(position.size, -1)
    index[ops] = np.arange(k)
    u, v = index[rows[:, 0]], index[rows[:, 1]]
    direct = end[u] <= begin[v]
    u, v = u[direct], v[direct]
    # Nodes: the 2k events as a pool of idle streams through time, then a gate in and a gate out for each op.
    into, out = 2 * k + np.arange(k), 3 * k + np.arange(k)
    tail = np.concatenate([np.arange(2 * k - 1), event[:k], out, into, out[u]])
    head = np.concatenate([np.arange(1, 2 * k), into, event[k:], out, into[v]])
    room = np.concatenate([np.full(2 * k - 1, count), np.ones(tail.size - 2 * k + 1, np.int64)])
    price = np.zeros(tail.size, np.int64)
    price[4 * k - 1 : 5 * k - 1] = -(k + 1)  # every op is run, whatever that hands over
    price[5 * k - 1 :] = -1
    flow: Any = min_cost_flow.SimpleMinCostFlow()
    arcs = flow.add_arcs_with_capacity_and_unit_cost(tail, head, room, price)
    flow.set_node_supply(0, count)
    flow.set_node_supply(2 * k - 1, -count)
    if flow.solve() != flow.OPTIMAL:
        return None
    taken = np.asarray(flow.flows(arcs))
    if (taken[4 * k - 1 : 5 * k - 1] == 0).any():
        return None
    giver = np.full(k, -1)
    handed = taken[5 * k - 1 :] > 0
    giver[v[handed]] = u[handed]
    gives = np.zeros(k, np.bool_)
    gives[u[handed]] = True
    lane, idle = np.full(k, -1), list(range(count))[::-1]
    for e in at.tolist():
        op = e % k
        if e >= k:
            if not gives[op]:
                idle.append(int(lane[op]))
        else:
            lane[op] = lane[giver[op]] if giver[op] >= 0 else idle.pop()
    return lane
