"""What an exact search knows so far: plans, the best bound, and the log of both over time."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from msched.bounds import bound
from msched.plan import Incumbent, Plan
from msched.problem import Problem
from msched.solvers.base import Budget
from msched.solvers.exact.candidate import Candidate
from msched.solvers.exact.effort import Effort

_LOG_EVERY_S = 0.1


@dataclass
class Ledger:
    """Plans as candidates, and the bound with the argument that gave it. Threads share it.

    work: seconds that deterministic work stands for, of all searches so far.
    """

    problem: Problem
    budget: Budget
    began: float = field(default_factory=time.monotonic)
    candidates: list[Candidate] = field(default_factory=list)
    bound_ns: int = 0
    argument: str = ""
    log: list[Incumbent] = field(default_factory=list)
    claim_ns: int | None = None
    work: float = 0.0
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        proven = bound(self.problem)
        self.bound_ns, self.argument = proven.makespan_ns, proven.argument

    @property
    def best(self) -> Candidate | None:
        """The best plan that keeps all limits, as it will run."""
        usable = [c for c in self.candidates if not c.broken]
        return min(usable, key=lambda c: c.rank) if usable else None

    @property
    def settled(self) -> bool:
        """Whether nothing is left to find."""
        return self.problem.n == 0 or (self.best is not None and self.best.makespan_ns == self.bound_ns)

    @property
    def elapsed(self) -> float:
        """Seconds since the search began."""
        return time.monotonic() - self.began

    @property
    def left(self) -> float:
        """Seconds of the time limit that are left; of deterministic work, what stands for them."""
        if self.budget.stop.is_set():
            return 0.0
        return max(0.0, self.budget.time_limit - (self.work if self.budget.deterministic else self.elapsed))

    def effort(self, share: float = 1.0, workers: int | None = None) -> Effort:
        """A share of what is left."""
        workers = self.budget.workers if workers is None else workers
        return Effort(self.left * share, workers, self.budget.seed, self.budget.deterministic, self.budget.stop)

    def spend(self, seconds: float) -> None:
        """Count deterministic work as so many seconds."""
        with self._lock:
            self.work += seconds

    def add(self, candidate: Candidate) -> None:
        """Take a plan."""
        with self._lock:
            self.candidates.append(candidate)
            self.report(None if candidate.planned_broken else candidate.planned_ns)

    def take(self, plan: Plan) -> None:
        """Take a plan as it is, and secured where that promises more than the best so far."""
        dispatch = self.budget.dispatch
        as_it_is = Candidate.unsecured(self.problem, plan, dispatch)
        self.add(as_it_is)
        best = self.best
        if best is None or as_it_is.promise < best.makespan_ns:
            self.add(Candidate.of(self.problem, plan, dispatch))

    def raise_bound(self, bound_ns: int, argument: str) -> None:
        """Take a bound on all plans of the problem."""
        with self._lock:
            if bound_ns > self.bound_ns:
                self.bound_ns, self.argument = bound_ns, argument
                self.report()

    def report(self, claim_ns: int | None = None) -> None:
        """Log a better claim or bound; of bounds that follow each other quickly only the last."""
        with self._lock:
            if claim_ns is not None and (self.claim_ns is None or claim_ns < self.claim_ns):
                self.claim_ns = claim_ns
            incumbent = Incumbent(round(self.elapsed, 3), self.claim_ns, self.bound_ns)
            last = self.log[-1] if self.log else None
            if last is not None and last.makespan_ns == self.claim_ns:
                if last.bound_ns == self.bound_ns:
                    return
                if incumbent.seconds - last.seconds < _LOG_EVERY_S:
                    self.log.pop()
            self.log.append(incumbent)
            if self.budget.on_progress is not None:
                self.budget.on_progress(incumbent)
