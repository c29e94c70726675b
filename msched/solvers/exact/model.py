"""The CP-SAT model of a problem: start variables, engines and memory as cumulatives, streams by one of three policies.

Constraints, for ops u, v with start s, duration d, streams x (all in grains):

- s_v >= s_u + d_u + lag for a dependency whose ends lie on different streams, s_v >= s_u + d_u otherwise;
- the units held on an engine never exceed its capacity (cumulative; no-overlap where no two ops fit);
- on a stream, [s, s + d + gap) do not overlap: a cumulative over the number of streams where only that matters,
  a no-overlap for each stream over optional intervals where it matters which;
- live bytes, [producer's start, last consumer's finish) of every tensor, stay within the limit (cumulative);
- the host issues one op at a time; collectives of one communicator keep one order;
- redundant: heads, tails, the proven bound, and for each engine capacity x makespan >= energy (the lever that took
  a prototype from 2 to 7 proofs of 8 on the Standard Task Graph Set).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from msched.arrays import BoolArray, Int64Array
from msched.problem import Problem
from msched.solvers.exact.scaled import Scaled, Streams, counted


@dataclass(frozen=True)
class Frame:
    """The part of a schedule that a model leaves as it is, where the problem is an excerpt of a larger one.

    free (n,): ops that the search places. Of the others, those `shifted` (n,) start earlier than `start` (n,), in
    grains, by as much as the makespan falls below `makespan`; the rest start at `start`. stream (n,): of those that are
    not free. least: makespan that the frame allows.
    """

    free: BoolArray
    shifted: BoolArray
    start: Int64Array
    stream: Int64Array
    makespan: int
    least: int

    def moves(self, u: int, v: int) -> bool:
        """Whether the two ops can move against each other."""
        return bool(self.free[u] or self.free[v] or self.shifted[u] != self.shifted[v])


@dataclass
class Model:
    """A CP-SAT model under construction and its variables. `lane[v]` maps a stream to the literal 'op v is on it'.

    unit[e]: how many units of engine e the model counts as one. rounded: units or bytes were too many for CP-SAT's
    arithmetic, so that its solutions may hold a little too much.
    """

    scaled: Scaled
    streams: Streams
    horizon: int
    frame: Frame | None = None
    cp: cp_model.CpModel = field(default_factory=cp_model.CpModel)
    start: list[Any] = field(default_factory=list)
    end: list[Any] = field(default_factory=list)
    size: list[Any] = field(default_factory=list)
    interval: dict[tuple[int, int, int | None], Any] = field(default_factory=dict)
    mode: list[list[Any]] = field(default_factory=list)
    need: dict[tuple[int, int], Any] = field(default_factory=dict)
    unit: dict[int, int] = field(default_factory=dict)
    lane: list[dict[int, Any]] = field(default_factory=list)
    opened: dict[int, dict[int, Any]] = field(default_factory=dict)
    together: dict[tuple[int, int], Any] = field(default_factory=dict)
    used: list[Any] = field(default_factory=list)
    stream_count: dict[int, Any] = field(default_factory=dict)
    tensor_end: dict[int, Any] = field(default_factory=dict)
    tensor_span: dict[int, Any] = field(default_factory=dict)
    issue: list[Any] = field(default_factory=list)
    first: dict[tuple[int, int], Any] = field(default_factory=dict)
    makespan: Any = None
    rounded: bool = False

    def __post_init__(self) -> None:
        self._ops()
        self._lanes()
        self._dependencies()
        self._engines()
        self._streams()
        if self.frame is None:
            self._memory()
            self._host()
        self._communicators()
        self.cp.minimize(self.makespan)

    def _ops(self) -> None:
        scaled, problem = self.scaled, self.scaled.problem
        least = scaled.bound if self.frame is None else self.frame.least
        self.makespan = self.cp.new_int_var(min(least, self.horizon), self.horizon, "makespan")
        rows = np.searchsorted(problem.mode_op, np.arange(problem.n + 1))
        heads, tails, durations = scaled.head.tolist(), scaled.tail.tolist(), scaled.duration.tolist()
        for v in range(problem.n):
            sizes = [durations[v], *scaled.mode_duration[rows[v] : rows[v + 1]].tolist()]
            if self.frame is not None and not self.frame.free[v]:
                self._framed(v, self.frame, sizes[0])
                continue
            latest = max(self.horizon - min(sizes) - tails[v], heads[v])
            start = self.cp.new_int_var(heads[v], latest, f"start{v}")
            self.start.append(start)
            if len(sizes) == 1:
                self.mode.append([])
                self.size.append(sizes[0])
                self.end.append(start + sizes[0])
            else:
                chosen = [self.cp.new_bool_var(f"mode{v}_{k}") for k in range(len(sizes))]
                self.cp.add_exactly_one(chosen)
                self.mode.append(chosen)
                size = self.cp.new_int_var(min(sizes), max(sizes), f"size{v}")
                self.cp.add(size == sum(c * d for c, d in zip(chosen, sizes, strict=True)))
                self.size.append(size)
                self.end.append(self.cp.new_int_var(heads[v], self.horizon, f"end{v}"))
                self.cp.add(self.end[v] == start + size)
            self.cp.add(self.makespan >= self.end[v] + tails[v])

    def _framed(self, v: int, frame: Frame, size: int) -> None:
        start: Any = int(frame.start[v])
        if frame.shifted[v]:
            start = self.makespan + (start - frame.makespan)
        self.start.append(start)
        self.end.append(start + size)
        self.size.append(size)
        self.mode.append([])

    def _interval(self, v: int, longer: int = 0, lane: int | None = None) -> Any:
        """The interval of op v, held `longer` at its end; present where the op is on stream `lane`, if one is named."""
        key = (v, longer, lane)
        if key not in self.interval:
            start, size, end = self.start[v], self.size[v] + longer, self.end[v] + longer
            if lane is None:
                self.interval[key] = self.cp.new_interval_var(start, size, end, f"op{v}+{longer}")
            else:
                present = self.lane[v][lane]
                self.interval[key] = self.cp.new_optional_interval_var(
                    start, size, end, present, f"op{v}+{longer}@{lane}"
                )
        return self.interval[key]

    def _lanes(self) -> None:
        problem = self.scaled.problem
        if self.streams.policy != "choice":
            return
        self.lane = [{} for _ in range(problem.n)]
        opened: dict[int, dict[int, Any]] = {}  # of the streams of a choice: those in use by the ops so far
        of_label: dict[int, dict[int, Any]] = {}
        for v in problem.topological_order.tolist():
            label = int(problem.label[v])
            if label in of_label:
                self.lane[v] = of_label[label]
                continue
            options = self.streams.options(problem, v)
            if self.frame is not None:
                self.lane[v] = self._framed_lane(v, self.frame, options)
                if label >= 0:
                    of_label[label] = self.lane[v]
                continue
            before = opened.get(options.start, {})
            # Streams are alike: they are numbered by first use in topological order.
            literals = {s: self.cp.new_bool_var(f"lane{v}_{s}") for s in options[: len(before) + 1]}
            self.cp.add_exactly_one(literals.values())
            for s in literals:
                if s > options.start:
                    self.cp.add_implication(literals[s], before[s - 1])
            self.lane[v] = literals
            opened[options.start] = self._opened(v, before, literals)
            if label >= 0:
                of_label[label] = literals

    def _framed_lane(self, v: int, frame: Frame, options: range) -> dict[int, Any]:
        """Streams keep their names, since the frame has ops on them; a label may have bound the op to one."""
        if not frame.free[v] or frame.stream[v] >= 0:
            return {int(frame.stream[v]): self.cp.new_constant(1)}
        literals = {s: self.cp.new_bool_var(f"lane{v}_{s}") for s in options}
        self.cp.add_exactly_one(literals.values())
        return literals

    def _opened(self, v: int, before: dict[int, Any], literals: dict[int, Any]) -> dict[int, Any]:
        """Literals that may be true only for streams that op v or an earlier one takes."""
        after: dict[int, Any] = {}
        for s, literal in literals.items():
            if s in before:
                after[s] = self.cp.new_bool_var(f"opened{v}_{s}")
                self.cp.add_bool_or([after[s].negated(), before[s], literal])
            else:
                after[s] = literal
        self.opened[v] = {s: after[s] for s in before}
        return after

    def _dependencies(self) -> None:
        for (u, v), lag in zip(self.scaled.problem.edges.tolist(), self.scaled.lag.tolist(), strict=True):
            if self.frame is None or self.frame.moves(u, v):
                self._follows(u, v, lag)

    def _follows(self, u: int, v: int, lag: int, given: tuple[Any, ...] = ()) -> None:
        """v starts after u ends: `gap` later on one stream, `lag` later on two; where the literals `given` hold."""
        gap = self.scaled.gap
        if self.streams.policy == "choice" and self.lane[u] is not self.lane[v]:
            self.cp.add(self.start[v] >= self.end[u] + min(gap, lag)).only_enforce_if(*given)
            if lag > gap:  # where the gap is longer, the no-overlap of the stream keeps it
                same = self.same_stream(u, v)
                apart = () if same is None else (same.negated(),)
                self.cp.add(self.start[v] >= self.end[u] + lag).only_enforce_if(*given, *apart)
            return
        problem = self.scaled.problem
        differ = self.streams.policy == "count" or (
            self.streams.policy == "fixed" and problem.binding == "engine" and problem.engine[u] != problem.engine[v]
        )
        self.cp.add(self.start[v] >= self.end[u] + (lag if differ else gap)).only_enforce_if(*given)

    def same_stream(self, u: int, v: int) -> Any:
        """A literal that may be true only where u and v share a stream; None where they never can."""
        if not self.lane[u].keys() & self.lane[v].keys():
            return None
        for a, b in ((u, v), (v, u)):
            if len(self.lane[a]) == 1:
                return self.lane[b][next(iter(self.lane[a]))]
        pair = (min(u, v), max(u, v))
        if pair not in self.together:
            same = self.together[pair] = self.cp.new_bool_var(f"together{u}_{v}")
            for a, b in ((u, v), (v, u)):
                for s, literal in self.lane[a].items():
                    there = [self.lane[b][s]] if s in self.lane[b] else []
                    self.cp.add_bool_or([same.negated(), literal.negated(), *there])
        return self.together[pair]

    def _engines(self) -> None:
        scaled, problem = self.scaled, self.scaled.problem
        rows = np.searchsorted(problem.mode_op, np.arange(problem.n + 1))
        for e, capacity in enumerate(problem.capacity.tolist()):
            ops, needs, sizes = [], [], []
            for v in range(problem.n):
                need = [int(problem.demand[v, e]), *problem.mode_demand[rows[v] : rows[v + 1], e].tolist()]
                size = [int(scaled.duration[v]), *scaled.mode_duration[rows[v] : rows[v + 1]].tolist()]
                if any(q and d for q, d in zip(need, size, strict=True)):
                    ops.append(v)
                    needs.append(need)
                    sizes.append(size)
            if not ops:
                continue
            intervals, demands, energy = [self._interval(v) for v in ops], [], []
            # An empty interval needs no room on an engine, but a no-overlap keeps it out of the inside of others.
            alone = min(map(min, needs)) * 2 > capacity and min(map(min, sizes)) > 0
            needs, room, self.unit[e], exact = counted(needs, capacity, self.horizon)
            self.rounded |= not exact
            for v, need, size in zip(ops, needs, sizes, strict=True):
                if self.mode[v]:
                    self.need[v, e] = self.cp.new_int_var(min(need), max(need), f"need{v}_{e}")
                    self.cp.add(self.need[v, e] == sum(c * q for c, q in zip(self.mode[v], need, strict=True)))
                    demands.append(self.need[v, e])
                    energy.append(sum(c * (q * d) for c, q, d in zip(self.mode[v], need, size, strict=True)))
                else:
                    demands.append(need[0])
                    energy.append(need[0] * size[0])
            if alone:
                self.cp.add_no_overlap(intervals)
            else:
                self.cp.add_cumulative(intervals, demands, room)
            if self.frame is None:
                self.cp.add(self.makespan * room >= sum(energy))

    def _streams(self) -> None:
        if self.streams.policy == "choice":
            self._chosen_streams()
        else:
            self._counted_streams()

    def _chosen_streams(self) -> None:
        scaled, problem = self.scaled, self.scaled.problem
        ops = range(problem.n)
        for s in range(self.streams.lanes):
            here = [v for v in ops if s in self.lane[v] and not self._empty_in_frame(v)]
            self.cp.add_no_overlap([self._interval(v, scaled.gap, s) for v in here])
            if problem.tasks_per_stream is not None and self.frame is None:
                self.cp.add(sum(self.lane[v][s] for v in here) <= problem.tasks_per_stream)
        if self.streams.lanes < problem.n:
            self.cp.add_cumulative([self._interval(v, scaled.gap) for v in ops], [1] * problem.n, self.streams.lanes)
        if problem.binding == "engine" and problem.streams is not None and self.frame is None:
            self.used = [self.cp.new_bool_var(f"used{s}") for s in range(self.streams.lanes)]
            for literals in self.lane:
                for s, literal in literals.items():
                    self.cp.add_implication(literal, self.used[s])
            self.cp.add(sum(self.used) <= problem.streams)

    def _empty_in_frame(self, v: int) -> bool:
        """A framed op without duration: where it stands inside of another it is the simulator that moves it."""
        return self.frame is not None and not self.frame.free[v] and self.size[v] + self.scaled.gap == 0

    def _counted_streams(self) -> None:
        """Where it does not matter which op shares a stream with which, at most so many are busy at any time."""
        scaled, problem = self.scaled, self.scaled.problem
        for row in range(self.streams.first.size - 1):
            most = int(self.streams.first[row + 1] - self.streams.first[row])
            ops = [v for v in range(problem.n) if problem.binding == "free" or problem.engine[v] == row]
            if self.streams.policy == "count" and not scaled.gap:  # an empty interval fits where a stream changes hands
                ops = [v for v in ops if not isinstance(self.size[v], int) or self.size[v] > 0]
            if not ops:
                continue
            intervals = [self._interval(v, scaled.gap) for v in ops]
            if most == 1:
                self.cp.add_no_overlap(intervals)
            elif problem.binding == "engine" and problem.streams is not None and self.frame is None:
                self.stream_count[row] = self.cp.new_int_var(1, most, f"streams{row}")
                self.cp.add_cumulative(intervals, [1] * len(ops), self.stream_count[row])
            elif most < len(ops):
                self.cp.add_cumulative(intervals, [1] * len(ops), most)
        if self.stream_count and problem.streams is not None:
            single = np.unique(problem.engine).size - len(self.stream_count)
            self.cp.add(sum(self.stream_count.values()) + single <= problem.streams)

    def _memory(self) -> None:
        problem = self.scaled.problem
        if problem.memory_bytes is None:
            return
        intervals, sizes = [], []
        for t in np.flatnonzero((problem.tensor_bytes > 0) & ~problem.tensor_persistent).tolist():
            producer = int(problem.tensor_producer[t])
            row = slice(problem.tensor_consumer_start[t], problem.tensor_consumer_start[t + 1])
            ends = [self.end[v] for v in sorted(set(problem.tensor_consumer[row].tolist()))] or [self.end[producer]]
            end: Any = self.makespan if problem.tensor_output[t] else ends[0]
            if len(ends) > 1 and not problem.tensor_output[t]:
                end = self.tensor_end[t] = self.cp.new_int_var(0, self.horizon, f"tensor{t}_end")
                self.cp.add_max_equality(end, ends)
            self.tensor_span[t] = self.cp.new_int_var(0, self.horizon, f"tensor{t}_span")
            intervals.append(self.cp.new_interval_var(self.start[producer], self.tensor_span[t], end, f"tensor{t}"))
            sizes.append([int(problem.tensor_bytes[t])])
        for v in np.flatnonzero(problem.workspace > 0).tolist():
            intervals.append(self._interval(v))
            sizes.append([int(problem.workspace[v])])
        room = problem.memory_bytes - int(problem.tensor_bytes[problem.tensor_persistent].sum())
        sizes, room, _, exact = counted(sizes, room, self.horizon)
        self.rounded |= not exact
        self.cp.add_cumulative(intervals, [size for (size,) in sizes], room)

    def _host(self) -> None:
        if not self.scaled.host:
            return
        for v in range(self.scaled.problem.n):
            issue = self.cp.new_int_var(0, self.horizon, f"issue{v}")
            self.cp.add(issue + self.scaled.host <= self.start[v])
            self.issue.append(issue)
        self.cp.add_no_overlap(
            [self.cp.new_fixed_size_interval_var(i, self.scaled.host, f"issued{v}") for v, i in enumerate(self.issue)]
        )

    def _communicators(self) -> None:
        """Any two collectives of a communicator are ordered, one finished (and its event seen) before the other."""
        problem = self.scaled.problem
        if not self.scaled.fence_lag:
            for ops in _communicators_on_no_engine(problem):
                self.cp.add_no_overlap([self._interval(v) for v in ops.tolist()])
            return
        for u, v in unordered_collectives(problem):
            if self.frame is not None and not self.frame.moves(u, v):
                continue
            first = self.first[u, v] = self.cp.new_bool_var(f"first{u}_{v}")
            self._follows(u, v, self.scaled.fence_lag, (first,))
            self._follows(v, u, self.scaled.fence_lag, (first.negated(),))


def _communicators_on_no_engine(problem: Problem) -> Iterator[Int64Array]:
    """Collectives of each communicator that no engine is known to run one at a time."""
    for communicator in np.unique(problem.communicator[problem.communicator >= 0]).tolist():
        ops = np.flatnonzero(problem.communicator == communicator)
        alone = (2 * problem.demand[ops] > problem.capacity).all(axis=0).any()
        moded = np.isin(ops, problem.mode_op).any()
        if ops.size > 1 and (moded or not alone or (problem.duration[ops] == 0).any()):
            yield ops


def unordered_collectives(problem: Problem) -> list[tuple[int, int]]:
    """Pairs of ops of one communicator that no chain of dependencies orders, sorted."""
    members = np.flatnonzero(problem.communicator >= 0).tolist()
    bit = {v: 1 << k for k, v in enumerate(members)}
    before = [0] * problem.n  # the collectives that lead to each op, as bits
    for v in problem.topological_order.tolist() if members else ():
        row = slice(problem.predecessor_start[v], problem.predecessor_start[v + 1])
        for u in problem.predecessor[row].tolist():
            before[v] |= before[u] | bit.get(u, 0)
    return [
        (u, v)
        for i, u in enumerate(members)
        for v in members[i + 1 :]
        if problem.communicator[u] == problem.communicator[v] and not (before[v] & bit[u] or before[u] & bit[v])
    ]
