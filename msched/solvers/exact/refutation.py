"""The dual side beside the search for plans: makespans below the best plan's are refuted in a thread of their own."""

from __future__ import annotations

import threading
import time

from msched.bounds import destructive
from msched.solvers.exact.ledger import Ledger

_MOST_OPS = 1500  # beyond, one pass of propagation over all ops takes seconds and raises little


class Refutation:
    """Destructive bounds of the problem of a ledger, which takes each of them as it is proven."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._exhausted = False  # nothing more would be refuted with more time

    def begin(self, share: float) -> None:
        """Refute beside whatever else runs for a share of the budget; at once, with one worker; once only.

        Where the budget is deterministic only the plain propagation is run, whose work the problem alone determines.
        """
        ledger = self.ledger
        if self._thread is not None or ledger.problem.n > _MOST_OPS or ledger.settled:
            return
        end = time.monotonic() + share * ledger.left
        self._thread = threading.Thread(target=self._refute, args=(end,), daemon=True)
        self._thread.start()
        if ledger.budget.deterministic or ledger.budget.workers == 1:
            self._thread.join()

    def last(self, share: float) -> None:
        """Refute with a share of what is left, where nothing else has a use for it."""
        if self._thread is None or self.ledger.budget.deterministic:
            return
        self._thread.join()
        if not self._exhausted:
            self._refute(time.monotonic() + share * self.ledger.left)

    def _refute(self, end: float) -> None:
        ledger = self.ledger
        plain = ledger.budget.deterministic
        destructive(
            ledger.problem,
            self._upper,
            known_ns=ledger.bound_ns,
            deadline=None if plain else end,
            shaving=0 if plain else 4,
            stop=self._stopped,
            on_bound=lambda bound_ns: ledger.raise_bound(bound_ns, "refuted makespans"),
        )
        self._exhausted = not self._stopped() and (plain or time.monotonic() < end)

    def _stopped(self) -> bool:
        return self._ended.is_set() or self.ledger.budget.stop.is_set() or self.ledger.settled

    def _upper(self) -> int:
        """A makespan that some plan reaches under `planned`, so that no bound lies above."""
        known = [c.planned_ns for c in self.ledger.candidates if not c.planned_broken]
        known += [c.makespan_ns for c in self.ledger.candidates if not c.broken]
        return min(known, default=2 * self.ledger.bound_ns)

    @property
    def thread(self) -> threading.Thread | None:
        """What occupies a worker while it lives."""
        return self._thread

    def end(self) -> None:
        """Stop, and wait until that is done."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
