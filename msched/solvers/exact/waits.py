"""Waits in the CP-SAT model: rows that keep the limits on events and tasks, and cuts for plans that break them.

The waits of a plan are the cross-stream edges of a transitive reduction, which rows over streams and times cannot say
in full. They can say enough: a dependency between streams costs a wait unless a path of one stream's order and the
dependencies leads around it. Longer ways around are not seen, so these rows keep to the limits but may exclude the best
plan: their bound says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from msched.arrays import Int64Array
from msched.problem import Problem
from msched.solvers.exact.model import Model, unordered_collectives

_WAYS_AROUND = 20_000  # literals for ways around dependencies; beyond, each dependency between streams counts
_RECORDS = 100_000  # literals for records and waits in streams; beyond, nothing is searched with these rows


def without_events(problem: Problem) -> Problem:
    """The problem with the labels that having no event means: ops that depend on each other share a stream."""
    if problem.events != 0:
        return problem
    group = np.arange(problem.n)
    rows = [problem.edges]
    for kind in (problem.label, problem.communicator):
        for member in np.unique(kind[kind >= 0]).tolist():
            alike = np.flatnonzero(kind == member)
            rows.append(np.stack([alike[:-1], alike[1:]], axis=1))
    for u, v in np.concatenate(rows).tolist():
        if group[u] != group[v]:
            group[group == group[v]] = group[u]
    _, label = np.unique(group, return_inverse=True)
    return replace(problem, label=label.astype(np.int64))


class WaitRows:
    """Rows of a model of policy `choice` that count its waits, and cuts."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.cp, self.problem = model.cp, model.scaled.problem
        self.before = _ancestors(self.problem)
        self.follows: dict[tuple[int, int], Any] = {}
        self.rank = np.empty(self.problem.n, np.int64)
        self.rank[self.problem.topological_order] = np.arange(self.problem.n)

    @property
    def countable(self) -> bool:
        """Whether the rows would be few enough."""
        return (len(self.problem.edges) + self.problem.n) * max(1, self.model.streams.lanes) <= _RECORDS

    def keep_limits(self) -> None:
        """Keep the limits on events and on tasks."""
        waits = [*self._dependencies(), *self._collectives()]
        if self.problem.events is not None:
            self.cp.add(sum(wait for _, _, wait in waits) <= self.problem.events)
        if (limit := self.problem.tasks_per_stream) is None:
            return
        for s in range(self.model.streams.lanes):
            tasks = [lane[s] for lane in self.model.lane if s in lane]
            for u, v, wait in waits:
                for op, count in ((u, 1), (v, 2)):
                    if s in self.model.lane[op]:
                        here = self.cp.new_bool_var(f"wait{u}_{v}@{s}")
                        self.cp.add_bool_or([here, wait.negated(), self.model.lane[op][s].negated()])
                        tasks.append(count * here)
            self.cp.add(sum(tasks) <= limit)

    def _dependencies(self) -> Iterator[tuple[int, int, Any]]:
        edges = [
            (u, v)
            for u, v in self.problem.edges.tolist()
            if not any(self.before[w] >> u & 1 for w in self._predecessors(v) if w != u)
        ]
        ways = len(edges) * self.problem.n <= _WAYS_AROUND
        for u, v in edges:
            if self.model.lane[u] is not self.model.lane[v]:
                yield u, v, self._wait(u, v, self._ways_around(u, v) if ways else [])

    def _collectives(self) -> Iterator[tuple[int, int, Any]]:
        """Neighbours of one communicator on two streams, in either order."""
        group = self.problem.communicator
        for pair in unordered_collectives(self.problem):
            if self.model.lane[pair[0]] is self.model.lane[pair[1]]:
                continue
            for u, v in (pair, pair[::-1]):
                around = [self._first(u, v).negated(), *self._ways_around(u, v)]
                for w in np.flatnonzero(group == group[u]).tolist():
                    if w not in pair:
                        between = self.cp.new_bool_var(f"between{u}_{w}_{v}")
                        self.cp.add_implication(between, self._first(u, w))
                        self.cp.add_implication(between, self._first(w, v))
                        around.append(between)
                yield u, v, self._wait(u, v, around)

    def _wait(self, u: int, v: int, around: list[Any]) -> Any:
        """A literal that is true unless both are on one stream or one of the literals `around` holds."""
        wait = self.cp.new_bool_var(f"wait{u}_{v}")
        same = self.model.same_stream(u, v)
        self.cp.add_bool_or([wait, *around, *([] if same is None else [same])])
        return wait

    def _first(self, u: int, v: int) -> Any:
        """The literal 'u before v' of two collectives of one communicator."""
        if (u, v) in self.model.first:
            return self.model.first[u, v]
        if (v, u) in self.model.first:
            return self.model.first[v, u].negated()
        return self.cp.new_constant(self.before[v] >> u & 1)

    def _ways_around(self, u: int, v: int) -> list[Any]:
        """Literals that each mean a path from u to v by way of another op on the stream of one of the two."""
        ways = []
        for w in range(self.problem.n):
            if w in (u, v):
                continue
            if self.before[v] >> w & 1 and not self._ordered(u, w):
                ways.append(self._behind(u, w))
            elif self.before[w] >> u & 1 and not self._ordered(w, v):
                ways.append(self._behind(w, v))
        return [way for way in ways if way is not None]

    def _ordered(self, u: int, v: int) -> bool:
        return bool(self.before[v] >> u & 1 or self.before[u] >> v & 1)

    def _behind(self, u: int, v: int) -> Any:
        """A literal that may be true only where v follows u on one stream; None where it never can."""
        if (u, v) not in self.follows:
            model = self.model
            shared = model.lane[u] is model.lane[v]
            same = None if shared else model.same_stream(u, v)
            if not shared and same is None:
                self.follows[u, v] = None
            else:
                literal = self.follows[u, v] = self.cp.new_bool_var(f"behind{u}_{v}")
                if same is not None:
                    self.cp.add_implication(literal, same)
                self._after(u, v, literal)
        return self.follows[u, v]

    def _after(self, u: int, v: int, literal: Any) -> None:
        """Where the literal holds, v starts after u, so that the plan issues it later."""
        tie = int(self.rank[v] < self.rank[u])  # equal starts of ops without duration are decoded in that order
        self.cp.add(self.model.start[v] >= self.model.end[u]).only_enforce_if(literal)
        self.cp.add(self.model.start[v] >= self.model.start[u] + tie).only_enforce_if(literal)

    def _predecessors(self, v: int) -> list[int]:
        row = slice(self.problem.predecessor_start[v], self.problem.predecessor_start[v + 1])
        found: list[int] = self.problem.predecessor[row].tolist()
        return found

    def exclude(self, order: Int64Array, value: Callable[[Any], int]) -> None:
        """Cut off the streams of a solution together with the issue order, shape (n,), inside of each stream."""
        other = [
            literal.negated()
            for lane in self.model.lane
            for literal in lane.values()
            if len(lane) > 1 and value(literal)
        ]
        other += [literal.negated() if value(literal) else literal for literal in self.model.first.values()]
        for s in range(self.model.streams.lanes):
            ops = [v for v in order.tolist() if s in self.model.lane[v] and value(self.model.lane[v][s])]
            for u, v in pairwise(ops):
                if not self._ordered(u, v):
                    swapped = self.cp.new_bool_var(f"swapped{u}_{v}")
                    self._after(v, u, swapped)
                    other.append(swapped)
        self.cp.add_bool_or(other)


def _ancestors(problem: Problem) -> list[int]:
    """The ops that lead to each op, as bits."""
    before = [0] * problem.n
    for v in problem.topological_order.tolist():
        row = slice(problem.predecessor_start[v], problem.predecessor_start[v + 1])
        for u in problem.predecessor[row].tolist():
            before[v] |= before[u] | 1 << u
    return before
