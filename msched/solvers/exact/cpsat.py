"""The exact solver: CP-SAT on the whole problem, seeded with heuristic plans, judged by the simulator."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from msched.arrays import Int64Array
from msched.bounds import bound
from msched.errors import InternalError, OptionError
from msched.plan import Incumbent, Plan, Status, durations_and_demands
from msched.problem import Problem
from msched.simulator import Timeline, start_times
from msched.solvers.base import Budget, Solver, UnassignableError
from msched.solvers.exact.scaled import Scaled, Streams, exact_grain
from msched.solvers.limits import broken
from msched.solvers.securing import keep_communicators_in_order, secure

_FINEST_HORIZON = 10**8  # CP-SAT slows down beyond; the grain grows in powers of ten to stay below
_LOG_EVERY_S = 0.1
# CP-SAT's deterministic units that took about a second on the problems measured, so that `time_limit` means the same.
_WORK_ALONE, _WORK_INTERLEAVED = 0.2, 0.04
_NOTHING = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Candidate:
    """A secured plan with its simulated figures: under the dispatch that is asked for, and under `planned`."""

    plan: Plan
    makespan_ns: int
    planned_ns: int
    planned_start_ns: Int64Array
    waits: int
    broken: str
    planned_broken: str

    @staticmethod
    def of(problem: Problem, plan: Plan, dispatch: str) -> Candidate:
        """`plan` secured for `dispatch` and simulated."""
        plan = secure(problem, keep_communicators_in_order(problem, plan), "planned")
        plan = secure(problem, plan, dispatch)
        duration = durations_and_demands(problem, plan)[0]
        start = start_times(problem, plan, "planned")
        planned = Timeline(problem, plan, start, start + duration)
        start = start_times(problem, plan, dispatch)
        timeline = Timeline(problem, plan, start, start + duration)
        return Candidate(
            plan,
            timeline.makespan_ns,
            planned.makespan_ns,
            planned.start_ns,
            len(timeline.waits),
            broken(problem, plan, timeline),
            broken(problem, plan, planned),
        )

    @property
    def rank(self) -> tuple[bool, int, int, int, int]:
        """Limits kept, then makespan as asked for, then as planned, then events and streams: less is better."""
        return bool(self.broken), self.makespan_ns, self.planned_ns, self.waits, self.plan.streams


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
        """Build the model, hint it with the best plan that fits, search, and keep what the simulator thinks of it."""
        from ortools.sat.python import cp_model

        from msched.solvers.exact.model import Model
        from msched.solvers.exact.solution import add_hint

        streams = Streams.of(self.problem)
        fitting = [c for c in self.candidates if not c.planned_broken and streams.fit(self.problem, c.plan.stream)]
        hint = min(fitting, key=lambda c: c.planned_ns) if fitting else None
        scaled = Scaled.of(self.problem, self.solver.grain_ns or self._grain(hint))
        model = Model(scaled, streams, hint.planned_ns // scaled.grain if hint else scaled.latest)
        if hint is not None:
            add_hint(model, hint.plan, hint.planned_start_ns)
        engine = self._engine(scaled.grain if streams.complete else 0)
        if streams.policy == "choice" and self.budget.workers > 1:
            # CP-SAT's first two workers are its linear relaxation and a neighbourhood search; the third, its scheduling
            # heuristic, is the one that proves where streams are literals.
            engine.parameters.num_workers = self.budget.workers + 1
        status = self._search(engine, model)
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            self._take(engine, model)
        elif status == cp_model.MODEL_INVALID:
            raise InternalError(f"problem {self.problem.name!r} makes an invalid model: {model.cp.validate()[:500]}")
        elif status == cp_model.INFEASIBLE and hint is not None:
            raise InternalError(f"the model of problem {self.problem.name!r} excludes a plan that meets every limit")
        if streams.complete:
            self.impossible = status == cp_model.INFEASIBLE
            if not self.impossible:
                self._raise_bound(engine.best_objective_bound, scaled.grain)
        self.report()

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

    def _engine(self, bound_grain: int) -> Any:
        """A solver with the budget's parameters; bounds it proves are reported when `bound_grain` is not 0."""
        from ortools.sat.python import cp_model

        engine = cp_model.CpSolver()
        parameters = engine.parameters
        if self.budget.deterministic:
            alone = self.budget.workers == 1
            parameters.max_deterministic_time = self.budget.time_limit * (_WORK_ALONE if alone else _WORK_INTERLEAVED)
            parameters.interleave_search = self.budget.workers > 1
        else:
            parameters.max_time_in_seconds = max(self.budget.time_limit - (time.monotonic() - self.began), 0.1)
        parameters.num_workers = self.budget.workers
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

    def _search(self, engine: Any, model: Any) -> Any:
        """Run CP-SAT in this thread; another one passes the caller's stop on to it."""
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
            return engine.solve(model.cp, Progress())
        finally:
            ended.set()
            watcher.join()

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
        return Plan(stream=_NOTHING, order=_NOTHING, status="timeout", reason=reason, **known)

    def _why_not(self) -> str:
        """What stood in the way: the limit that the seed closest to a valid plan breaks."""
        if not self.candidates:
            return "no seed could keep the limits on streams" if self.solver.seeds else "no seeds were given"
        closest = min(self.candidates, key=lambda c: c.rank)
        return f"the nearest known plan, of {closest.makespan_ns} ns, is not valid: {closest.broken}"
