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
_WORK = 2_000_000  # and ops that these may simulate, on a large problem
_OPS_A_ROUND = 8  # one round of stopping costs as much as so many simulations


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
        return self.score_of(plan, self.run(plan))

    def score_of(self, plan: Plan, start: Int64Array) -> tuple[int, int, int]:
        """The score of a plan whose ops start at these times."""
        return self.excess(start, plan), int((start + self.duration).max()), len(plan.fences)

    def held(self, plan: Plan) -> bool:
        return self.reached(self.score(plan))

    def reached(self, score: tuple[int, int, int]) -> bool:
        """Whether a plan of this score is as good as the aim."""
        return score[0] == 0 and score[1] <= int(self.finish.max())

    def neighbours(self, plan: Plan) -> Int64Array:
        """Pairs (before, after) of ops that follow each other on a stream: shape (k, 2)."""
        by_stream = np.lexsort((self.position, plan.stream))
        same = plan.stream[by_stream][1:] == plan.stream[by_stream][:-1]
        return np.stack([by_stream[:-1][same], by_stream[1:][same]], axis=1)

    def arrivals(self, plan: Plan, finish: Int64Array) -> Int64Array:
        """When each op arrives at its engines, in ns, if the ops finish at these times: shape (n,)."""
        rows, problem = self.problem.edges, self.problem
        arrival = (self.position + 1) * problem.host_issue_ns
        apart = plan.stream[rows[:, 0]] != plan.stream[rows[:, 1]]
        np.maximum.at(arrival, rows[apart, 1], (finish[rows[:, 0]] + self.sync + problem.delay)[apart])
        crossing = plan.fences[plan.stream[plan.fences[:, 0]] != plan.stream[plan.fences[:, 1]]]
        np.maximum.at(arrival, crossing[:, 1], finish[crossing[:, 0]] + self.sync)
        before, after = self.neighbours(plan).T
        arrival[after] = np.maximum(arrival[after], finish[before] + problem.gap_ns)
        return arrival

    def latest_starts(self, plan: Plan) -> Int64Array:
        """Starts (n,) in ns, none before the aimed one, of a schedule with the same makespan in which every op starts
        as late as those that finish after it let it: the aim, run backwards in falling order of finish."""
        from msched.simulator.dispatch_kernel import planned_starts

        problem, demand = self.problem, durations_and_demands(self.problem, plan)[1]
        order, edges, fences = (np.ascontiguousarray(x) for x in (
            self.by_finish[::-1], problem.edges[:, ::-1], plan.fences[:, ::-1]
        ))  # fmt: skip
        backwards = planned_starts(
            order, plan.stream, self.duration, demand, problem.capacity, edges, problem.delay, fences,
            problem.gap_ns, self.sync, 0,
        )  # fmt: skip
        latest: Int64Array = np.maximum(self.start, int(self.finish.max()) - backwards - self.duration)
        return latest

    def fence_before(self, plan: Plan, op: int, earliest: int) -> tuple[int, int] | None:
        """The fence that makes `op` arrive as late as may be, after `earliest` but not after its aimed start."""
        last = np.searchsorted(self.finish[self.by_finish], self.start[op] - self.sync, side="right")
        for u in self.by_finish[:last][::-1].tolist():
            if self.finish[u] + self.sync <= earliest:
                return None
            if plan.stream[u] != plan.stream[op] and self.position[u] < self.position[op]:
                return u, op
        return None

    def fence_behind(self, plan: Plan, op: int, arrival: int) -> tuple[int, int] | None:
        """The fence with which `op` arrives as soon as may be after this time, but not after its aimed start."""
        first, last = np.searchsorted(
            self.finish[self.by_finish], [arrival - self.sync, self.start[op] - self.sync + 1]
        )
        for u in self.by_finish[first:last].tolist():
            if plan.stream[u] != plan.stream[op] and self.position[u] < self.position[op]:
                return u, op
        return None


def _reach(aim: _Aim, plan: Plan) -> Plan:
    """`plan` with the fences that bring it nearest to the aim, none of them needless; or as it is."""
    best = plan
    if aim.dispatch != "planned":
        best = min(best, _stop_overtaking(aim, plan), key=aim.score)
    if not aim.held(best):
        # On top of the fences found, so that those that they do not need lie together and go in large groups.
        pinned = _pin(aim, best)
        best = pinned if aim.held(pinned) else min(best, pinned, _pin(aim, plan), key=aim.score)
    return _remove_needless(aim, best, kept=len(plan.fences))


