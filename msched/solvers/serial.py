"""One op at a time in a low-peak order: the plan that needs the least memory of those that are easy to find."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from msched.plan import Plan
from msched.problem import Problem
from msched.solvers.base import Dispatch
from msched.solvers.low_peak import low_peak_order


def serial_plan(problem: Problem) -> Plan:
    """Ops one at a time: on one stream, or where streams are bound to engines on one each, with a fence from each op to
    the next that has another stream.
    """
    order = low_peak_order(problem)
    stream = np.zeros(problem.n, np.int64)
    if problem.binding == "engine":
        stream = np.unique(problem.engine, return_inverse=True)[1].astype(np.int64)
    steps = np.stack([order[:-1], order[1:]], axis=1)
    fences = steps[stream[steps[:, 0]] != stream[steps[:, 1]]]
    return Plan(stream=stream, order=order, fences=fences)


def known_to_work(problem: Problem, dispatch: Dispatch) -> int | None:
    """The memory limit, bytes, that the serial plan of a problem keeps, simulated; None where that breaks another."""
    from msched.simulator import simulate
    from msched.solvers.limits import broken, impossible

    roomy = replace(problem, memory_bytes=None)
    if impossible(roomy):
        return None
    plan = serial_plan(roomy)
    timeline = simulate(roomy, plan, dispatch)
    return None if broken(roomy, plan, timeline) else timeline.peak_bytes
