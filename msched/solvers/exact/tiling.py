"""Periodic schedules of the blocks of a network, laid over the whole of it, and compacted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from msched.arrays import BoolArray, Int64Array
from msched.bounds import heads_and_tails
from msched.plan import Plan
from msched.problem import Problem
from msched.solvers.colouring import coloured
from msched.solvers.exact.period import Period
from msched.solvers.exact.repetition import Repetition
from msched.solvers.joint.schemes import counts_streams, scheme
from msched.solvers.stream_pool import StreamPool, within_limits

_PASSES = 20  # forward and backward, that compaction may take


@dataclass(frozen=True)
class Tile:
    """A run of blocks with the periodic schedule that they are to follow."""

    repetition: Repetition
    period: Period

    @property
    def start(self) -> Int64Array:
        """ns from the first op of the run on, of each op of the blocks: shape (K, q)."""
        return self.period.start + self.period.period_ns * np.arange(len(self.repetition.blocks))[:, None]


def crossing_lags(problem: Problem) -> Int64Array:
    """What a dependency is taken to cost where the streams are not known yet: shape (m,), ns. An event and the delay
    between ops of different engines, whose streams are rarely the same, and nothing within one."""
    apart = np.not_equal(*problem.engine[problem.edges].T)
    return np.where(apart, problem.delay + problem.record_ns + problem.wait_ns, 0)


def tiled(problem: Problem, tiles: list[Tile], *, late: bool) -> Int64Array:
    """A time for each op to start at if capacity held, shape (n,) ns: of ops in blocks that of their tile, of others
    the end of their longest path; of those that no block waits for, if `late`, the latest that the end allows.

    A tile begins as soon as all ops that come before it, and not after any of it, allow.
    """
    lag = crossing_lags(problem)
    start = np.full(problem.n, -1, np.int64)
    needed = np.zeros(problem.n, np.bool_)
    for tile in tiles:
        blocks = tile.repetition.blocks
        inside = np.zeros(problem.n, np.bool_)
        inside[blocks] = True
        earliest = _by_precedence(problem, start, lag)
        offset = np.zeros(problem.n, np.int64)
        offset[blocks] = tile.start
        u, v = problem.edges.T
        bound_by = inside[v] & ~_reached(problem, inside, backwards=False)[u]
        begin = (earliest[u] + problem.duration[u] + lag - offset[v])[bound_by].max(initial=0)
        start[blocks] = tile.start + begin
        needed |= _reached(problem, inside, backwards=True)
    result = _by_precedence(problem, start, lag)
    if late:
        end = int((result + problem.duration).max(initial=0))
        latest = end - heads_and_tails(problem)[1] - problem.duration
        result = np.where(needed, result, np.maximum(result, latest))
    return result


def _by_precedence(problem: Problem, fixed: Int64Array, lag: Int64Array) -> Int64Array:
    """Earliest starts by dependencies; those of ops whose time is `fixed`, 0 or more, stay: shape (n,)."""
    rows, before = problem.predecessor_start.tolist(), problem.predecessor.tolist()
    wait, duration, given = lag[problem.predecessor_edge].tolist(), problem.duration.tolist(), fixed.tolist()
    start = [0] * problem.n
    for v in problem.topological_order.tolist():
        row = range(rows[v], rows[v + 1])
        earliest = max((start[before[k]] + duration[before[k]] + wait[k] for k in row), default=0)
        start[v] = given[v] if given[v] >= 0 else earliest
    return np.array(start, np.int64)


def _reached(problem: Problem, inside: BoolArray, *, backwards: bool) -> BoolArray:
    """Ops that are inside, or that come after (before, if `backwards`) one that is: shape (n,)."""
    order = problem.topological_order.tolist()
    rows, near = problem.predecessor_start.tolist(), problem.predecessor.tolist()
    if backwards:
        order, rows, near = order[::-1], problem.successor_start.tolist(), problem.successor.tolist()
    result = inside.tolist()
    for v in order:
        result[v] = result[v] or any(result[u] for u in near[rows[v] : rows[v + 1]])
    return np.array(result, np.bool_)


def compacted(problem: Problem, streams: StreamPool, key: Int64Array) -> tuple[int, Plan]:
    """Ops in the order of `key` (n,), each as early as those before it allow; then forwards and backwards again while
    that gains (Valls, Ballestin and Quintanilla 2005). The makespan as scheduled in ns, and the plan."""
    from msched.solvers.joint.serial_scheme_kernel import Schedule, empty_profile, empty_schedule, serial

    ahead, back = scheme(problem, streams), scheme(problem, streams, mirrored=True)
    profile, n = empty_profile(ahead), problem.n
    modes, schedule = np.zeros(n, np.int64), empty_schedule(n)
    sequence = _linear_extension(problem, key)
    makespan = serial(sequence, modes, np.full(n, -1), False, ahead, profile, schedule)
    for _ in range(_PASSES):
        late, early = empty_schedule(n), empty_schedule(n)
        mirror = makespan - schedule.finish[::-1]
        reached = serial(
            np.argsort(mirror, kind="stable"), modes, schedule.stream[::-1].copy(), True, back, profile, late
        )
        starts = reached - late.finish[::-1]
        reached = serial(
            np.argsort(starts, kind="stable"), modes, late.stream[::-1].copy(), True, ahead, profile, early
        )
        if reached >= makespan:
            break
        schedule, makespan = Schedule(*early), reached
    return int(makespan), _plan(problem, streams, schedule.start, schedule.stream, int(makespan))


def _linear_extension(problem: Problem, key: Int64Array) -> Int64Array:
    """Places in the topological order by rising key, no op before one that it depends on: shape (n,)."""
    from heapq import heapify, heappop, heappush

    place = np.argsort(problem.topological_order).tolist()
    rows, after, wish = problem.successor_start.tolist(), problem.successor.tolist(), key.tolist()
    missing = np.diff(problem.predecessor_start).tolist()
    ready = [(wish[v], place[v], v) for v in range(problem.n) if not missing[v]]
    heapify(ready)
    sequence = []
    while ready:
        _, at, v = heappop(ready)
        sequence.append(at)
        for w in after[rows[v] : rows[v + 1]]:
            missing[w] -= 1
            if not missing[w]:
                heappush(ready, (wish[w], place[w], w))
    return np.array(sequence, np.int64)


def _plan(problem: Problem, streams: StreamPool, start: Int64Array, stream: Int64Array, makespan: int) -> Plan:
    """The plan of a schedule in places of the topological order; it claims its times where nothing else delays it."""
    number = np.argsort(problem.topological_order)
    begin = start[number]
    order = np.lexsort((number, problem.duration > 0, begin))
    if counts_streams(problem):
        released = begin + problem.duration + problem.gap_ns
        chosen = coloured(problem, order, begin, released, streams.of_op, streams.first)
    else:
        chosen = stream[number]
    claimed = problem.host_issue_ns == 0
    return Plan(
        stream=within_limits(problem, chosen),
        order=order,
        predicted_start_ns=begin if claimed else None,
        predicted_makespan_ns=makespan if claimed else None,
    )
