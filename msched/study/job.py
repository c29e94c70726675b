"""One cell of a study: read, lower, solve, simulate, validate, bound; and the record of all that."""

from __future__ import annotations

import hashlib
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msched.errors import InternalError, MschedError
from msched.plan import Incumbent, Plan
from msched.problem import Problem
from msched.solvers.base import Dispatch, Solver
from msched.study import inputs, provenance
from msched.study.interruption import interruptible
from msched.study.records import FILE, Choice, Claim, Input, Names, Proof, Record, Score, Size, Tried, read, write
from msched.study.schema import cell_id, leaves

if TYPE_CHECKING:
    from msched.solvers.slicing import Candidate, Sliced

OVERRUN = "the solve took"  # how the warning of a long solve begins
_MOST_TIMES = 1.5  # a solve that takes this many times its limit is worth a warning


def run(
    config: dict[str, Any],
    names: Names,
    folder: Path,
    on_progress: Callable[[Incumbent], None] | None = None,
    on_tick: Callable[[], None] | None = None,
) -> tuple[Record, bool]:
    """The record of the cell that the resolved `config` describes, and whether it was computed now.

    A finished record in `folder` of the same cell, input, problem and version is given back, unless `config["force"]`.
    Otherwise a new one is written there, whatever happens: a failure leaves one that says why, and so does Ctrl-C,
    which raises KeyboardInterrupt once the record is safe.
    """
    record = Record(
        cell=cell_id(config), names=names, config=config, seed=config["seed"],
        versions=provenance.versions(), machine=provenance.machine(),
    )  # fmt: skip
    try:
        inputs.check_names(names)
        inputs.check(config)
        with _timed(record, "read"):
            graph = inputs.graph_of(config)
        record.input = Input(
            name=graph.name, hash=graph.content_hash(), ops=len(graph.ops),
            tensors=len(graph.tensors), dependencies=len(graph.edges),
        )  # fmt: skip
        with _timed(record, "lower"):
            cuts = inputs.candidates_of(config, graph)
        before = None if config["force"] else _finished(folder, record, cuts)
        if before is not None:
            return before, False
        _compute(record, cuts, on_progress, on_tick)
    except KeyboardInterrupt:
        record.state, record.error = "interrupted", record.error or "interrupted before there was a plan"
        write(record, folder)
        raise
    except Exception as error:
        record.state, record.error = "failed", str(error)
        if isinstance(error, InternalError) or not isinstance(error, MschedError):
            record.error = f"{type(error).__name__}: {error}"
            record.traceback = _frames(error)
    write(record, folder)
    return record, True


def size_of(problem: Problem) -> Size:
    """Name and number of what is solved."""
    return Size(
        hash=hashlib.sha256(problem.to_json()).hexdigest(),
        ops=problem.n,
        dependencies=len(problem.edges),
        engines=problem.engine_names,
        streams=problem.streams,
    )


def score_of(problem: Problem, plan: Plan, dispatch: Dispatch, fidelity: str) -> tuple[Score, list[str]]:
    """What the simulator says of `plan`, and what the validator has against it."""
    from msched.simulator import simulate
    from msched.validate import validate

    timeline = simulate(problem, plan, dispatch=dispatch, fidelity=fidelity)
    score = Score(
        makespan_ns=timeline.makespan_ns,
        peak_bytes=timeline.peak_bytes,
        streams=plan.streams,
        waits=len(timeline.waits),
        fences=len(plan.fences),
        utilisation=dict(zip(problem.engine_names, timeline.utilisation.tolist(), strict=True)),
        exposed_communication_ns=timeline.exposed_communication_ns,
    )
    return score, [f"{v.rule}: {v.reason}" for v in validate(problem, plan, timeline, dispatch=dispatch)]