def _stop_overtaking(aim: _Aim, plan: Plan) -> Plan:
    """Fence off the ops that keep others from a start: those that the aim lets foresee, then, round by round, those
    that a simulation shows, first causes first.

    An op may be late as long as the makespan holds, so first it is kept from its latest start. Where that is not
    enough, because lateness within the slack of each adds up, overtaking is foreseen for, and at last each op kept
    from, the aimed start.
    """
    best, best_score = plan, aim.score(plan)
    latest = aim.latest_starts(plan)
    some = plan
    for foreseen, limit in ((latest, latest), (aim.start, latest), (None, aim.start)):
        if foreseen is not None:
            some = _foreseen(aim, plan, foreseen)
        for _ in range(min(_ROUNDS, _WORK // (_OPS_A_ROUND * aim.start.size) + 1)):
            start = aim.run(some)
            score = aim.score_of(some, start)
            if score < best_score:
                best, best_score = some, score
            if aim.reached(score):
                return best
            fences = _against_first_causes(aim, some, start, limit)
            if not fences:
                break
            some = _with(some, fences)
    return best


def _foreseen(aim: _Aim, plan: Plan, limit: Int64Array) -> Plan:
    """`plan` with fences that put ops into their queues behind those that they would else keep from their limits (n,).

    A fence makes its op arrive later, so that others may overtake it now: this is repeated until nothing changes.
    """
    from msched.solvers.securing_kernel import victims

    demand = durations_and_demands(aim.problem, plan)[1]
    by_start = np.lexsort((aim.position, aim.start))
    fence: dict[int, int] = {}
    arrival = aim.arrivals(plan, aim.finish)
    for _ in range(_ROUNDS):
        victim = victims(by_start, aim.start, limit, arrival, aim.duration, demand, aim.problem.capacity)
        moved = False
        for w in np.flatnonzero(victim >= 0).tolist():
            behind = max(int(arrival[victim[w]]), int(arrival[w]) + 1)
            found = aim.fence_behind(plan, w, behind) or aim.fence_before(plan, w, int(arrival[w]))
            if found:
                fence[w] = found[0]
                arrival[w] = aim.finish[found[0]] + aim.sync
                moved = True
        if not moved:
            break
    have = set(map(tuple, plan.fences.tolist()))
    return _with(plan, [(u, w) for w, u in sorted(fence.items()) if (u, w) not in have])


def _against_first_causes(aim: _Aim, plan: Plan, start: Int64Array, limit: Int64Array) -> list[tuple[int, int]]:
    """New fences for the ops that overtook, in queue or on an engine, an op that starts after its limit (n,) though
    nothing that it waits for does."""
    late, finish = start > limit, start + aim.duration
    arrival = aim.arrivals(plan, finish)
    rows = np.concatenate([aim.problem.edges, plan.fences, aim.neighbours(plan)])
    inherited = np.zeros(late.size, np.bool_)
    inherited[rows[late[rows[:, 0]], 1]] = True
    roots = np.flatnonzero(late & ~inherited)
    new: dict[tuple[int, int], None] = {}
    for v in roots[np.argsort(start[roots], kind="stable")][:_ROOTS].tolist():
        ahead = (arrival <= arrival[v]) | (start <= start[v])
        ahead &= (arrival < aim.start) & (finish > aim.start[v]) & (aim.position > aim.position[v])
        rivals = np.flatnonzero(ahead)
        for w in rivals[(aim.holds[rivals] & aim.holds[v]).any(axis=1)].tolist():
            cause = (finish + aim.sync >= arrival[v]) & (aim.finish + aim.sync <= aim.start[w])
            causes = np.flatnonzero(cause & (plan.stream != plan.stream[w]) & (aim.position < aim.position[w]))
            if causes.size:
                new[int(causes[finish[causes].argmin()]), w] = None
            elif fence := aim.fence_before(plan, w, int(arrival[w])):
                new[fence] = None
    have = set(map(tuple, plan.fences.tolist()))
    return [fence for fence in new if fence not in have]


def _pin(aim: _Aim, plan: Plan) -> Plan:
    """Fence every op that could arrive before its aimed start; exact where events are free."""
    arrival = aim.arrivals(plan, aim.finish)
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
    most = min(_TRIALS, _WORK // plan.order.size + 1)
    trials = 0
    while group and trials < most:
        at = kept
        while at < len(plan.fences) and trials < most:
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
