"""What follows from a plan and its start times, derived a second time, for the validator alone.

Nothing here is shared with the simulator, the wait kernel or the solvers: times come from whole arrays rather than
from events, and order from sets of ancestors rather than from vector clocks.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from msched.arrays import BoolArray, Int64Array
from msched.plan import Plan
from msched.problem import Problem

if TYPE_CHECKING:
    from msched.simulator import Timeline
    from msched.solvers.base import Dispatch

_BLOCK = 8192  # ops whose descendants are followed at once: 100,000 ops then need 100 MB, not 1.2 GB


def neighbours(group: Int64Array, position: Int64Array) -> Int64Array:
    """Pairs of ops that follow each other, by `position`, within one `group` >= 0: shape (k, 2)."""
    ops = np.lexsort((position, group))
    ops = ops[group[ops] >= 0]
    near = group[ops[:-1]] == group[ops[1:]]
    return np.column_stack([ops[:-1][near], ops[1:][near]])


def levels(start: Int64Array, finish: Int64Array, amount: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Event times in order, and the sum of `amount` over the intervals [start, finish) open after each event."""
    time, change = np.append(start, finish), np.append(amount, -amount)
    sequence = np.lexsort((change, time))
    return time[sequence], np.cumsum(change[sequence])


@dataclass(frozen=True)
class Rederivation:
    """A plan that fits its problem, with the start and finish times of a timeline; the rest follows from them."""

    problem: Problem
    plan: Plan
    timeline: Timeline
    dispatch: Dispatch

    @cached_property
    def position(self) -> Int64Array:
        """Issue position of each op: shape (n,)."""
        return np.argsort(self.plan.order)

    @cached_property
    def moded(self) -> tuple[Int64Array, Int64Array]:
        """Ops that run in an alternative mode, and the row of it in the tables of modes."""
        mode = self.plan.mode if self.plan.mode is not None else np.zeros(self.problem.n, np.int64)
        ops = np.flatnonzero(mode)
        return ops, np.searchsorted(self.problem.mode_op, ops) + mode[ops] - 1

    @cached_property
    def duration(self) -> Int64Array:
        """ns of the chosen mode: shape (n,)."""
        (ops, row), figures = self.moded, self.problem.duration.copy()
        figures[ops] = self.problem.mode_duration[row]
        return figures

    @cached_property
    def held(self) -> Int64Array:
        """Units on each engine, none for an op that takes no time since its interval is empty: shape (n, E)."""
        (ops, row), units = self.moded, self.problem.demand.copy()
        units[ops] = self.problem.mode_demand[row]
        return units * (self.duration > 0)[:, None]

    @cached_property
    def links(self) -> Int64Array:
        """Dependencies, then fences, (before, after): shape (m + f, 2)."""
        return np.concatenate([self.problem.edges, self.plan.fences])

    @cached_property
    def crosses(self) -> BoolArray:
        """Whether a link joins two streams: shape (m + f,)."""
        return np.not_equal(self.plan.stream[self.links[:, 0]], self.plan.stream[self.links[:, 1]])

    @cached_property
    def lag(self) -> Int64Array:
        """Least ns from the finish of the first end of a link to the arrival of the second: shape (m + f,)."""
        delay = np.append(self.problem.delay, np.zeros(len(self.plan.fences), np.int64))
        return self.crosses * (self.problem.record_ns + self.problem.wait_ns + delay)

    @cached_property
    def chain(self) -> Int64Array:
        """Neighbours in a stream, (before, after): shape (n - streams, 2)."""
        return neighbours(self.plan.stream, self.position)

    @cached_property
    def arrival(self) -> Int64Array:
        """ns from which the stream, the links and the host let each op stand in its queues: shape (n,)."""
        finish = self.timeline.finish_ns
        time = (self.position + 1) * self.problem.host_issue_ns
        np.maximum.at(time, self.links[:, 1], finish[self.links[:, 0]] + self.lag)
        np.maximum.at(time, self.chain[:, 1], finish[self.chain[:, 0]] + self.problem.gap_ns)
        return time

    @cached_property
    def turn(self) -> Int64Array:
        """Rank of each op in the queues of its engines: shape (n,)."""
        if self.dispatch == "planned":
            return self.position
        return np.argsort(np.lexsort((self.position, self.arrival)))

    @cached_property
    def waits(self) -> Int64Array:
        """The links between streams that nothing else implies, sorted: shape (w, 2)."""
        asked = np.unique(self.links[self.crosses], axis=0)
        return asked[~self.implied(asked)]

    @cached_property
    def peak_bytes(self) -> int:
        """Most bytes live at once: persistent tensors, the others from producer to last use, workspaces."""
        p, start, finish = self.problem, self.timeline.start_ns, self.timeline.finish_ns
        brief, end = ~p.tensor_persistent, finish.max(initial=0)
        death = np.append(finish, 0)[p.tensor_producer]
        np.maximum.at(
            death, np.repeat(np.arange(brief.size), np.diff(p.tensor_consumer_start)), finish[p.tensor_consumer]
        )
        death[p.tensor_output] = end
        births, deaths = np.append(start[p.tensor_producer[brief]], start), np.append(death[brief], finish)
        _, live = levels(births, deaths, np.append(p.tensor_bytes[brief], p.workspace))
        return int(p.tensor_bytes[~brief].sum() + live.max(initial=0))

    def implied(self, pairs: Int64Array) -> BoolArray:
        """Whether a path of two steps or more leads from the first op of each pair to the second: shape (k,).

        The steps are links and stream order; the ancestors of an op are the bits of one whole number.
        """
        into: list[list[int]] = [[] for _ in range(self.problem.n)]
        for u, v in self.position[np.concatenate([self.links, self.chain])].tolist():
            into[v].append(u)
        asked: list[list[tuple[int, int]]] = [[] for _ in range(self.problem.n)]
        for row, (u, v) in enumerate(self.position[pairs].tolist()):
            asked[v].append((u, row))
        found = np.zeros(len(pairs), np.bool_)
        for base in range(0, self.problem.n if len(pairs) else 0, _BLOCK):
            ancestors: list[int] = []
            for v in range(base, self.problem.n):
                inside = [u - base for u in into[v] if u >= base]
                bits = 0
                for u in inside:
                    bits |= ancestors[u]
                for u, row in asked[v]:
                    if base <= u < base + _BLOCK:
                        found[row] = bits >> (u - base) & 1
                for u in inside:
                    if u < _BLOCK:
                        bits |= 1 << u
                ancestors.append(bits)
        return found

    def passed_over(self) -> Iterator[int]:
        """Ops that waited on, under `greedy`, at an instant at which all their units were free at their turn.

        Of those with equal demands the first in turn is the first that could start, so only it is looked at.
        """
        start, finish, arrival = (
            self.timeline.start_ns.tolist(),
            self.timeline.finish_ns.tolist(),
            self.arrival.tolist(),
        )
        turn, free = self.turn.tolist(), self.problem.capacity.tolist()
        held = {v: tuple(self.held[v].tolist()) for v in np.flatnonzero(self.held.any(axis=1)).tolist()}
        late = [v for v in held if start[v] > arrival[v]]
        starts, ends = sorted(held, key=lambda v: -start[v]), sorted(held, key=lambda v: -finish[v])
        late.sort(key=lambda v: -arrival[v])
        queues: dict[tuple[int, ...], list[tuple[int, int]]] = {}
        for now in sorted({*(start[v] for v in held), *(finish[v] for v in held), *(arrival[v] for v in late)}):
            while ends and finish[ends[-1]] <= now:
                free = [f + d for f, d in zip(free, held[ends.pop()], strict=True)]
            while late and arrival[late[-1]] <= now:
                v = late.pop()
                heapq.heappush(queues.setdefault(held[v], []), (turn[v], v))
            turns = []
            while starts and start[starts[-1]] <= now:
                v = starts.pop()
                turns.append((turn[v], v))
            for queue in queues.values():
                while queue and start[queue[0][1]] <= now:
                    heapq.heappop(queue)
                turns += queue[:1]
            for _, v in sorted(turns):
                if start[v] <= now:
                    free = [f - d for f, d in zip(free, held[v], strict=True)]
                elif all(d <= f for d, f in zip(held[v], free, strict=True)):
                    yield v
