"""How long the model of a large problem takes to build, and how much memory, in a process of its own."""

from __future__ import annotations

import multiprocessing
import resource
import time
from multiprocessing.connection import Connection

from msched.problem import Problem


def report(problem: Problem) -> str:
    """Seconds from the problem with its bound to the CP-SAT model, and the most memory that the process took."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_build, args=(problem.to_json(), theirs))
    process.start()
    theirs.close()
    try:
        policy, seconds, bound_seconds, mebibytes = ours.recv()
    except EOFError:
        return "the process that builds the model ended early"
    finally:
        process.join()
    return (
        f"{problem.n} ops, streams by {policy}: model built in {seconds:.2f} s, after {bound_seconds:.2f} s for the "
        f"bound; at most {mebibytes:.0f} MiB"
    )


def _build(problem_json: bytes, answer: Connection) -> None:
    import ortools.sat.python.cp_model  # noqa: F401  # its import is not part of the building

    from msched.bounds import evaluate
    from msched.solvers.exact.model import Model
    from msched.solvers.exact.scaled import Scaled, Streams

    problem = Problem.from_json(problem_json)
    evaluate(Problem.from_arrays(duration=[1, 1], edges=[(0, 1)]))  # compiles
    began = time.perf_counter()
    scaled = Scaled.of(problem, 1_000)
    bounded = time.perf_counter()
    streams = Streams.of(problem)
    Model(scaled, streams, scaled.latest)
    seconds = time.perf_counter() - bounded
    answer.send((streams.policy, seconds, bounded - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
