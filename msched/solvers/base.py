"""The protocols of solvers, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from msched.arrays import Int64Array
from msched.plan import Incumbent, Plan
from msched.problem import Problem

Dispatch = Literal["arrival", "planned", "greedy"]


@dataclass(frozen=True)
class Budget:
    """What a solver may spend, and for whom.

    time_limit: seconds. workers: threads. seed: of everything random. deterministic: stop after deterministic work
    instead of wall time, so that equal inputs give equal plans (contract, law 8).
    dispatch: the rule under which the plan will be scored. on_progress: called with each new incumbent or bound.
    stop: when set, the solver ends at once and returns the best plan it has.
    """

    time_limit: float = 10.0
    workers: int = 1
    seed: int = 0
    deterministic: bool = False
    dispatch: Dispatch = "arrival"
    on_progress: Callable[[Incumbent], None] | None = None
    stop: threading.Event = field(default_factory=threading.Event)


class Solver(Protocol):
    """Chooses streams and order. A frozen dataclass of its parameters; built by Hydra from `_target_`."""

    def solve(self, problem: Problem, budget: Budget) -> Plan:
        """A plan; `status` and `reason` say so when there is none."""
        ...


class Assigner(Protocol):
    """Chooses only streams."""

    def assign(self, problem: Problem, budget: Budget) -> Int64Array:
        """The stream of each op, shape (n,), numbered from 0 without holes. Raises Unassignable."""
        ...


class Sequencer(Protocol):
    """Chooses only the issue order, given the streams."""

    def sequence(self, problem: Problem, stream: Int64Array, budget: Budget) -> Int64Array:
        """Ops in issue order, a linear extension of the dependencies, shape (n,)."""
        ...


class UnassignableError(Exception):
    """An algorithm cannot keep a limit of this problem; the message says which. Another algorithm might."""
