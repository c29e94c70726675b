"""Sampling: many schedules around the best ones found, generated forwards and backwards, the best as a plan."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from msched.arrays import Int64Array
from msched.bounds import bound
from msched.errors import OptionError
from msched.plan import Incumbent, Plan
from msched.problem import Problem
from msched.solvers.base import Budget, Solver, UnassignableError
from msched.solvers.colouring import coloured
from msched.solvers.exact.candidate import best_of
from msched.solvers.joint.sampled import empty_pool, sides_of
from msched.solvers.joint.schemes import MOST_STREAMS, counts_streams, scheme
from msched.solvers.stream_pool import StreamPool, stream_pool, within_limits

if TYPE_CHECKING:
    from msched.solvers.joint.sampled_kernel import Pool, Sides

_PLACED = 4_000_000  # ops placed, over all schedules, where `rounds` does not say how many
_AT_ONCE = 30_000  # ops placed between two looks at the clock
_COMPARED = 8  # of these, how many are compared as they will run
_SECURED = 3  # and secured
_SECURING = 1.5  # times the share of time after which no further one is


@dataclass(frozen=True)
class Sampling:
    """Adaptive search over schedule generation schemes with forward-backward improvement.

    Serial and parallel schemes (Kolisch 1996, EJOR 90), in both directions of time, over engines as cumulative
    resources and streams: counted where events cost nothing, chosen op by op where they do. First nine priority rules,
    then sequences sampled around the pool of the best schedules: rules in mixtures with noise (Kolisch and Drexl 1996),
    windows drawn anew, two-point crossover (Hartmann 1998); each schedule justified (Valls, Ballestin and Quintanilla
    2005, EJOR 165). Of an op with modes the one that finishes first is taken, or a sampled one.

    seeds: solvers whose plans the pool begins with and which compete with what is found.
    rounds: schedules to generate, each pass of a justification counted; null for a number that falls with the size.
    time_share: of the time limit, for generation; without effect where the budget is deterministic.
    max_streams: most streams where the problem sets no limit.
    Raises OptionError for a value out of range.
    """

    seeds: tuple[Solver, ...] = ()
    rounds: int | None = None
    time_share: float = 0.5
    max_streams: int = 32

    def __post_init__(self) -> None:
        if self.max_streams < 1:
            raise OptionError(f"sampling: max_streams is {self.max_streams}; it must be at least 1")
        if self.rounds is not None and self.rounds < 1:
            raise OptionError(f"sampling: rounds is {self.rounds}; it must be at least 1, or null")
        if not 0 < self.time_share <= 1:
            raise OptionError(f"sampling: time_share is {self.time_share}; it must be above 0 and at most 1")

    def solve(self, problem: Problem, budget: Budget) -> Plan:
        """The plan that simulates best under `budget.dispatch`, secured, with start times that hold under `planned`.

        A pass takes O(m + n log n + n x (instants that an op passes over)). Raises UnassignableError for a limit on
        streams that cannot be kept.
        """
        began = time.monotonic()
        most = problem.streams or self.max_streams
        pool_of_streams = stream_pool(problem, most if counts_streams(problem) else min(most, MOST_STREAMS))
        seeds = self._seeds(problem, budget)
        if problem.n == 0:
            return Plan(stream=np.zeros(0, np.int64), order=np.zeros(0, np.int64), predicted_makespan_ns=0)
        target = bound(problem).makespan_ns
        sides = sides_of(scheme(problem, pool_of_streams), scheme(problem, pool_of_streams, mirrored=True))
        pool = self._searched(problem, budget, sides, seeds, target, began)
        plans = [_plan(problem, pool_of_streams, pool, int(i)) for i in _best(pool)[:_COMPARED]]
        end = began + min(1.0, _SECURING * self.time_share) * budget.time_limit
        best = best_of(
            problem,
            [*seeds, *plans],
            budget.dispatch,
            _SECURED,
            lambda: budget.stop.is_set() or (not budget.deterministic and time.monotonic() > end),
        )
        return replace(
            best.plan,
            status="feasible",
            reason="",
            predicted_start_ns=best.planned_start_ns,
            predicted_makespan_ns=best.planned_ns,
        )

    def _seeds(self, problem: Problem, budget: Budget) -> list[Plan]:
        plans = []
        for solver in self.seeds:
            try:
                plans.append(solver.solve(problem, budget))
            except UnassignableError:
                continue  # another seed may keep the limit that this algorithm cannot
        return plans

    def _searched(
        self, problem: Problem, budget: Budget, sides: Sides, seeds: list[Plan], target: int, began: float
    ) -> Pool:
        """The pool after as many schedules, or as long, as the parameters and the budget say."""
        from msched.solvers.joint.sampled_kernel import portfolio, search

        pool = empty_pool(problem.n)
        _plant(problem, sides, pool, seeds)
        rounds = self.rounds or max(200, _PLACED // problem.n)
        step = max(4, _AT_ONCE // problem.n)
        end = began + self.time_share * budget.time_limit
        rng = np.random.default_rng(budget.seed)
        best, combination, combinations = -1, 0, 4 * len(sides.rules_ahead)
        while True:
            found = int(pool.makespan[pool.makespan >= 0].min(initial=2**62))
            if found != best and found < 2**62 and budget.on_progress is not None:
                budget.on_progress(Incumbent(round(time.monotonic() - began, 3), found, target))
            best = found
            spent = int(pool.effort[0])
            over = not budget.deterministic and time.monotonic() >= end
            if best <= target or spent >= rounds or ((budget.stop.is_set() or over) and best < 2**62):
                return pool
            until = min(rounds, spent + step)
            if combination < combinations:
                combination = portfolio(combination, target, until, sides, pool)
            else:
                search(target, until, sides, pool, rng)


def _plant(problem: Problem, sides: Sides, pool: Pool, seeds: list[Plan]) -> None:
    """Begin the pool with what the seeds' sequences, streams and modes give."""
    from msched.solvers.joint.sampled_kernel import generated, justified, keep

    order = problem.topological_order
    for plan in seeds:
        key = np.empty(problem.n)
        key[plan.order] = np.arange(problem.n)
        modes = np.zeros(problem.n, np.int64) if plan.mode is None else plan.mode[order]
        schedule, makespan = generated(key[order], modes, plan.stream[order], False, False, sides, pool)
        keep(*justified(schedule, makespan, sides, pool), pool)


def _best(pool: Pool) -> Int64Array:
    """Filled places of the pool, the shortest schedule first."""
    by_length = np.argsort(pool.makespan, kind="stable")
    return by_length[pool.makespan[by_length] >= 0]


def _plan(problem: Problem, streams: StreamPool, pool: Pool, i: int) -> Plan:
    """The plan of a schedule of the pool: ops issued as they start, what takes no time before what starts then."""
    number = np.argsort(problem.topological_order)
    start, finish, mode = pool.start[i][number], pool.finish[i][number], pool.mode[i][number]
    order = np.lexsort((number, finish > start, start))
    if counts_streams(problem):
        stream = coloured(problem, order, start, finish + problem.gap_ns, streams.of_op, streams.first)
    else:
        stream = pool.stream[i][number]
    return Plan(stream=within_limits(problem, stream), order=order, mode=mode if mode.any() else None)
