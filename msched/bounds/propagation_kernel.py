"""Compiled propagation of heads and tails for a fixed makespan, to a fixpoint or a contradiction."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from msched.arrays import Int64Array
from msched.bounds.cumulative_kernel import energetic_heads, timetable_heads
from msched.bounds.disjunctive_kernel import disjunctive_heads
from msched.compiled import compiled


class System(NamedTuple):
    """What restricts the starts of n ops: dependencies as CSR with lags, and groups of ops that share something.

    order, backward: ops in topological order, and its reverse. group_start (G + 1,): a group's rows in member (ops),
    held (time in which an op holds its units) and demand. capacity, gap (G,): units, and the part of `held` that
    follows an op's finish. alone (G,): 1 where the ops of a group run one at a time.
    """

    duration: Int64Array
    order: Int64Array
    backward: Int64Array
    after_start: Int64Array
    after: Int64Array
    after_lag: Int64Array
    before_start: Int64Array
    before: Int64Array
    before_lag: Int64Array
    group_start: Int64Array
    member: Int64Array
    held: Int64Array
    demand: Int64Array
    capacity: Int64Array
    gap: Int64Array
    alone: Int64Array


@compiled
def propagate(system: System, head: Int64Array, tail: Int64Array, makespan: int, rounds: int, windows: int) -> bool:
    """Raise `head` and `tail` (n,) in place; False where no schedule of that makespan keeps them.

    rounds: most passes over all groups. windows: most operations that energetic reasoning spends on a group in a pass;
    on smaller groups it looks at every window, on larger ones at evenly spaced ones.
    """
    for _ in range(rounds):
        before = head.sum() + tail.sum()
        if not _by_precedence(system, head, tail, makespan):
            return False
        for g in range(system.capacity.size):
            if not _by_group(system, g, head, tail, makespan, 0):
                return False
        if head.sum() + tail.sum() == before and windows:
            for g in range(system.capacity.size):
                if not system.alone[g] and not _by_group(system, g, head, tail, makespan, windows):
                    return False
        if head.sum() + tail.sum() == before:
            return True
    return True


@compiled
def _by_precedence(system: System, head: Int64Array, tail: Int64Array, makespan: int) -> bool:
    for u in system.order:
        end = head[u] + system.duration[u]
        if end + tail[u] > makespan:
            return False
        for k in range(system.after_start[u], system.after_start[u + 1]):
            head[system.after[k]] = max(head[system.after[k]], end + system.after_lag[k])
    for v in system.backward:
        rest = tail[v] + system.duration[v]
        if head[v] + rest > makespan:
            return False
        for k in range(system.before_start[v], system.before_start[v + 1]):
            tail[system.before[k]] = max(tail[system.before[k]], rest + system.before_lag[k])
    return True


@compiled
def _by_group(system: System, g: int, head: Int64Array, tail: Int64Array, makespan: int, windows: int) -> bool:
    rows = slice(system.group_start[g], system.group_start[g + 1])
    member, held, demand = system.member[rows], system.held[rows], system.demand[rows]
    early, late = head[member], tail[member] - system.gap[g]
    for _ in range(2):  # heads, and then, with the roles of heads and tails exchanged, tails
        if windows:
            begins = _spaced(early, makespan - late - held, windows)
            ends = _spaced(makespan - late, early + held, windows)
            fine = energetic_heads(early, late, held, demand, system.capacity[g], makespan, begins, ends)
        elif system.alone[g]:
            fine = disjunctive_heads(early, late, held, makespan)
        else:
            fine = timetable_heads(early, late, held, demand, system.capacity[g], makespan)
        if not fine:
            return False
        early, late = late, early
    for i in range(member.size):
        head[member[i]] = max(head[member[i]], early[i])
        tail[member[i]] = max(tail[member[i]], late[i] + system.gap[g])
    return True


@compiled
def _spaced(a: Int64Array, b: Int64Array, windows: int) -> Int64Array:
    """Distinct values of both, rising; so few that all pairs of them, times the ops, are no more than `windows`."""
    values = np.unique(np.concatenate((a, b)))
    most = max(4, int(np.sqrt(windows / a.size)))
    if values.size <= most:
        return values
    chosen = np.empty(most, np.int64)
    for i in range(most):
        chosen[i] = values[i * (values.size - 1) // (most - 1)]
    return chosen


@compiled
def shave(system: System, head: Int64Array, tail: Int64Array, makespan: int, rounds: int, windows: int, op: int) -> int:
    """Cut from the ends of an op's window what leads to a contradiction; -1 where nothing is left, else 1 if cut.

    Martin and Shmoys 1996, A new approach to computing optimal schedules for the job-shop scheduling problem, section
    4: the half of the window nearest its end is tried first, then halves of it.
    """
    cut = 0
    for side in range(2):
        mine, other = (head, tail) if side == 0 else (tail, head)
        room = makespan - head[op] - tail[op] - system.duration[op]
        part = room // 2
        while True:
            trial_mine, trial_other = mine.copy(), other.copy()
            # The op starts in the first `part` ns of its window.
            trial_other[op] = makespan - system.duration[op] - mine[op] - part
            if side == 0:
                fine = propagate(system, trial_mine, trial_other, makespan, rounds, windows)
            else:
                fine = propagate(system, trial_other, trial_mine, makespan, rounds, windows)
            if not fine:
                mine[op] += part + 1
                cut = 1
                if not propagate(system, head, tail, makespan, rounds, windows):
                    return -1
                room = makespan - head[op] - tail[op] - system.duration[op]
                part = min(part, room // 2)
                if room == 0:
                    break
            elif part == 0:
                break
            else:
                part //= 4
                if part < room // 64:
                    part = 0
                    break
    return cut
