"""What a part of an exact search may spend, and a run of CP-SAT on a small model within it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from msched.solvers.exact.engine import Answer, Task, search

# CP-SAT's deterministic units that took about a second on the problems measured: with one worker, with several.
_WORK_ALONE, _WORK_INTERLEAVED = 0.2, 0.04


@dataclass(frozen=True)
class Effort:
    """Seconds, or the deterministic work that stands for them; workers, seed, and the event that ends it all."""

    seconds: float
    workers: int = 1
    seed: int = 0
    deterministic: bool = False
    stop: threading.Event = field(default_factory=threading.Event)
    began: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """Seconds that remain of wall time; all of them where work is what counts."""
        if self.stop.is_set():
            return 0.0
        return self.seconds if self.deterministic else max(self.seconds - (time.monotonic() - self.began), 0.0)

    @property
    def work_per_second(self) -> float:
        """Deterministic work of CP-SAT that stands for a second."""
        return _WORK_ALONE if self.workers == 1 else _WORK_INTERLEAVED

    def part(self, seconds: float) -> Effort:
        """So many seconds from now on, or what is left."""
        return replace(self, seconds=min(seconds, self.left), began=time.monotonic())


def run(
    model: Any,
    effort: Effort,
    *,
    on_solution: Callable[[int], None] | None = None,
    on_bound: Callable[[float], None] | None = None,
    **parameters: Any,
) -> Answer:
    """The answer of CP-SAT on a `CpModel` in a process of its own; it ends when `effort.stop` is set.

    on_solution, on_bound: called with each better objective and bound. parameters: of CP-SAT, by name, on top of those
    of the effort.
    """
    from ortools.sat.python import cp_model

    settings = cp_model.CpSolver().parameters
    if effort.deterministic:
        settings.max_deterministic_time = effort.seconds * effort.work_per_second
        settings.interleave_search = effort.workers > 1
    else:
        settings.max_time_in_seconds = max(effort.left, 0.01)
    settings.num_workers = effort.workers
    settings.random_seed = effort.seed
    for name, value in parameters.items():
        settings.merge_text_format(f"{name}: {str(value).lower() if isinstance(value, bool) else value}")
    limit = None if effort.deterministic else effort.left
    task = Task(str(model.proto), str(settings), limit, on_solution, on_bound, effort.stop)
    answer = search(task)
    return replace(answer, work=answer.work / effort.work_per_second)