def _compute(
    record: Record,
    cuts: list[Candidate],
    on_progress: Callable[[Incumbent], None] | None,
    on_tick: Callable[[], None] | None,
) -> None:
    from msched.bounds import Bound, bound
    from msched.solvers.slicing import best_of

    config, stop = record.config, threading.Event()
    solver, rule = inputs.solver_of(config), config["simulator"]
    with _timed(record, "compile"):
        _warm_up(config["solver"], solver, rule["dispatch"])
    with _timed(record, "bound"):
        for cut in cuts:
            if cut.problem is not None:
                bound(cut.problem)
    with _timed(record, "solve"):
        found: Sliced = interruptible(
            lambda: best_of(
                cuts, solver, time_limit=config["time_limit"], workers=config["workers"], seed=config["seed"],
                deterministic=config["deterministic"], dispatch=rule["dispatch"], on_progress=on_progress, stop=stop,
            ),
            stop,
            on_tick,
        )  # fmt: skip
    problem, plan = found.problem, found.plan
    best = bound(problem)
    record.problem, record.slices = size_of(problem), found.slices
    record.warnings = list(problem.warnings)
    if len(cuts) > 1:
        record.tried = [Tried(**vars(one)) for one in found.tried]
        each = {f"slices {one.slices}": one.bound_ns for one in found.tried if one.bound_ns is not None}
        best = Bound(min(each.values()), "every number of slices", each)
    record.status, record.reason, record.log = plan.status, plan.reason, list(plan.log)
    record.claim = Claim(
        status=plan.status, reason=plan.reason, makespan_ns=plan.predicted_makespan_ns, stages=plan.stages
    )
    record.bound = Proof(makespan_ns=best.makespan_ns, argument=best.argument, each=best.each)
    if len(cuts) == 1 and plan.bound_ns is not None and plan.bound_ns > best.makespan_ns:
        record.bound = Proof(makespan_ns=plan.bound_ns, argument=plan.bound_argument, each=best.each)
    if not config["deterministic"] and record.seconds["solve"] > _MOST_TIMES * config["time_limit"] + 1:
        record.warnings.append(f"{OVERRUN} {record.seconds['solve']:.1f} s; its limit was {config['time_limit']:g} s")
    if plan.order.size == problem.n:
        record.plan = Choice.of(plan)
        with _timed(record, "score"):
            record.score, record.violations = score_of(problem, plan, rule["dispatch"], rule["fidelity"])
        _judge(record, record.score, record.bound)
    record.state = "done"
    if stop.is_set():
        record.error = "interrupted: the plan is the best that was known by then"
        raise KeyboardInterrupt


_WARM: set[tuple[str, ...]] = set()


def _warm_up(config: Mapping[str, Any], solver: Solver, dispatch: Dispatch) -> None:
    """Have what a solver of msched and its parts call compiled, or loaded from the cache, before its time is taken."""
    key = (dispatch, *(str(value) for path, value in leaves(config) if path.split(".")[-1] == "_target_"))
    if inputs.foreign_targets(config) or key in _WARM:
        return
    from msched.solvers import solve

    fork = Problem.from_arrays(duration=[2, 2, 2], edges=[(0, 1), (0, 2)], demand=[[1]] * 3, capacity=[2], streams=2)
    solve(fork, solver, time_limit=0.1, dispatch=dispatch)
    _WARM.add(key)


def _judge(record: Record, score: Score, proof: Proof) -> None:
    """Status and gap of the score, which may differ from what the solver claims."""
    if record.violations or record.status == "invalid":
        record.status, record.reason = "invalid", record.reason or record.violations[0]
        return
    if score.makespan_ns < proof.makespan_ns:
        raise InternalError(
            f"the plan takes {score.makespan_ns} ns, less than the lower bound of {proof.makespan_ns} ns "
            f"({proof.argument})"
        )
    record.gap = gap(score.makespan_ns, proof.makespan_ns)
    record.status = "optimal" if score.makespan_ns == proof.makespan_ns else "feasible"


def gap(makespan_ns: int, bound_ns: int) -> float | None:
    """How far a makespan lies above a bound, as a share of the bound; None where the bound says nothing."""
    if bound_ns:
        return makespan_ns / bound_ns - 1
    return None if makespan_ns else 0.0


def _frames(error: Exception) -> str:
    """The traceback with the names of files only: their folders may name a user."""
    return "\n".join(
        f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}: {frame.line}"
        for frame in traceback.extract_tb(error.__traceback__)
    )


def _finished(folder: Path, record: Record, cuts: list[Candidate]) -> Record | None:
    if not (folder / FILE).is_file():
        return None
    try:
        before = read(folder / FILE)
    except MschedError:  # what cannot be read is computed again
        return None
    problems = [size_of(cut.problem) for cut in cuts if cut.problem is not None and cut.slices == before.slices]
    same = before.cell == record.cell and before.input == record.input and problems == [before.problem]
    same = same and before.state == "done" and before.versions.get("msched") == record.versions["msched"]
    return before if same else None


@contextmanager
def _timed(record: Record, step: str) -> Iterator[None]:
    begin = time.perf_counter()
    try:
        yield
    finally:
        record.seconds = {**record.seconds, step: time.perf_counter() - begin}
