"""Small inputs and solvers that the tests of the study build from configs."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from msched.graph import Op, OpGraph, Tensor
from msched.plan import Incumbent, Plan
from msched.problem import Problem
from msched.solvers.base import Budget

MILLISECOND = 1_000_000


def fork(branches: int = 2, duration_ns: int = MILLISECOND, output_bytes: int = 4096) -> OpGraph:
    """One op, then `branches` ops that may run side by side, then one that needs them all."""
    names = ["split", *(f"branch{b}" for b in range(branches)), "join"]
    ops = tuple(Op(name=name, kind="Custom", duration_ns=duration_ns, engine="ai_core") for name in names)
    inner = range(1, branches + 1)
    tensors = (
        Tensor(name="t0", bytes=output_bytes, producer=0, consumers=tuple(inner)),
        *(Tensor(name=f"t{b}", bytes=output_bytes, producer=b, consumers=(branches + 1,)) for b in inner),
    )
    return OpGraph("fork", ops, tensors, warnings=("a fork is assumed",))


def broken() -> OpGraph:
    """Fails as code does that has a defect."""
    raise ZeroDivisionError("nothing divides by zero")


def number() -> int:
    """Is no graph."""
    return 7


@dataclass(frozen=True)
class OneStream:
    """Everything on one stream, in topological order."""

    def solve(self, problem: Problem, budget: Budget) -> Plan:
        return Plan(stream=np.zeros(problem.n, np.int64), order=problem.topological_order)


@dataclass(frozen=True)
class Liar:
    """One stream for each op, however many there may be, and a claim that nobody should believe."""

    def solve(self, problem: Problem, budget: Budget) -> Plan:
        return Plan(
            stream=np.arange(problem.n),
            order=problem.topological_order,
            status="optimal",
            predicted_makespan_ns=1,
        )


@dataclass(frozen=True)
class Endless:
    """Has a plan at once and looks for better ones until it is stopped."""

    seconds: float = 60.0

    def solve(self, problem: Problem, budget: Budget) -> Plan:
        plan = OneStream().solve(problem, budget)
        if budget.on_progress is not None:
            budget.on_progress(Incumbent(0.0, int(problem.duration.sum()), None))
        end = time.monotonic() + self.seconds
        while time.monotonic() < end and not budget.stop.is_set():
            time.sleep(0.01)
        return plan
