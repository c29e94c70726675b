"""Destructive bounds: a makespan is fixed and refuted by propagation, and the largest refuted one is sought."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from msched.bounds.ancestors import best_heads_and_tails
from msched.bounds.paths import shortest_durations
from msched.bounds.system import system_of
from msched.problem import Problem

_GRAIN = 2**17  # the bound is sought to this part of itself
_FIRST = 2**10  # and at first raised by this part


def destructive(
    problem: Problem,
    upper_ns: int | Callable[[], int],
    *,
    deadline: float | None = None,
    known_ns: int = 0,
    probes: int = 64,
    rounds: int = 40,
    windows: int = 2_000_000,
    shaving: int = 4,
    stop: Callable[[], bool] | None = None,
    on_bound: Callable[[int], None] | None = None,
) -> int:
    """The largest makespan that is refuted, plus one: a bound for every plan, or `upper_ns` where all below are.

    A makespan is fixed, so that each op has a window from its head to the latest finish that its tail allows, and
    windows are narrowed by precedence, time-tables, energetic reasoning, and edge finding on sets of ops that exclude
    each other, until one is too small. Makespans are halved between `known_ns`, a bound, and `upper_ns`, which some
    plan reaches (Klein and Scholl 1999, Computing lower bounds by destructive improvement, section 3). Where the plain
    propagation finds nothing more, windows are shaved (Martin and Shmoys 1996).

    upper_ns: a function is asked before each step. on_bound: called with each better bound.
    deadline: of `time.monotonic`, None for none; stop: asked between steps. Without these two the result depends on the
    problem alone. probes: makespans that are tried at most. rounds: passes of propagation over all resources at most.
    windows: operations of energetic reasoning on one resource in such a pass. shaving: passes of it over all ops, 0 for
    none. The bound is sought to a part in 2^17.
    """
    search = _Search(problem, rounds, windows, deadline, stop, on_bound)
    upper = upper_ns if callable(upper_ns) else lambda: upper_ns
    low = max(known_ns, search.least)
    for passes in (0, shaving) if shaving else (0,):
        low = search.between(low, upper, probes, passes)
    return low


class _Search:
    """Refutes makespans of one problem until time is up."""

    def __init__(
        self,
        problem: Problem,
        rounds: int,
        windows: int,
        deadline: float | None,
        stop: Callable[[], bool] | None,
        on_bound: Callable[[int], None] | None,
    ) -> None:
        self.rounds, self.windows, self.deadline, self.stop = rounds, windows, deadline, stop
        self.on_bound = on_bound
        self.head, self.tail = best_heads_and_tails(problem)
        self.duration = shortest_durations(problem)
        self.least = int((self.head + self.duration + self.tail).max(initial=0))
        self.system = system_of(problem)

    def between(self, low: int, upper: Callable[[], int], probes: int, passes: int) -> int:
        """The least makespan from `low`, a bound, to `upper` that is not refuted by halving."""
        step = max(1, low // _FIRST)
        high = upper()
        galloping = True
        while (high := min(high, upper())) - low > low // _GRAIN and probes and not self._late():
            # A bound is more often close to what is known than half way to a poor plan.
            trial = min(low + step - 1, (low + high) // 2) if galloping else (low + high) // 2
            refuted = self._refuted(trial, passes)
            if refuted is None:
                break
            if refuted:
                low, step = trial + 1, 3 * step
                if self.on_bound is not None:
                    self.on_bound(low)
            else:
                high, galloping = trial, False
            probes -= 1
        return low

    def _late(self) -> bool:
        return (self.deadline is not None and time.monotonic() >= self.deadline) or bool(self.stop and self.stop())

    def _refuted(self, makespan: int, passes: int) -> bool | None:
        """Whether no plan reaches the makespan; None where time was up before that was known."""
        from msched.bounds.propagation_kernel import propagate, shave

        head, tail = self.head.copy(), self.tail.copy()
        if not propagate(self.system, head, tail, makespan, self.rounds, self.windows):
            return True
        for _ in range(passes):
            cut = False
            for op in np.argsort(makespan - head - tail - self.duration, kind="stable").tolist():
                if self._late():
                    return None
                found = shave(self.system, head, tail, makespan, self.rounds, 0, op)
                if found < 0:
                    return True
                cut = cut or found > 0
            if not cut:
                break
        return False
