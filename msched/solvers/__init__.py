"""Algorithms that choose streams and order; `msched.solve` runs one and secures what it returns.

The module can be called: `msched.solvers()` is `msched.solvers.names()`.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from types import ModuleType
from typing import TYPE_CHECKING, Any, get_args

from msched import config
from msched.errors import InternalError, OptionError
from msched.plan import Incumbent, Plan
from msched.problem import Problem
from msched.solvers.base import Budget, Dispatch, Solver, UnassignableError

if TYPE_CHECKING:
    from msched.arrays import Int64Array

__all__ = ["check_options", "names", "secured", "solve"]

_MOST_WORKERS = 9_999  # CP-SAT takes ten thousand, of which the exact solver may start one more than it is told


def names() -> list[str]:
    """The solvers that `solve` knows by name: one file each in `conf/solver`."""
    return config.options("solver")


def solve(
    problem: Problem,
    solver: str | Solver = "cpsat",
    *,
    time_limit: float = 10.0,
    workers: int = 1,
    seed: int = 0,
    deterministic: bool = False,
    dispatch: Dispatch = "arrival",
    on_progress: Callable[[Incumbent], None] | None = None,
    stop: threading.Event | None = None,
    **parameters: Any,
) -> Plan:
    """A secured plan of `problem`.

    solver: a name from `names()`, whose `parameters` may be overridden by keyword (those of a part by a mapping, as in
        `solve(problem, "round_robin", assign={"streams": 2})`), or an instance of a solver.
    time_limit in seconds, workers, seed, deterministic, dispatch, on_progress, stop: see `Budget`.

    The plan's `bound_ns` holds for every plan of the problem. Its `status` is `infeasible` only where no plan can meet
    the limits, `invalid` where this solver's plan breaks one, `timeout` where none was found, each with a `reason`.

    Raises OptionError for an unknown solver or parameter or a value that an option cannot take, InternalError when a
    plan beats a bound.
    """
    check_options(time_limit, workers, seed, dispatch)
    if not isinstance(solver, str) and not callable(getattr(solver, "solve", None)):
        raise OptionError(f"solver is {solver!r}; a name ({', '.join(names())}) or an instance of a solver is needed")
    if parameters and not isinstance(solver, str):
        raise OptionError(f"parameters {sorted(parameters)} go with a solver's name; this is an instance")
    algorithm: Solver = (
        config.build(config.merged(config.load("solver", solver), parameters)) if isinstance(solver, str) else solver
    )
    budget = Budget(
        float(time_limit), int(workers), int(seed), deterministic, dispatch, on_progress, stop or threading.Event()
    )
    from msched.solvers.limits import impossible

    if reason := impossible(problem):
        return _without_schedule("infeasible", f"{reason}{_known_to_work(problem, dispatch)}")
    try:
        plan = algorithm.solve(problem, budget)
    except UnassignableError as error:
        return _without_schedule("invalid", str(error))
    if plan.status == "infeasible":
        plan = replace(plan, reason=f"{plan.reason}{_known_to_work(problem, dispatch)}")
    return secured(problem, plan, dispatch)


def check_options(time_limit: Any, workers: Any, seed: Any, dispatch: Any) -> None:
    """Raise OptionError that names the first option of `solve` whose value is of the wrong kind or out of range."""
    number = isinstance(time_limit, Real) and not isinstance(time_limit, bool)
    if not number or not 0 <= time_limit < math.inf:
        raise OptionError(f"time_limit is {time_limit!r}; a finite number of seconds, 0 or more, is needed")
    for name, value, least, most in (("workers", workers, 1, _MOST_WORKERS), ("seed", seed, 0, 2**31 - 1)):
        if not isinstance(value, Integral) or isinstance(value, bool) or not least <= int(value) <= most:
            raise OptionError(f"{name} is {value!r}; a whole number from {least} to {most} is needed")
    if not isinstance(dispatch, str) or dispatch not in get_args(Dispatch):
        raise OptionError(f"dispatch {dispatch!r} is not known; there are: {', '.join(get_args(Dispatch))}")


def secured(problem: Problem, plan: Plan, dispatch: Dispatch) -> Plan:
    """`plan` with its fences, its limits checked and the best bound known, ready to be scored under `dispatch`.

    Raises InternalError when its simulated makespan lies below the bound: then one of the two is wrong.
    """
    from msched.bounds import bound
    from msched.simulator import simulate
    from msched.solvers.limits import broken
    from msched.solvers.securing import keep_communicators_in_order, secure
    from msched.solvers.splitting import split

    proven = bound(problem)
    if plan.bound_ns is None or plan.bound_ns < proven.makespan_ns:
        plan = replace(plan, bound_ns=proven.makespan_ns, bound_argument=proven.argument)
    if plan.status in ("infeasible", "timeout") or (plan.status == "invalid" and not plan.order.size):
        return plan
    ordered = keep_communicators_in_order(problem, plan)
    whole = ordered if plan.stages else secure(problem, ordered, dispatch)  # stages kept the makespan as it runs
    plan = split(problem, whole, dispatch)
    timeline = simulate(problem, plan, dispatch)
    if (reason := broken(problem, plan, timeline)) and whole is not ordered:
        # Fences against overtaking take events and tasks: a plan that has none to spare runs without them.
        bare = split(problem, ordered, dispatch)
        unfenced = simulate(problem, bare, dispatch)
        if not broken(problem, bare, unfenced):
            whole, plan, timeline, reason = ordered, bare, unfenced, ""
    if reason:
        return replace(plan, status="invalid", reason=reason)
    assert plan.bound_ns is not None
    if timeline.makespan_ns < plan.bound_ns:
        raise InternalError(
            f"the plan of problem {problem.name!r} runs in {timeline.makespan_ns} ns, below the bound of "
            f"{plan.bound_ns} ns ({plan.bound_argument}); please report the problem (Problem.to_json)"
        )
    if timeline.makespan_ns == plan.bound_ns:
        return replace(plan, status="optimal")
    return replace(plan, status="feasible") if plan.status == "optimal" and whole is not plan else plan


def _known_to_work(problem: Problem, dispatch: Dispatch) -> str:
    """The smallest memory limit that a plan was found for, in words, where it is memory that makes it impossible."""
    if problem.memory_bytes is None or not problem.n:
        return ""
    from msched.solvers.serial import known_to_work

    limit = known_to_work(problem, dispatch)
    if limit is None or limit <= problem.memory_bytes:
        return ""
    return f"; one op at a time needs {limit} bytes, the smallest limit known to work"


def _without_schedule(status: Any, reason: str) -> Plan:
    import numpy as np

    nothing: Int64Array = np.zeros(0, np.int64)
    return Plan(stream=nothing, order=nothing, status=status, reason=reason)


class _Callable(ModuleType):
    """`msched.solvers` names both this package and the function that scripts call; a module may be given a class."""

    def __call__(self) -> list[str]:
        return names()


sys.modules[__name__].__class__ = _Callable
