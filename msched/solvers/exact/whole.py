"""CP-SAT on the whole problem: the model that holds every plan, then narrower ones where it cannot see a limit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from msched.errors import InternalError
from msched.problem import Problem
from msched.solvers.exact.candidate import Candidate
from msched.solvers.exact.effort import run
from msched.solvers.exact.engine import Answer
from msched.solvers.exact.ledger import Ledger
from msched.solvers.exact.scaled import Scaled, Streams, exact_grain
from msched.solvers.limits import unbindable

_FINEST_HORIZON = 10**8  # CP-SAT slows down beyond; the grain grows in powers of ten to stay below


@dataclass
class Whole:
    """The search of the whole model. impossible: no plan meets the limits. ended_early: the last search came to its
    end, not to that of its time."""

    ledger: Ledger
    grain_ns: int
    dynamic_precedences: bool
    strong_disjunctive: bool
    impossible: bool = False
    ended_early: bool = False

    @property
    def problem(self) -> Problem:
        """What is solved."""
        return self.ledger.problem

    def search(self, share: float = 1.0) -> None:
        """Spend a share of what is left: on the model that holds every plan, then, where what it finds breaks a limit,
        within narrower ones."""
        from msched.solvers.exact.waits import without_events

        problem = without_events(self.problem)
        if unbindable(problem):
            self.impossible = True
            return
        streams = Streams.of(problem)
        hint = self.hint(streams)
        scaled = Scaled.of(problem, self.grain_ns or grain_of(problem, hint))
        model = self._model(scaled, streams, hint)
        # Where seeds break limits that this model does not know, its solution may break them, too.
        share *= 0.5 if any(c.overcounted for c in self.ledger.candidates) else 1.0
        answer = self._run(model, streams, share, bounded=streams.complete)
        if answer.status == "INFEASIBLE" and hint is not None:
            raise InternalError(f"the model of problem {self.problem.name!r} excludes a plan that meets every limit")
        found = self._take(answer, model) if answer.found else None
        if streams.complete:
            self.impossible = answer.status == "INFEASIBLE"
            if answer.bound is not None and not self.impossible:
                self.ledger.raise_bound(math.ceil(answer.bound - 1e-6) * scaled.grain, "CP-SAT")
        self.ledger.report()
        self.ended_early = answer.status == "OPTIMAL"
        if not self.impossible and (self.ledger.best is None or (found is not None and found.broken)):
            self._search_within_limits(scaled)

    def _search_within_limits(self, scaled: Scaled) -> None:
        """Search the plans that surely keep the limits on events and tasks, then exclude those that break a limit one
        by one, best first. What this proves holds for plans without further fences alone, so that the bound stays."""
        from msched.solvers.exact.waits import WaitRows

        ledger = self.ledger
        streams = Streams.of(scaled.problem, chosen=True)
        for counted in (True, False):
            model = self._model(scaled, streams, self.hint(streams), hinted=False)
            rows = WaitRows(model)
            if not rows.countable:
                continue
            if counted:
                rows.keep_limits()
            while not ledger.settled and ledger.left > 0:
                if (best := ledger.best) is not None:
                    model.cp.add(model.makespan * scaled.grain < best.planned_ns)
                answer = self._run(model, streams, 0.5 if counted else 1.0, bounded=False)
                self.ended_early = answer.status in ("OPTIMAL", "INFEASIBLE")
                if not answer.found:
                    break
                found = self._take(answer, model)
                if counted or (answer.status == "OPTIMAL" and not found.broken):
                    break
                rows.exclude(found.plan.order, answer.value)

    def hint(self, streams: Streams) -> Candidate | None:
        """The best plan so far that the model holds."""
        fitting = [
            c for c in self.ledger.candidates if not c.planned_broken and streams.fit(self.problem, c.plan.stream)
        ]
        return min(fitting, key=lambda c: c.planned_ns) if fitting else None

    def _model(self, scaled: Scaled, streams: Streams, hint: Candidate | None, *, hinted: bool = True) -> Any:
        from msched.solvers.exact.model import Model
        from msched.solvers.exact.solution import add_hint

        model = Model(scaled, streams, hint.planned_ns // scaled.grain if hint else scaled.latest)
        if hint is not None and hinted:
            add_hint(model, hint.plan, hint.planned_start_ns)
        return model

    def _run(self, model: Any, streams: Streams, share: float, *, bounded: bool) -> Answer:
        """Search a model with a share of what is left of the budget, and report solutions and bounds on the way."""
        ledger, grain = self.ledger, model.scaled.grain
        workers = ledger.budget.workers
        if streams.policy == "choice" and workers > 1:
            # CP-SAT's first two workers are its linear relaxation and a neighbourhood search; the third, its scheduling
            # heuristic, is the one that proves where streams are literals.
            workers += 1
        answer = run(
            model.cp,
            ledger.effort(share, workers),
            on_solution=lambda objective: ledger.report(objective * grain),
            on_bound=(lambda bound: ledger.raise_bound(math.ceil(bound - 1e-6) * grain, "CP-SAT")) if bounded else None,
            use_dynamic_precedence_in_cumulative=self.dynamic_precedences,
            use_strong_propagation_in_disjunctive=self.strong_disjunctive,
        )
        ledger.spend(answer.work)
        if answer.status == "MODEL_INVALID":
            raise InternalError(f"problem {self.problem.name!r} makes an invalid model: {answer.message}")
        return answer

    def _take(self, answer: Answer, model: Any) -> Candidate:
        """The solution as a plan, among the candidates; its ops start when fences can let them go where that helps."""
        from msched.solvers.exact.solution import decode

        problem, dispatch = self.problem, self.ledger.budget.dispatch
        claim_ns = answer.value(model.makespan) * model.scaled.grain
        found = Candidate.of(problem, decode(model, answer.value), dispatch)
        if problem.memory_bytes is not None and (found.planned_broken or found.planned_ns > claim_ns):
            unmoved = Candidate.of(problem, decode(model, answer.value, moved=False), dispatch)
            found = min(found, unmoved, key=lambda c: c.rank)
        self._check_claim(found, claim_ns, model)
        self.ledger.add(found)
        return found

    def _check_claim(self, found: Candidate, claim_ns: int, model: Any) -> None:
        """Where nothing is rounded, the simulation under `planned` never exceeds the claim (contract, section 3).

        Fences that make a plan idle for memory are the exception where events cost time, which the model cannot see.
        """
        exempt = self.problem.memory_bytes is not None and self.problem.record_ns + self.problem.wait_ns > 0
        exact = exact_grain(self.problem) % model.scaled.grain == 0 and not model.rounded
        if exact and found.planned_ns > claim_ns and not exempt:
            raise InternalError(
                f"the solution of problem {self.problem.name!r} claims {claim_ns} ns and simulates at "
                f"{found.planned_ns} ns; please report the problem (Problem.to_json)"
            )


def grain_of(problem: Problem, hint: Candidate | None) -> int:
    """The largest time that divides every figure, for which nothing is rounded; more where the horizon is long."""
    grain = max(1, exact_grain(problem))
    horizon = hint.planned_ns if hint else int(np.sum(problem.duration) + np.sum(problem.mode_duration))
    while horizon // grain >= _FINEST_HORIZON:
        grain *= 10
    return grain
