"""What follows from a plan and its start times, derived a second time, for the validator alone.

Nothing here is shared with the simulator, the wait kernel or the solvers: times come from whole arrays rather than
from events, and order from sets of ancestors rather than from vector clocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from msched.arrays import BoolArray, Int64Array, distinct
from msched.plan import Plan
from msched.problem import Problem

if TYPE_CHECKING:
    from msched.simulator import Timeline
    from msched.solvers.base import Dispatch


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
        n, crossing = max(self.problem.n, 1), self.links[self.crosses]
        asked = np.column_stack(np.divmod(distinct(crossing[:, 0] * n + crossing[:, 1]), n))
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

        The steps are links and stream order.
        """
        from msched.rederivation_kernel import WORDS, two_steps_lead

        found = np.zeros(len(pairs), np.bool_)
        if not len(pairs):
            return found
        steps, asked = self.position[np.concatenate([self.links, self.chain])], self.position[pairs]
        by_end = np.argsort(asked[:, 1])
        found[by_end] = two_steps_lead(self.problem.n, steps, asked[by_end], WORDS)
        return found

    def passed_over(self) -> BoolArray:
        """Ops that waited on, under `greedy`, at an instant at which all their units were free at their turn: (n,)."""
        from msched.rederivation_kernel import passed_over

        start, finish, arrival, turn = self.timeline.start_ns, self.timeline.finish_ns, self.arrival, self.turn
        waited = np.flatnonzero(self.held.any(axis=1) & (start > arrival))
        kind = np.unique(self.held[waited], axis=0, return_inverse=True)[1].reshape(-1)
        by_kind = np.lexsort((turn[waited], kind))
        return passed_over(
            start, finish, arrival, turn, self.held, self.problem.capacity.copy(),
            distinct(np.concatenate([start, finish, arrival])), np.lexsort((turn, start)), np.argsort(finish),
            np.append(0, np.cumsum(np.bincount(kind))), waited[by_kind],
        )  # fmt: skip
