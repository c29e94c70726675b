"""The exact solver: CP-SAT on the whole problem, seeded with heuristic plans, judged by the simulator."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from msched.bounds import bound
from msched.errors import InternalError, OptionError
from msched.plan import Incumbent, Plan, Status
from msched.problem import Problem
from msched.solvers.base import Budget, Solver, UnassignableError
from msched.solvers.exact.candidate import Candidate
from msched.solvers.exact.scaled import Scaled, Streams, exact_grain
from msched.solvers.limits import unbindable

_FINEST_HORIZON = 10**8  # CP-SAT slows down beyond; the grain grows in powers of ten to stay below
_LOG_EVERY_S = 0.1
# CP-SAT's deterministic units that took about a second on the problems measured, so that `time_limit` means the same.
_WORK_ALONE, _WORK_INTERLEAVED = 0.2, 0.04
_NOTHING = np.zeros(0, np.int64)


@dataclass(frozen=True)
class CpSat:
    """Constraint programming with proofs (Perron, Didier and Gay 2023), never worse than its seeds.

    seeds: solvers whose plans bound the horizon, hint every variable and compete with the solution found.
    grain_ns: of the model's time; 0 takes the largest that divides every figure, and ten times that, or a hundred,
        while the horizon is 10^8 grains or more.
    dynamic_precedences: CP-SAT's conditional precedences in cumulative constraints. Its switch for disjunctive ones
        stays off: with it OR-Tools 9.15 aborts the process on small models ("conflicting constraint").
    """

    seeds: tuple[Solver, ...] = ()
    grain_ns: int = 0
    dynamic_precedences: bool = True

    def __post_init__(self) -> None:
        whole = isinstance(self.grain_ns, int | np.integer) and not isinstance(self.grain_ns, bool)
        if not whole or self.grain_ns < 0:
            raise OptionError(
                f"grain_ns is {self.grain_ns!r}; a whole number of ns is needed, 0 to take the largest that is exact"
            )
        if not isinstance(self.dynamic_precedences, bool | np.bool_):
            raise OptionError(f"dynamic_precedences is {self.dynamic_precedences!r}; true or false is needed")

    def solve(self, problem: Problem, budget: Budget) -> Plan:
        """The plan that simulates best among the solution and all seeds, with the bound that was proven."""
        search = _Search(problem, budget, self)
        search.plant_seeds()
        if not search.settled and not budget.stop.is_set():
            search.run()
        return search.result()


@dataclass
class _Search:
    problem: Problem
    budget: Budget
    solver: CpSat
    began: float = field(default_factory=time.monotonic)
    candidates: list[Candidate] = field(default_factory=list)
    bound_ns: int = 0
    argument: str = ""
    log: list[Incumbent] = field(default_factory=list)
    claim_ns: int | None = None
    impossible: bool = False
    work: float = 0.0  # deterministic time of CP-SAT so far
    ended_early: bool = False  # the last search came to its end, not to that of its time

    def __post_init__(self) -> None:
        proven = bound(self.problem)
        self.bound_ns, self.argument = proven.makespan_ns, proven.argument

    @property
    def best(self) -> Candidate | None:
        usable = [c for c in self.candidates if not c.broken]
        return min(usable, key=lambda c: c.rank) if usable else None

    @property
    def settled(self) -> bool:
        return self.problem.n == 0 or (self.best is not None and self.best.makespan_ns == self.bound_ns)

    def plant_seeds(self) -> None:
        for solver in self.solver.seeds:
            if self.budget.stop.is_set() and self.candidates:
                return
            try:
                plan = solver.solve(self.problem, self.budget)
            except UnassignableError:
                continue  # another seed may keep the limit that this algorithm cannot
            self.candidates.append(Candidate.of(self.problem, plan, self.budget.dispatch))
            if not self.candidates[-1].planned_broken:
                self.report(self.candidates[-1].planned_ns)
            if self.settled:
                return

    def report(self, claim_ns: int | None = None) -> None:
        """Log a better claim or bound; of bounds that follow each other quickly only the last."""
        if claim_ns is not None and (self.claim_ns is None or claim_ns < self.claim_ns):
            self.claim_ns = claim_ns
        incumbent = Incumbent(round(time.monotonic() - self.began, 3), self.claim_ns, self.bound_ns)
        last = self.log[-1] if self.log else None
        if last is not None and last.makespan_ns == self.claim_ns:
            if last.bound_ns == self.bound_ns:
                return
            if incumbent.seconds - last.seconds < _LOG_EVERY_S:
                self.log.pop()
        self.log.append(incumbent)
        if self.budget.on_progress is not None:
            self.budget.on_progress(incumbent)

    def run(self) -> None:
        """Search the model that holds every plan; then, where what it finds breaks a limit, within narrower ones."""
        from msched.solvers.exact.waits import without_events

        problem = without_events(self.problem)
        if unbindable(problem):
            self.impossible = True
            return
        streams = Streams.of(problem)
        hint = self._hint(streams)
        scaled = Scaled.of(problem, self.solver.grain_ns or self._grain(hint))
        model = self._model(scaled, streams, hint)
        # Where seeds break limits that this model does not know, its solution may break them, too.
        share = 0.5 if any(c.overcounted for c in self.candidates) else 1.0
        engine = self._engine(streams, scaled.grain if streams.complete else 0, share)
        status = self._search(engine, model)
        found = self._take(engine, model) if status in ("OPTIMAL", "FEASIBLE") else None
        if status == "INFEASIBLE" and hint is not None:
            raise InternalError(f"the model of problem {self.problem.name!r} excludes a plan that meets every limit")
        if streams.complete:
            self.impossible = status == "INFEASIBLE"
            if not self.impossible:
                self._raise_bound(engine.best_objective_bound, scaled.grain)
        self.report()
        self.ended_early = status == "OPTIMAL"
        if not self.impossible and (self.best is None or (found is not None and found.broken)):
            self._search_within_limits(scaled)

    def _search_within_limits(self, scaled: Scaled) -> None:
        """Search the plans that surely keep the limits on events and tasks, then exclude those that break a limit one
        by one, best first. What this proves holds for plans without further fences alone, so that the bound stays."""
        from msched.solvers.exact.waits import WaitRows

        streams = Streams.of(scaled.problem, chosen=True)
        for counted in (True, False):
            model = self._model(scaled, streams, self._hint(streams), hinted=False)
            rows = WaitRows(model)
            if not rows.countable:
                continue
            if counted:
                rows.keep_limits()
            while not (self.settled or self.budget.stop.is_set() or self._remaining <= 0):
                if self.best is not None:
                    model.cp.add(model.makespan * scaled.grain < self.best.planned_ns)
                engine = self._engine(streams, 0, 0.5 if counted else 1.0)
                status = self._search(engine, model)
                self.ended_early = status in ("OPTIMAL", "INFEASIBLE")
                if status not in ("OPTIMAL", "FEASIBLE"):
                    break
                found = self._take(engine, model)
                self.report(None if found.planned_broken else found.planned_ns)
                if counted or (status == "OPTIMAL" and not found.broken):
                    break
                rows.exclude(found.plan.order, engine.value)

    def _hint(self, streams: Streams) -> Candidate | None:
        """The best plan so far that the model holds."""
        fitting = [c for c in self.candidates if not c.planned_broken and streams.fit(self.problem, c.plan.stream)]
        return min(fitting, key=lambda c: c.planned_ns) if fitting else None

    def _model(self, scaled: Scaled, streams: Streams, hint: Candidate | None, *, hinted: bool = True) -> Any:
        from msched.solvers.exact.model import Model
        from msched.solvers.exact.solution import add_hint

        model = Model(scaled, streams, hint.planned_ns // scaled.grain if hint else scaled.latest)
        if hint is not None and hinted:
            add_hint(model, hint.plan, hint.planned_start_ns)
        return model

    def _take(self, engine: Any, model: Any) -> Candidate:
        """The solution as a plan, among the candidates; its ops start when fences can let them go where that helps."""
        from msched.solvers.exact.solution import decode

        def value(variable: Any) -> int:
            return int(engine.value(variable))

        claim_ns = round(engine.objective_value) * model.scaled.grain
        found = Candidate.of(self.problem, decode(model, value), self.budget.dispatch)
        if self.problem.memory_bytes is not None and (found.planned_broken or found.planned_ns > claim_ns):
            unmoved = Candidate.of(self.problem, decode(model, value, moved=False), self.budget.dispatch)
            found = min(found, unmoved, key=lambda c: c.rank)
        self._check_claim(found, claim_ns, model)
        self.candidates.append(found)
        return found

    def _grain(self, hint: Candidate | None) -> int:
        """The largest time that divides every figure, for which nothing is rounded; more where the horizon is long."""
        problem = self.problem
        grain = max(1, exact_grain(problem))
        horizon = hint.planned_ns if hint else int(problem.duration.sum() + problem.mode_duration.sum())
        while horizon // grain >= _FINEST_HORIZON:
            grain *= 10
        return grain

    @property
    def _remaining(self) -> float:
        """Seconds of the time limit that are left; of deterministic work, what stands for them."""
        if not self.budget.deterministic:
            return self.budget.time_limit - (time.monotonic() - self.began)
        return self.budget.time_limit - self.work / self._work_per_second

    @property
    def _work_per_second(self) -> float:
        return _WORK_ALONE if self.budget.workers == 1 else _WORK_INTERLEAVED

    def _engine(self, streams: Streams, bound_grain: int, share: float) -> Any:
        """A solver with a share of what is left of the budget; it reports bounds where `bound_grain` > 0."""
        from ortools.sat.python import cp_model

        engine = cp_model.CpSolver()
        parameters = engine.parameters
        if self.budget.deterministic:
            parameters.max_deterministic_time = max(self._remaining, 0) * share * self._work_per_second
            parameters.interleave_search = self.budget.workers > 1
        else:
            parameters.max_time_in_seconds = max(self._remaining * share, 0.1)
        parameters.num_workers = self.budget.workers
        if streams.policy == "choice" and self.budget.workers > 1:
            # CP-SAT's first two workers are its linear relaxation and a neighbourhood search; the third, its scheduling
            # heuristic, is the one that proves where streams are literals.
            parameters.num_workers += 1
        parameters.random_seed = self.budget.seed
        parameters.use_dynamic_precedence_in_cumulative = self.solver.dynamic_precedences
        # In another thread the caller owns the signal, and stops the search through its budget.
        parameters.catch_sigint_signal = threading.current_thread() is threading.main_thread()
        if bound_grain:

            def proven(value: float) -> None:
                self._raise_bound(value, bound_grain)
                self.report()

            engine.best_bound_callback = proven
        return engine

    def _search(self, engine: Any, model: Any) -> str:
        """Run CP-SAT in this thread, and name its status; another thread passes the caller's stop on to it."""
        from ortools.sat.python import cp_model

        search, grain = self, model.scaled.grain

        class Progress(cp_model.CpSolverSolutionCallback):
            def on_solution_callback(self) -> None:
                search.report(round(self.objective_value) * grain)

        ended = threading.Event()

        def pass_on_stop() -> None:
            while not ended.wait(0.05):
                if search.budget.stop.is_set():
                    engine.stop_search()

        watcher = threading.Thread(target=pass_on_stop, daemon=True)
        watcher.start()
        try:
            status = engine.status_name(engine.solve(model.cp, Progress()))
        finally:
            ended.set()
            watcher.join()
        self.work += engine.response_proto.deterministic_time
        if status == "MODEL_INVALID":
            raise InternalError(f"problem {self.problem.name!r} makes an invalid model: {model.cp.validate()[:500]}")
        return str(status)

    def _raise_bound(self, value: float, grain: int) -> None:
        """Take a bound of the model: a whole number of grains, since the objective is one."""
        lower = math.ceil(value - 1e-6) * grain
        if lower > self.bound_ns:
            self.bound_ns, self.argument = lower, "CP-SAT"

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

    def result(self) -> Plan:
        best = self.best
        known: dict[str, Any] = {"bound_ns": self.bound_ns, "bound_argument": self.argument, "log": tuple(self.log)}
        if best is not None:
            status: Status = "optimal" if best.planned_ns == self.bound_ns and not best.planned_broken else "feasible"
            return replace(
                best.plan,
                status=status,
                reason="",
                predicted_start_ns=best.planned_start_ns,
                predicted_makespan_ns=best.planned_ns,
                **known,
            )
        if self.impossible:
            return Plan(stream=_NOTHING, order=_NOTHING, status="infeasible", reason=self._why_not(), **known)
        spent = time.monotonic() - self.began
        reason = f"no plan within the limits was found, and none excluded, in {spent:.1f} s; {self._why_not()}"
        if self.ended_early and not self.budget.stop.is_set():
            reason = (
                "the search ended before its time without a plan within the limits, though none is excluded; "
                f"another solver may find one; {self._why_not()}"
            )
            return Plan(stream=_NOTHING, order=_NOTHING, status="invalid", reason=reason, **known)
        return Plan(stream=_NOTHING, order=_NOTHING, status="timeout", reason=reason, **known)

    def _why_not(self) -> str:
        """What stood in the way: the limit that the seed closest to a valid plan breaks."""
        if not self.candidates:
            return "no seed could keep the limits on streams" if self.solver.seeds else "no seeds were given"
        closest = min(self.candidates, key=lambda c: c.rank)
        return f"the nearest known plan, of {closest.makespan_ns} ns, is not valid: {closest.broken}"
