"""The exact solver: CP-SAT on windows and on the whole problem, seeded with heuristics, judged by the simulator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from msched.errors import OptionError
from msched.plan import Plan, Status
from msched.problem import Problem
from msched.solvers.base import Budget, Solver, UnassignableError
from msched.solvers.exact.ledger import Ledger
from msched.solvers.exact.refutation import Refutation
from msched.solvers.exact.scaled import Scaled, Streams
from msched.solvers.exact.whole import Whole, grain_of

_WHOLE_AT_ONCE = 80  # ops up to which the whole model gets all the time
_WHOLE_AGAIN = 150  # ops up to which it gets what windows leave
_WHOLE_FIRST = 600  # ops up to which it is tried before windows
_REFUTING = 0.4  # of the time limit, beside the rest
_TOO_SHORT = 0.02  # of the time limit: what is left then is not begun
_NOTHING = np.zeros(0, np.int64)


@dataclass(frozen=True)
class CpSat:
    """Constraint programming with proofs (Perron, Didier and Gay 2023), never worse than its seeds.

    seeds: solvers whose plans bound the horizon, hint every variable and compete with the solution found.
    grain_ns: of the model's time; 0 takes the largest that divides every figure, and ten times that, or a hundred,
        while the horizon is 10^8 grains or more.
    dynamic_precedences: CP-SAT's conditional precedences in cumulative constraints. Its switch for disjunctive ones
        stays off: with it OR-Tools 9.15 aborts the process on small models ("conflicting constraint").
    strong_disjunctive: CP-SAT's stronger propagation of ops that exclude each other, as in job shops.
    windows: large-neighbourhood search on windows of the best schedule.
    destructive: makespans are refuted by propagation beside the search, up to 1,500 ops (`msched.bounds.destructive`).
    """

    seeds: tuple[Solver, ...] = ()
    grain_ns: int = 0
    dynamic_precedences: bool = True
    strong_disjunctive: bool = True
    windows: bool = True
    destructive: bool = True

    def __post_init__(self) -> None:
        whole = isinstance(self.grain_ns, int | np.integer) and not isinstance(self.grain_ns, bool)
        if not whole or self.grain_ns < 0:
            raise OptionError(
                f"grain_ns is {self.grain_ns!r}; a whole number of ns is needed, 0 to take the largest that is exact"
            )
        for name in ("dynamic_precedences", "strong_disjunctive", "windows", "destructive"):
            if not isinstance(value := getattr(self, name), bool | np.bool_):
                raise OptionError(f"{name} is {value!r}; true or false is needed")

    def solve(self, problem: Problem, budget: Budget) -> Plan:
        """The plan that simulates best among the solutions and all seeds, with the bound that was proven."""
        ledger = Ledger(problem, budget)
        whole = Whole(ledger, self.grain_ns, bool(self.dynamic_precedences), bool(self.strong_disjunctive))
        refutation = Refutation(ledger)
        try:
            self._plant_seeds(ledger, refutation)
            for share, phase in self._phases(problem, whole, refutation):
                if ledger.settled or whole.impossible:
                    break
                if ledger.candidates and ledger.left <= _TOO_SHORT * budget.time_limit:
                    break
                phase(share)
        finally:
            refutation.end()
        return _result(ledger, whole)

    def _plant_seeds(self, ledger: Ledger, refutation: Refutation) -> None:
        for solver in self.seeds:
            if ledger.budget.stop.is_set() and ledger.candidates:
                return
            try:
                ledger.take(solver.solve(ledger.problem, ledger.budget))
            except UnassignableError:
                continue  # another seed may keep the limit that this algorithm cannot
            if ledger.settled:
                return
            if self.destructive:
                refutation.begin(_REFUTING)

    def _phases(
        self, problem: Problem, whole: Whole, refutation: Refutation
    ) -> list[tuple[float, Callable[[float], None]]]:
        """What to spend shares of the time that is left on, in turn.

        Small models are proven as a whole. Large ones gain from windows first; that the whole model improves on the
        windows, or its bound on what propagation refutes, is rare beyond a few hundred ops.
        """
        if not self.windows or problem.n <= _WHOLE_AT_ONCE or problem.memory_bytes is not None:
            return [(1.0, whole.search)]
        windows = partial(improve, whole, refutation)
        if problem.n <= _WHOLE_AGAIN:
            return [(0.25, whole.search), (0.2, windows), (1.0, whole.search)]
        first = [(0.15, whole.search)] if problem.n <= _WHOLE_FIRST else []
        return [*first, (1.0, windows), (1.0, refutation.last), (1.0, whole.search)]


def improve(whole: Whole, refutation: Refutation, share: float) -> None:
    """Search windows of the best plan with a share of what is left of the budget."""
    from msched.solvers.exact.neighbourhoods import Neighbourhoods

    ledger = whole.ledger
    streams = Streams.of(ledger.problem)
    best = whole.hint(streams)
    if best is None:
        return
    scaled = Scaled.of(ledger.problem, whole.grain_ns or grain_of(ledger.problem, best))
    search = Neighbourhoods.of(ledger, scaled, streams, best.plan, best.planned_start_ns)
    if (plan := search.search(ledger.effort(share), refutation.thread)) is not None:
        ledger.take(plan)


def _result(ledger: Ledger, whole: Whole) -> Plan:
    best = ledger.best
    known: dict[str, Any] = {"bound_ns": ledger.bound_ns, "bound_argument": ledger.argument, "log": tuple(ledger.log)}
    if best is not None:
        status: Status = "optimal" if best.planned_ns == ledger.bound_ns and not best.planned_broken else "feasible"
        return replace(
            best.plan,
            status=status,
            reason="",
            predicted_start_ns=best.planned_start_ns,
            predicted_makespan_ns=best.planned_ns,
            **known,
        )
    why = _why_not(ledger)
    if whole.impossible:
        return Plan(stream=_NOTHING, order=_NOTHING, status="infeasible", reason=why, **known)
    if whole.ended_early and not ledger.budget.stop.is_set():
        reason = (
            "the search ended before its time without a plan within the limits, though none is excluded; "
            f"another solver may find one; {why}"
        )
        return Plan(stream=_NOTHING, order=_NOTHING, status="invalid", reason=reason, **known)
    reason = f"no plan within the limits was found, and none excluded, in {ledger.elapsed:.1f} s; {why}"
    return Plan(stream=_NOTHING, order=_NOTHING, status="timeout", reason=reason, **known)


def _why_not(ledger: Ledger) -> str:
    """What stood in the way: the limit that the plan closest to a valid one breaks."""
    if not ledger.candidates:
        return "no seed could keep the limits on streams"
    closest = min(ledger.candidates, key=lambda c: c.rank)
    return f"the nearest known plan, of {closest.makespan_ns} ns, is not valid: {closest.broken}"
