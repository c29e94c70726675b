"""Securing: the fewest fences found that make a plan run as planned when ops compete first come, first served.

Under `arrival` and `greedy` an op that is ready early may take units that the plan keeps for an op issued before it.
A fence makes it wait for an op that the plan has finish just in time. Fences are added where an overtaking is seen to
cost time, and taken away again as long as the makespan holds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from msched.arrays import BoolArray, Int64Array
from msched.plan import Plan, durations_and_demands
from msched.problem import Problem
from msched.simulator import Timeline, start_times

_ROUNDS = 200
_ROOTS = 64  # overtaken ops that one round looks at
_TRIALS = 2000  # simulations that the removal of fences may cost


def secure(problem: Problem, plan: Plan, dispatch: str) -> Plan:
    """`plan` with fences, if they make it better under `dispatch`; else `plan` as it is.

    The aim is the makespan under `planned`; where that breaks or cannot keep a memory limit, the predicted start times
    of a plan that has them. Some aims cannot be held when events cost time: then the best plan met is returned.
    """
    if not problem.n:
        return plan
    starts = [start_times(problem, plan, "planned")]
    if plan.predicted_start_ns is not None and problem.memory_bytes is not None:
        starts.append(plan.predicted_start_ns)  # these may idle on purpose, and leave events their time
    best = plan
    for start in starts:
        aim = _Aim.of(problem, plan, dispatch, start)
        if aim.held(plan):
            return plan
        if aim.excess(aim.start, plan) and start is not starts[-1]:
            continue
        best = min(best, _reach(aim, plan), key=aim.score)
        if not aim.score(best)[0]:
            break
    return best


def keep_communicators_in_order(problem: Problem, plan: Plan) -> Plan:
    """`plan` with a fence between neighbours, in issue order, of each communicator whose ops lie on several streams.

    All ranks then start the collectives of one communicator in one order, without which they can deadlock.
    """
    fences = []
    for communicator in np.unique(problem.communicator[problem.communicator >= 0]).tolist():
        ops = plan.order[problem.communicator[plan.order] == communicator]
        fences += [(u, v) for u, v in zip(ops[:-1].tolist(), ops[1:].tolist(), strict=True)]
    have = set(map(tuple, problem.edges.tolist())) | set(map(tuple, plan.fences.tolist()))
    new = [(u, v) for u, v in fences if plan.stream[u] != plan.stream[v] and (u, v) not in have]
    return _with(plan, new) if new else plan


@dataclass(frozen=True)
class _Aim:
    """What a plan should reach: start times that its issue order can hold, and the makespan that they give."""

    problem: Problem
    dispatch: str
    position: Int64Array  # of each op in the issue order, which securing never changes
    start: Int64Array
    finish: Int64Array
    by_finish: Int64Array  # ops sorted by finish
    duration: Int64Array
    holds: BoolArray  # (n, E): engines of which the op holds units

    @staticmethod
    def of(problem: Problem, plan: Plan, dispatch: str, start: Int64Array) -> _Aim:
        duration, demand = durations_and_demands(problem, plan)
        position = np.empty(problem.n, np.int64)
        position[plan.order] = np.arange(problem.n)
        finish = start + duration
        by_finish = np.lexsort((position, finish)).astype(np.int64)
        holds = (demand > 0) & (duration > 0)[:, None]
        return _Aim(problem, dispatch, position, start, finish, by_finish, duration, holds)

    @property
    def sync(self) -> int:
        return self.problem.record_ns + self.problem.wait_ns

    def run(self, plan: Plan) -> Int64Array:
        return start_times(self.problem, plan, self.dispatch)

    def excess(self, start: Int64Array, plan: Plan) -> int:
        """Bytes over the limit when the ops start at these times."""
        if (limit := self.problem.memory_bytes) is None:
            return 0
        return max(0, Timeline(self.problem, plan, start, start + self.duration).peak_bytes - limit)

    def score(self, plan: Plan) -> tuple[int, int, int]:
        """Bytes over the limit, makespan, number of fences: less is better."""
        start = self.run(plan)
        return self.excess(start, plan), int((start + self.duration).max()), len(plan.fences)

    def held(self, plan: Plan) -> bool:
        excess, makespan, _ = self.score(plan)
        return excess == 0 and makespan <= int(self.finish.max())

    def fence_before(self, plan: Plan, op: int, earliest: int) -> tuple[int, int] | None:
        """The fence that makes `op` arrive as late as may be, after `earliest` but not after its aimed start."""
        last = np.searchsorted(self.finish[self.by_finish], self.start[op] - self.sync, side="right")
        for u in self.by_finish[:last][::-1].tolist():
            if self.finish[u] + self.sync <= earliest:
                return None
            if plan.stream[u] != plan.stream[op] and self.position[u] < self.position[op]:
                return u, op
        return None


def _reach(aim: _Aim, plan: Plan) -> Plan:
    """`plan` with the fences that bring it nearest to the aim, none of them needless; or as it is."""
    best = plan
    if aim.dispatch != "planned":
        best = min(best, _stop_overtaking(aim, plan), key=aim.score)
    if not aim.held(best):
        best = min(best, _pin(aim, plan), key=aim.score)
    return _remove_needless(aim, best, kept=len(plan.fences))


def _stop_overtaking(aim: _Aim, plan: Plan) -> Plan:
    """Fence off, round by round, the ops that keep others from their aimed start, first causes first."""
    best, best_score = plan, aim.score(plan)
    for _ in range(_ROUNDS):
        start = aim.run(plan)
        late = start > aim.start
        inherited = np.zeros(late.size, np.bool_)
        rows = np.concatenate([aim.problem.edges, plan.fences])
        np.logical_or.at(inherited, rows[:, 1], late[rows[:, 0]])
        by_stream = np.lexsort((aim.position, plan.stream))
        same = plan.stream[by_stream][1:] == plan.stream[by_stream][:-1]
        inherited[by_stream[1:][same & late[by_stream[:-1]]]] = True
        roots = np.flatnonzero(late & ~inherited)
        new: dict[tuple[int, int], None] = {}
        for v in roots[np.argsort(start[roots], kind="stable")][:_ROOTS].tolist():
            rivals = (aim.holds & aim.holds[v]).any(axis=1) & (aim.position > aim.position[v])
            early = rivals & (start <= start[v]) & (start < aim.start) & (start + aim.duration > aim.start[v])
            for w in np.flatnonzero(early).tolist():
                if fence := aim.fence_before(plan, w, int(start[w])):
                    new[fence] = None
        have = set(map(tuple, plan.fences.tolist()))
        fences = [fence for fence in new if fence not in have]
        if not fences:
            break
        plan = _with(plan, fences)
        score = aim.score(plan)
        if score < best_score:
            best, best_score = plan, score
        if aim.held(plan):
            break
    return best


def _pin(aim: _Aim, plan: Plan) -> Plan:
    """Fence every op that could arrive before its aimed start; exact where events are free."""
    arrival = np.zeros(aim.position.size, np.int64)
    rows, problem = aim.problem.edges, aim.problem
    apart = plan.stream[rows[:, 0]] != plan.stream[rows[:, 1]]
    np.maximum.at(arrival, rows[apart, 1], (aim.finish[rows[:, 0]] + aim.sync + problem.delay)[apart])
    if len(plan.fences):
        np.maximum.at(arrival, plan.fences[:, 1], aim.finish[plan.fences[:, 0]] + aim.sync)
    by_stream = np.lexsort((aim.position, plan.stream))
    same = plan.stream[by_stream][1:] == plan.stream[by_stream][:-1]
    before, after = by_stream[:-1][same], by_stream[1:][same]
    np.maximum.at(arrival, after, aim.finish[before] + problem.gap_ns)
    fences = [
        fence
        for op in np.flatnonzero(arrival < aim.start).tolist()
        if (fence := aim.fence_before(plan, op, int(arrival[op])))
    ]
    return _with(plan, fences) if fences else plan


def _remove_needless(aim: _Aim, plan: Plan, kept: int) -> Plan:
    """Drop fences beyond the first `kept`, in ever smaller groups, while the score does not rise (delta debugging:
    Zeller and Hildebrandt 2002)."""
    excess, makespan, _ = aim.score(plan)
    group = len(plan.fences) - kept
    trials = 0
    while group and trials < _TRIALS:
        at = kept
        while at < len(plan.fences) and trials < _TRIALS:
            fewer = replace(plan, fences=np.delete(plan.fences, slice(at, at + group), axis=0))
            trials += 1
            if aim.score(fewer)[:2] <= (excess, makespan):
                plan = fewer
            else:
                at += group
        group //= 2
    return plan


def _with(plan: Plan, fences: list[tuple[int, int]]) -> Plan:
    return replace(plan, fences=np.concatenate([plan.fences, np.array(fences, np.int64).reshape(-1, 2)]))
