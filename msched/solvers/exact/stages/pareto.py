"""Pareto fronts of the makespan against one other figure, by the epsilon-constraint method."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from msched import config
from msched.errors import OptionError
from msched.plan import Plan, Stage
from msched.problem import Problem
from msched.simulator import simulate
from msched.solvers import solve
from msched.solvers.base import Dispatch
from msched.solvers.limits import memory_needs

_LIMIT = {"peak_bytes": "memory_bytes", "streams": "streams", "waits": "events"}


def pareto(
    problem: Problem,
    against: str = "peak_bytes",
    *,
    points: int = 8,
    time_limit: float = 60.0,
    workers: int = 1,
    seed: int = 0,
    dispatch: Dispatch = "arrival",
    deterministic: bool = False,
    **parameters: Any,
) -> tuple[Plan, ...]:
    """Plans of which none is better than another in both makespan and `against`: shortest first, simulated.

    against: `peak_bytes`, `streams` or `waits`. points: limits on it that are tried, evenly between what the shortest
    plan found needs and what every plan needs. The exact solver minimises the makespan under each limit, from the
    tightest on, and starts from the plans of those before, which every looser limit allows (Haimes, Lasdon and Wismer
    1971). time_limit: seconds in all. parameters: of the exact solver.

    Each plan carries its figure in `stages`, and there and in `bound_ns` what is proven: no plan has a figure below the
    one bound, and none whose figure is at most the plan's own runs in less than the other.

    Raises OptionError for an unknown figure or option.
    """
    if against not in _LIMIT:
        raise OptionError(f"against {against!r} is not known; there are: {', '.join(_LIMIT)}")
    if isinstance(points, bool) or not isinstance(points, int) or points < 1:
        raise OptionError(f"points is {points!r}; a whole number, 1 or more, is needed")
    options: dict[str, Any] = {"workers": workers, "seed": seed, "dispatch": dispatch, "deterministic": deterministic}
    exact = config.build(config.merged(config.load("solver", "cpsat"), parameters))
    deadline = time.monotonic() + time_limit
    share = time_limit / (points + 1)
    shortest = solve(problem, exact, time_limit=share, **options)
    if shortest.status in ("infeasible", "timeout", "invalid") or not problem.n:
        return ()
    most, least = _figure(problem, shortest, against, dispatch), _least(problem, against)
    found: list[Plan] = [shortest]
    for k, limit in enumerate(limits := _limits(least, most, points)):
        seconds = share if deterministic else max(0.0, deadline - time.monotonic()) / (len(limits) - k)
        seeded = replace(exact, seeds=(*exact.seeds, *(_known(plan) for plan in found[1:])))
        tighter: dict[str, Any] = {_LIMIT[against]: limit}
        plan = solve(replace(problem, **tighter), seeded, time_limit=seconds, **options)
        if plan.status not in ("infeasible", "timeout", "invalid"):
            found.append(plan)
    return _front(problem, found, against, least, dispatch)


def _known(plan: Plan) -> Any:
    """A plan found before, as a seed."""
    return SimpleNamespace(solve=lambda problem, budget: plan)


def _figure(problem: Problem, plan: Plan, against: str, dispatch: Dispatch) -> int:
    timeline = simulate(problem, plan, dispatch)
    return {"peak_bytes": timeline.peak_bytes, "streams": plan.streams, "waits": len(timeline.waits)}[against]


def _least(problem: Problem, against: str) -> int:
    """What every plan needs, whatever its makespan."""
    if against == "peak_bytes":
        return int(memory_needs(problem).max(initial=0))
    streams = int(np.unique(problem.engine).size) if problem.binding == "engine" else 1
    return streams if against == "streams" else 0


def _limits(least: int, most: int, points: int) -> list[int]:
    """At most so many whole limits from `least` on, evenly spread, below `most`."""
    step = max(1, -(-(most - least) // points))
    return list(range(least, most, step))


def _front(problem: Problem, plans: list[Plan], against: str, least: int, dispatch: Dispatch) -> tuple[Plan, ...]:
    rows = [
        (simulate(problem, plan, dispatch).makespan_ns, _figure(problem, plan, against, dispatch), k)
        for k, plan in enumerate(plans)
    ]
    front: list[Plan] = []
    lowest: int | None = None
    for _, figure, k in sorted(rows):
        if lowest is None or figure < lowest:
            lowest = figure
            front.append(replace(plans[k], stages=(Stage(against, figure, min(least, figure)),)))
    return tuple(front)
