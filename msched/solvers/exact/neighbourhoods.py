"""Large-neighbourhood search: windows of the best schedule are solved one after the other, each by CP-SAT.

Shaw (1998) gave the method; here a neighbourhood is a window of time (`window.py`). Its size follows what CP-SAT can
finish: it grows where optima are proven without gain, and shrinks where time runs out. One thread a worker, each with a
process of its own, on one incumbent; a gain that comes too late for the schedule that it was found on is sought again
on the new one.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from msched.arrays import BoolArray, Int64Array
from msched.plan import Plan, durations_and_demands
from msched.simulator import start_times
from msched.solvers.exact.effort import Effort, run
from msched.solvers.exact.ledger import Ledger
from msched.solvers.exact.resampling import Resampling
from msched.solvers.exact.scaled import Scaled, Streams
from msched.solvers.exact.schedule import Schedule
from msched.solvers.exact.window import Window

_SMALLEST, _LARGEST = 15, 400
_GROW, _SHRINK = 1.08, 0.9
_STALE = 40.0  # times that windows may cover all ops in vain before the search ends
_EXPLORED = 0.2  # share of windows that go to a search drawn at random
_FADING = 0.98  # of what was gained and spent so far, with each window
_FEWEST, _MOST = 20, 200  # ops in a window that is sampled
_SAMPLED_S = 0.05  # seconds for the smallest of these, more as they grow
_ROUNDS = 10_000  # schedules that stand for a second of that
# CP-SAT's searches that took turns at being the best on windows of 40 to 80 ops, over five networks.
_SEARCHES: tuple[dict[str, Any], ...] = (
    {"linearization_level": 0, "use_dynamic_precedence_in_cumulative": True},
    {"linearization_level": 0, "search_branching": "PORTFOLIO_WITH_QUICK_RESTART_SEARCH"},
)


@dataclass
class Neighbourhoods:
    """The search on a schedule. size: ops in a window at first. seconds: for one window at most."""

    ledger: Ledger
    scaled: Scaled
    schedule: Schedule
    size: float = 40.0
    seconds: float = 0.4
    tries: int = 0
    covered: float = 0.0  # ops in windows since the last gain, over all ops
    shorter: int = 0  # gains
    ended: list[float] = field(default_factory=lambda: [1.0] * len(_SEARCHES))  # windows gained or proven, by search
    spent: list[float] = field(default_factory=lambda: [1.0] * len(_SEARCHES))  # seconds
    gained: list[float] = field(default_factory=lambda: [0.0, 0.0])  # ns of late, by CP-SAT and by sampling
    took: list[float] = field(default_factory=lambda: [1.0, 1.0])  # seconds of late
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @staticmethod
    def of(ledger: Ledger, scaled: Scaled, streams: Streams, plan: Plan, start_ns: Int64Array) -> Neighbourhoods:
        """The search that begins at a plan that starts so under `planned`."""
        return Neighbourhoods(ledger, scaled, Schedule.of(scaled, streams, plan, start_ns))

    def search(self, effort: Effort, busy: threading.Thread | None = None) -> Plan | None:
        """The best plan found with that effort, None where nothing was gained; one worker waits for a `busy` thread."""
        count = 1 if effort.deterministic else effort.workers
        threads = [
            threading.Thread(target=self._work, args=(effort, k, busy if k == 0 else None), daemon=True)
            for k in range(count - 1)
        ]
        for thread in threads:
            thread.start()
        self._work(effort, count)
        for thread in threads:
            thread.join()
        return self.schedule.plan if self.shorter else None

    def _work(self, effort: Effort, number: int, busy: threading.Thread | None = None) -> None:
        rng = np.random.default_rng((effort.seed, number))
        if busy is not None:
            busy.join()
        sampled = Resampling.possible(self.schedule)
        while not self._over(effort):
            began = time.monotonic()
            sampling = sampled and self._samples(rng)
            gain, work = (self._sample if sampling else self._solve)(effort, rng)
            with self._lock:
                self.tries += 1
                self.gained[sampling] = _FADING * self.gained[sampling] + gain
                spent = work if effort.deterministic else time.monotonic() - began
                self.took[sampling] = _FADING * self.took[sampling] + spent

    def _samples(self, rng: np.random.Generator) -> bool:
        """Whether the next window is sampled: what gained more a second of late, or the other to see."""
        better = self.gained[True] * self.took[False] >= self.gained[False] * self.took[True]
        return bool(better != (rng.random() < _EXPLORED))

    def _sample(self, effort: Effort, rng: np.random.Generator) -> tuple[int, float]:
        """Sample one window; by how many ns the incumbent is shorter, and the work that stands for seconds."""
        schedule = self.schedule
        n = schedule.early.size
        size = min(n, int(_FEWEST * (_MOST / _FEWEST) ** rng.random()))
        at = int(rng.integers(size, n + 1))
        neighbourhood = Resampling.of(schedule, *_window(schedule, at, size), self.ledger.bound_ns)
        self._cover(size / n)
        if neighbourhood is None:
            return 0, 0.0
        seconds = min(_SAMPLED_S * size / _FEWEST, effort.left)
        rounds = int(seconds * _ROUNDS) if effort.deterministic else None
        _, plan = neighbourhood.search(seconds, int(rng.integers(2**31)), effort.stop.is_set, rounds)
        if effort.deterministic:
            self.ledger.spend(seconds)
        return (0 if plan is None else self._accept(schedule, plan)[1]), seconds

    def _solve(self, effort: Effort, rng: np.random.Generator) -> tuple[int, float]:
        """Solve one window with CP-SAT; by how many ns the incumbent is shorter, and the work."""
        n = self.schedule.early.size
        size = min(n, int(self.size))
        at = int(rng.integers(size, n + 1))
        total = 0.0
        while True:
            schedule = self.schedule
            window = Window.of(schedule, *_window(schedule, at, size), self.ledger.bound_ns // self.scaled.grain)
            self._cover(size / n)
            if window is None:
                return 0, total
            choice = self._choice(rng)
            part = Effort(min(self.seconds, effort.left), 1, self.tries, effort.deterministic, effort.stop)
            answer = run(window.model.cp, part, **_SEARCHES[choice])
            self.ledger.spend(answer.work)
            total += answer.work
            gained = answer.found and answer.value(window.model.makespan) < schedule.makespan
            with self._lock:
                self.ended[choice] += gained or answer.status == "OPTIMAL"
                self.spent[choice] += answer.work if effort.deterministic else time.monotonic() - part.began
                if not gained:
                    self.size *= _GROW if answer.status == "OPTIMAL" else _SHRINK
                    self.size = min(max(self.size, _SMALLEST), _LARGEST)
            if not gained:
                return 0, total
            fresh, gain = self._accept(schedule, window.plan(answer))
            if fresh or self._over(effort):
                return gain, total

    def _cover(self, share: float) -> None:
        with self._lock:
            self.covered += share

    def _choice(self, rng: np.random.Generator) -> int:
        """The search that ended most windows a second so far, or any."""
        if rng.random() < _EXPLORED:
            return int(rng.integers(len(_SEARCHES)))
        return max(range(len(_SEARCHES)), key=lambda k: self.ended[k] / self.spent[k])

    def _over(self, effort: Effort) -> bool:
        left = self.ledger.left if effort.deterministic else effort.left
        done = self.schedule.makespan * self.scaled.grain <= self.ledger.bound_ns
        return effort.stop.is_set() or left <= 0 or done or self.covered > _STALE

    def _accept(self, schedule: Schedule, plan: Plan) -> tuple[bool, int]:
        """Take a plan that is shorter than the incumbent; whether it was, or was made from that one, and the gain."""
        problem = self.ledger.problem
        start = start_times(problem, plan, "planned")
        makespan = int((start + durations_and_demands(problem, plan)[0]).max())
        with self._lock:
            fresh = schedule is self.schedule
            gain = self.schedule.makespan * self.scaled.grain - makespan
            if gain > 0:
                self.schedule = Schedule.of(self.scaled, schedule.streams, plan, start)
                self.ledger.report(makespan)
                self.shorter += 1
                self.covered = 0.0
            return fresh or gain > 0, max(gain, 0)


def _window(schedule: Schedule, at: int, size: int) -> tuple[BoolArray, BoolArray]:
    """Of the first `at` ops by finish the `size` that start last; and all others behind them, as the block."""
    n = schedule.early.size
    shifted = np.zeros(n, np.bool_)
    shifted[schedule.by_finish[at:]] = True
    rest = schedule.by_finish[:at]
    free = np.zeros(n, np.bool_)
    free[rest[np.lexsort((rest, schedule.early[rest]))][-size:]] = True
    return free, shifted
