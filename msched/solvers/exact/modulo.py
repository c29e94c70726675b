"""Modulo scheduling of networks of repeated blocks: one period is solved and tiled over all of them."""

from __future__ import annotations

import time
from dataclasses import dataclass

from msched.errors import OptionError
from msched.plan import Incumbent, Plan
from msched.problem import Problem
from msched.solvers.base import Budget, Solver, UnassignableError
from msched.solvers.exact.effort import Effort
from msched.solvers.exact.period import shortest_period
from msched.solvers.exact.repetition import repetitions
from msched.solvers.exact.tiling import Tile, compacted, crossing_lags, tiled
from msched.solvers.joint.schemes import MOST_STREAMS, counts_streams
from msched.solvers.stream_pool import stream_pool


@dataclass(frozen=True)
class Modulo:
    """Software pipelining of layers (Rau 1994; as constraints Bonfietti, Lombardi, Benini and Milano 2014).

    Runs of repeated blocks are found by structure; the least period of each is sought with iterative modulo scheduling
    and CP-SAT; the periods, and around them what does not repeat, give an order, and a serial schedule in that order,
    improved forwards and backwards, the plan. All ops run in their first mode.

    otherwise: the solver of networks in which nothing repeats.
    time_share: of the time limit, over all runs. max_streams: most streams where the problem sets no limit.
    Raises OptionError for a value out of range.
    """

    otherwise: Solver | None = None
    time_share: float = 0.5
    max_streams: int = 32

    def __post_init__(self) -> None:
        if self.max_streams < 1:
            raise OptionError(f"modulo: max_streams is {self.max_streams}; it must be at least 1")
        if not 0 < self.time_share <= 1:
            raise OptionError(f"modulo: time_share is {self.time_share}; it must be above 0 and at most 1")

    def solve(self, problem: Problem, budget: Budget) -> Plan:
        """The shorter of two tilings. Raises UnassignableError where no blocks repeat and no other solver is named, or
        for a limit on streams that cannot be kept."""
        began = time.monotonic()
        runs = repetitions(problem)
        if not runs and self.otherwise is not None:
            return self.otherwise.solve(problem, budget)
        if not runs:
            raise UnassignableError(
                "modulo: no three blocks of two ops or more repeat in this network; another solver is needed"
            )
        most = problem.streams or self.max_streams
        streams = stream_pool(problem, most if counts_streams(problem) else min(most, MOST_STREAMS))
        lag = dict(zip(map(tuple, problem.edges.tolist()), crossing_lags(problem).tolist(), strict=True))
        ops = sum(run.blocks.size for run in runs)
        tiles = []
        for run in runs:
            seconds = self.time_share * budget.time_limit * run.blocks.size / ops
            effort = Effort(seconds, budget.workers, budget.seed, budget.deterministic, budget.stop)
            tiles.append(Tile(run, shortest_period(problem, run, streams, run.lags(lag), effort)))
        plans = [compacted(problem, streams, tiled(problem, tiles, late=late)) for late in (False, True)]
        makespan, plan = min(plans, key=lambda pair: pair[0])
        if budget.on_progress is not None:
            budget.on_progress(Incumbent(round(time.monotonic() - began, 3), makespan, 0))
        return plan
