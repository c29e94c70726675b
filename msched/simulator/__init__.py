"""How a plan runs: the score of every solver."""

from __future__ import annotations

from msched.arrays import Int64Array
from msched.errors import OptionError
from msched.plan import Plan, check_plan, durations_and_demands
from msched.problem import Problem
from msched.simulator.timeline import Timeline

__all__ = ["DISPATCHES", "FIDELITIES", "Timeline", "simulate", "start_times"]

DISPATCHES = ("arrival", "planned", "greedy")
FIDELITIES = ("fixed",)


def simulate(problem: Problem, plan: Plan, dispatch: str = "arrival", fidelity: str = "fixed") -> Timeline:
    """Run `plan` and say when everything happened.

    dispatch: who goes first when arrived ops compete for an engine; `arrival` (first come, first served, the head of a
    queue blocks), `planned` (in issue order) or `greedy` (first come, but whoever fits). fidelity: `fixed` durations.

    Raises PlanError when the plan does not fit the problem, OptionError for an unknown dispatch or fidelity.
    """
    if dispatch not in DISPATCHES:
        raise OptionError(f"dispatch {dispatch!r} is not known; there are: {', '.join(DISPATCHES)}")
    if fidelity not in FIDELITIES:
        raise OptionError(f"fidelity {fidelity!r} is not known; there are: {', '.join(FIDELITIES)}")
    check_plan(problem, plan)
    start = start_times(problem, plan, dispatch)
    finish = start + durations_and_demands(problem, plan)[0]
    start.setflags(write=False)
    finish.setflags(write=False)
    return Timeline(problem, plan, start, finish)


def start_times(problem: Problem, plan: Plan, dispatch: str = "arrival") -> Int64Array:
    """Start of every op in ns, shape (n,), of a plan that is known to fit its problem."""
    from msched.simulator.dispatch_kernel import planned_starts, queued_starts

    duration, demand = durations_and_demands(problem, plan)
    sync = problem.record_ns + problem.wait_ns
    given = (plan.order, plan.stream, duration, demand, problem.capacity, problem.edges, problem.delay, plan.fences)
    if dispatch == "planned":
        return planned_starts(*given, problem.gap_ns, sync, problem.host_issue_ns)
    return queued_starts(*given, problem.gap_ns, sync, problem.host_issue_ns, dispatch == "greedy")
