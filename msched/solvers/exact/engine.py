"""CP-SAT in a process of its own: a crash, an overrun or a killed search costs its result, never the caller's.

OR-Tools 9.15 aborts the process on some models and may run far beyond its time limit (presolve, large cumulatives).
The child ends when the pipe to it closes, so that it never outlives the caller. Idle children are kept for the next
search.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from msched.arrays import Int64Array

_POLL_S = 0.05  # how soon a stop is passed on
_GRACE_S = 1.0  # beyond its limit, and such a share of it on top, a search is told to stop and then killed
_GRACE_SHARE = 0.05
_START = "import sys; sys.path[:] = {path!r}; from msched.solvers.exact.engine import serve; serve({pipe})"


@dataclass(frozen=True)
class Answer:
    """What a search found. status: CP-SAT's, or `CRASHED` or `OVERRUN` with what was known by then.

    solution: a value for each variable, empty where none was found. objective and bound: None where unknown.
    """

    status: str
    solution: Int64Array
    objective: int | None
    bound: float | None
    work: float = 0.0  # CP-SAT's deterministic time; in seconds that stand for it where an effort was spent
    message: str = ""

    @property
    def found(self) -> bool:
        """Whether there is a solution."""
        return self.solution.size > 0

    def value(self, variable: Any) -> int:
        """The value of a variable, of a literal, or of a number that stands for one."""
        if isinstance(variable, int | np.integer):
            return int(variable)
        index = variable.index
        return int(self.solution[index]) if index >= 0 else 1 - int(self.solution[-index - 1])


@dataclass
class Task:
    """A search: the model and the parameters in protocol buffer text, the seconds after which it must have ended."""

    model: str
    parameters: str
    limit_s: float | None
    on_solution: Callable[[int], None] | None = None
    on_bound: Callable[[float], None] | None = None
    stop: threading.Event = field(default_factory=threading.Event)


def search(task: Task) -> Answer:
    """Run a search in a child process; its progress is reported in this thread."""
    child = _IDLE.pop() if _IDLE else _Child()
    if not child.alive:
        child = _Child()
    try:
        answer = _follow(child, task)
    except BaseException:
        child.kill()
        raise
    if child.alive:
        _IDLE.append(child)
    return answer


def warm(count: int) -> None:
    """Have `count` children ready; each takes about half a second to start, beside what the caller does meanwhile."""
    while len(_IDLE) < count:
        _IDLE.append(_Child())


def _follow(child: _Child, task: Task) -> Answer:
    child.pipe.send((task.model, task.parameters, task.on_solution is not None, task.on_bound is not None))
    end = math.inf if task.limit_s is None else time.monotonic() + task.limit_s * (1 + _GRACE_SHARE)
    best = Answer("CRASHED", np.zeros(0, np.int64), None, None)
    while True:
        try:
            if task.stop.is_set():
                end = min(end, time.monotonic())
            if time.monotonic() >= end:
                child.pipe.send("stop")  # again and again: the first may come before the search has begun
            frame = child.pipe.recv() if child.pipe.poll(_POLL_S) else None
        except KeyboardInterrupt:  # as CP-SAT itself: the search ends, and what it has counts
            task.stop.set()
            continue
        except (EOFError, OSError):
            child.kill()
            return replace(best, status="CRASHED", message=f"CP-SAT's process ended with {child.process.poll()}")
        if frame is None:
            if time.monotonic() > end + _GRACE_S:
                child.kill()
                return replace(best, status="OVERRUN", message="CP-SAT ran on after its limit and was ended")
            continue
        kind, content = frame
        if kind == "answer":
            return Answer(*content)
        if kind == "solution":
            objective, bound, solution = content
            best = Answer("FEASIBLE", solution, objective, bound)
            if task.on_solution is not None:
                task.on_solution(objective)
        elif kind == "bound":
            best = replace(best, bound=content)
            if task.on_bound is not None:
                task.on_bound(content)


class _Child:
    """A process that searches, and the caller's end of the pipe to it."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.pipe, theirs = Pipe()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _START.format(path=sys.path, pipe=theirs.fileno())],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,  # Ctrl-C in a terminal reaches the caller alone, which passes it on
        )
        theirs.close()

    @property
    def alive(self) -> bool:
        """Whether it can take a task; a child of the process that this one was forked from cannot."""
        return self.owner == os.getpid() and self.process.poll() is None

    def kill(self) -> None:
        if self.owner == os.getpid():
            self.process.kill()
            self.process.wait()


_IDLE: list[_Child] = []


def serve(descriptor: int) -> None:
    """The child: answer the searches that come through the pipe until it closes."""
    import queue

    from ortools.sat.python import cp_model

    pipe = Connection(descriptor)
    lock = threading.Lock()
    tasks: queue.Queue[Any] = queue.Queue()
    running: list[cp_model.CpSolver] = []

    def listen() -> None:
        try:
            while True:
                message = pipe.recv()
                if message != "stop":
                    tasks.put(message)
                elif running:
                    running[0].stop_search()
        except (EOFError, OSError):
            os._exit(0)  # the caller has ended, or wants no more

    threading.Thread(target=listen, daemon=True).start()

    def tell(kind: str, content: Any) -> None:
        with lock:
            pipe.send((kind, content))

    while True:
        text, parameters, solutions, bounds = tasks.get()
        model = cp_model.CpModel()
        model.proto.parse_text_format(text)
        solver = cp_model.CpSolver()
        solver.parameters.parse_text_format(parameters)
        running[:] = [solver]
        if bounds:
            solver.best_bound_callback = lambda bound: tell("bound", bound)
        answer = _solved(solver, model, tell if solutions else None)
        running.clear()
        tell("answer", answer)


def _solved(solver: Any, model: Any, tell: Callable[[str, Any], None] | None) -> tuple[Any, ...]:
    """Fields of an Answer."""
    from ortools.sat.python import cp_model

    class Progress(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self) -> None:
            if tell is not None:
                solution = np.array(self.response_proto.solution, np.int64)
                tell("solution", (round(self.objective_value), self.best_objective_bound, solution))

    status = solver.status_name(solver.solve(model, Progress()))
    if status == "MODEL_INVALID":
        return status, np.zeros(0, np.int64), None, None, 0.0, model.validate()[:500]
    response = solver.response_proto
    solution = np.array(response.solution, np.int64)
    known = status in ("OPTIMAL", "FEASIBLE", "UNKNOWN")
    return (
        status,
        solution,
        round(response.objective_value) if solution.size else None,
        response.best_objective_bound if known else None,
        response.deterministic_time,
        "",
    )
