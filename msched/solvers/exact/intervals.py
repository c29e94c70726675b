"""Lower bounds from intervals of the precedence order: what lies between two ops must run between them.

For ops a before b, every op w with a < w < b runs after a's finish and before b's start, so that
start(b) >= finish(a) + D(a, b), with D(a, b) a lower bound on the makespan of the ops in between. CP-SAT proves one on
the small problem of these ops (as the destructive bounds of Klein and Scholl 1999, on subsets of jobs); intervals of
repeated blocks are alike, and one proof holds for all of them. What short intervals prove is a constraint in longer
ones, and all together make longer heads and tails.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, replace

import numpy as np

from msched.arrays import Int64Array
from msched.bounds import (
    best_heads_and_tails,
    bound,
    engine_load,
    least_lags,
    shortest_durations,
    stream_load,
)
from msched.problem import Problem
from msched.solvers.exact.effort import Effort, run
from msched.solvers.exact.excerpt import excerpt
from msched.solvers.exact.spans import Span, spans

_MOST_OPS = 500  # of an interval that CP-SAT is asked about
_LARGEST = 20_000  # ops of a problem whose order is looked at
_SLICE_SHARE = 0.1  # of the time, that one class of intervals may take at most
_FINEST_HORIZON = 10**8


@dataclass(frozen=True)
class IntervalBound:
    """A proven lower bound in ns, with what it rests on.

    head, tail (n,): ns that surely lie before the start and after the finish of each op. They hold for every plan, or,
    where `upper_ns` was given, for every plan that is no longer; makespan_ns never exceeds `upper_ns`.
    pairs (k, 3): (a, b, D), start of b at least D ns after the finish of a, where that was more than known before.
    """

    makespan_ns: int
    head: Int64Array
    tail: Int64Array
    argument: str
    pairs: Int64Array


def interval_bound(
    problem: Problem,
    *,
    seconds: float,
    workers: int = 1,
    seed: int = 0,
    stop: threading.Event | None = None,
    upper_ns: int | None = None,
    deterministic: bool = False,
) -> IntervalBound:
    """The best bound from intervals within the time, never below `msched.bound`.

    Valid for every plan of the problem: streams are a number for each engine, or in all; events cost what no choice of
    streams avoids (`least_lags`); modes are free; memory, labels, communicators and the host's issue bind nothing in an
    interval. upper_ns: the makespan of a known plan, which narrows the search to plans that are no longer.
    deterministic: CP-SAT's deterministic work counts instead of time.
    """
    known = bound(problem)
    state = _State.of(problem, upper_ns)
    effort = Effort(seconds, workers, seed, deterministic, stop or threading.Event())
    if problem.n <= _LARGEST:
        _prove(state, effort)
    makespan, argument = known.makespan_ns, known.argument
    if state.makespan > makespan:
        makespan, argument = state.makespan, "intervals"
    if upper_ns is not None:
        makespan = min(makespan, max(upper_ns, known.makespan_ns))
    pairs = [(a, b, lag) for (a, b), lag in sorted(state.extra.items())]
    return IntervalBound(makespan, state.head, state.tail, argument, np.array(pairs, np.int64).reshape(-1, 3))


def _prove(state: _State, effort: Effort) -> None:
    """Spans by rising length; those of a class are proven once, the most frequent class first."""
    spent = 0.0
    for group in spans(state.problem, _MOST_OPS):
        classes: dict[bytes, list[tuple[Span, _Interval]]] = {}
        for span in group:
            interval = _Interval.of(state, span)
            classes.setdefault(interval.key, []).append((span, interval))
        for alike in sorted(classes.values(), key=len, reverse=True):
            left = effort.left - (spent if effort.deterministic else 0.0)
            if left <= 0:
                break
            room = None if state.upper is None else max(state.room(span, state.upper) for span, _ in alike)
            part = effort.part(left if alike[0][0].whole else min(left, effort.seconds * _SLICE_SHARE))
            spent += part.seconds
            least = alike[0][1].least_makespan(room, part)
            for span, _ in alike:
                state.learn(span, least)
        state.propagate()


@dataclass
class _State:
    """Heads and tails (n,) in ns as they grow, and the lags (a, b) that intervals add to the dependencies."""

    problem: Problem
    upper: int | None
    lag: Int64Array
    duration: Int64Array
    head: Int64Array
    tail: Int64Array
    extra: dict[tuple[int, int], int]
    makespan: int

    @staticmethod
    def of(problem: Problem, upper: int | None) -> _State:
        head, tail = best_heads_and_tails(problem)
        return _State(problem, upper, least_lags(problem), shortest_durations(problem), head, tail, {}, 0)

    def room(self, span: Span, upper: int) -> int:
        """ns between the two ends of a span in a plan that is no longer than `upper`."""
        begin = 0 if span.a is None else int(self.head[span.a] + self.duration[span.a])
        rest = 0 if span.b is None else int(self.tail[span.b] + self.duration[span.b])
        return max(upper - begin - rest, 0)

    def learn(self, span: Span, least: int) -> None:
        if span.a is not None and span.b is not None:
            if least > self.extra.get((span.a, span.b), 0):
                self.extra[span.a, span.b] = least
        elif span.b is not None:
            self.head[span.b] = max(int(self.head[span.b]), least)
        elif span.a is not None:
            self.tail[span.a] = max(int(self.tail[span.a]), least)
        else:
            self.makespan = max(self.makespan, least)

    def propagate(self) -> None:
        """Longest paths over dependencies and learned lags, then the loads of windows between them."""
        problem = self.problem
        arcs = _arcs(problem.edges, self.lag, self.extra)
        order = problem.topological_order
        self.head = _longest(order, self.duration, arcs, self.head)
        self.tail = _longest(order[::-1], self.duration, [(v, u, lag) for u, v, lag in arcs], self.tail)
        path = int((self.head + self.duration + self.tail).max(initial=0))
        loads = engine_load(problem, self.head, self.tail), stream_load(problem, self.head, self.tail)
        self.makespan = max(self.makespan, path, *loads)


def _arcs(edges: Int64Array, lag: Int64Array, extra: dict[tuple[int, int], int]) -> list[tuple[int, int, int]]:
    rows = [(u, v, wait) for (u, v), wait in zip(edges.tolist(), lag.tolist(), strict=True)]
    return rows + [(a, b, wait) for (a, b), wait in extra.items()]


def _longest(
    order: Int64Array, duration: Int64Array, arcs: list[tuple[int, int, int]], floor: Int64Array
) -> Int64Array:
    """Earliest starts over arcs (u, v, lag) along a topological order, none below `floor`: shape (n,)."""
    after: list[list[tuple[int, int]]] = [[] for _ in range(floor.size)]
    for u, v, lag in arcs:
        after[u].append((v, lag))
    start, size = floor.tolist(), duration.tolist()
    for u in order.tolist():
        for v, lag in after[u]:
            start[v] = max(start[v], start[u] + size[u] + lag)
    return np.array(start, np.int64)


@dataclass(frozen=True)
class _Interval:
    """The ops of a span as a problem of their own, k ops: release and rest (k,), ns after a's finish, and from the
    finish to b's start, and lags (i, j, ns) that shorter intervals gave."""

    problem: Problem
    release: Int64Array
    rest: Int64Array
    extra: tuple[tuple[int, int, int], ...]

    @staticmethod
    def of(state: _State, span: Span) -> _Interval:
        problem, ops = state.problem, np.sort(span.ops)
        place = {v: i for i, v in enumerate(ops.tolist())}
        part = excerpt(problem, ops, problem.duration, problem.demand, np.ones(problem.n, np.bool_))
        inside = np.isin(problem.edges, ops).all(axis=1)
        nobody = np.full(ops.size, -1, np.int64)
        part = replace(
            part, delay=state.lag[inside], label=nobody, communicator=nobody, record_ns=0, wait_ns=0, host_issue_ns=0
        )
        release, rest = np.zeros(ops.size, np.int64), np.zeros(ops.size, np.int64)
        for end, side, other in ((span.a, release, 1), (span.b, rest, 0)):
            for row in np.flatnonzero(problem.edges[:, 1 - other] == (-1 if end is None else end)).tolist():
                at = place.get(int(problem.edges[row, other]))
                if at is not None:
                    side[at] = max(side[at], state.lag[row])
        extra = sorted((place[a], place[b], lag) for (a, b), lag in state.extra.items() if a in place and b in place)
        return _Interval(part, release, rest, tuple(extra)).in_order(span.rank)

    def in_order(self, rank: Int64Array) -> _Interval:
        """The same with ops numbered by `rank` (k,), so that like intervals have like numbers."""
        order = np.argsort(rank, kind="stable")
        number = np.argsort(order)
        p = self.problem
        edges = number[p.edges].reshape(-1, 2)
        rows = np.lexsort((edges[:, 0], edges[:, 1]))
        modes = np.lexsort((np.arange(p.mode_op.size), number[p.mode_op]))
        part = replace(
            p,
            op_names=tuple(f"op{i}" for i in range(p.n)),
            duration=p.duration[order],
            demand=p.demand[order],
            engine=p.engine[order],
            edges=edges[rows],
            delay=p.delay[rows],
            mode_op=number[p.mode_op][modes],
            mode_duration=p.mode_duration[modes],
            mode_demand=p.mode_demand[modes],
        )
        extra = tuple(sorted((int(number[a]), int(number[b]), lag) for a, b, lag in self.extra))
        return _Interval(part, self.release[order], self.rest[order], extra)

    @property
    def key(self) -> bytes:
        """Equal for intervals that differ in the names of their ops alone."""
        p = self.problem
        arrays = [p.duration, p.demand, p.engine, p.edges, p.delay, p.mode_op, p.mode_duration, p.mode_demand]
        arrays += [self.release, self.rest, np.array(self.extra, np.int64)]
        return b"".join(str(array.shape).encode() + array.tobytes() for array in arrays)

    def least_makespan(self, room: int | None, effort: Effort) -> int:
        """A lower bound in ns: from CP-SAT, or from loads where that is more; of what exceeds `room`, just room + 1."""
        p = self.problem
        head, tail = best_heads_and_tails(p)
        lag, duration = least_lags(p), shortest_durations(p)
        arcs = _arcs(p.edges, lag, {(a, b): wait for a, b, wait in self.extra})
        head = _longest(p.topological_order, duration, arcs, np.maximum(head, self.release))
        back = [(v, u, wait) for u, v, wait in arcs]
        tail = _longest(p.topological_order[::-1], duration, back, np.maximum(tail, self.rest))
        known = max(
            int((head + duration + tail).max(initial=0)), engine_load(p, head, tail), stream_load(p, head, tail)
        )
        if room is not None and known > room:
            return room + 1
        return max(known, self._proven(known, head, tail, lag, room, effort))

    def _proven(
        self, known: int, head: Int64Array, tail: Int64Array, lag: Int64Array, room: int | None, effort: Effort
    ) -> int:
        from msched.solvers.exact.model import Model
        from msched.solvers.exact.scaled import Scaled, Streams

        p, grain = self.problem, 1
        most = room if room is not None else int(p.duration.sum() + p.mode_duration.sum() + lag.sum())
        while most // grain >= _FINEST_HORIZON:
            grain *= 10
        scaled = replace(
            Scaled.of(p, grain), lag=lag // grain, head=head // grain, tail=tail // grain, bound=known // grain
        )
        # Neither delays nor empty ops are to make streams a choice: only their number is kept.
        plain = replace(
            p, delay=np.zeros_like(p.delay), duration=np.maximum(p.duration, 1),
            mode_duration=np.maximum(p.mode_duration, 1),
        )  # fmt: skip
        model = Model(scaled, Streams.of(plain), scaled.latest if room is None else room // grain)
        for a, b, wait in self.extra:
            model.cp.add(model.start[b] >= model.end[a] + wait // grain)
        answer = run(model.cp, effort, use_dynamic_precedence_in_cumulative=True)
        if answer.status == "INFEASIBLE" and room is not None:
            return room + 1
        if answer.status not in ("OPTIMAL", "FEASIBLE", "UNKNOWN") or answer.bound is None:
            return 0
        return math.ceil(answer.bound - 1e-6) * grain if math.isfinite(answer.bound) else 0
