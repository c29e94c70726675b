"""Which ops may run side by side, as a user of a graph engine switches it on.

The modes follow the multi-stream article of the Ascend community (2024-07-01), which tells three kinds of parallelism
apart: communication beside computing, different engines beside each other, and ops side by side on one engine that
none of them fills. Its yardstick is a single stream; `cc_parallel` is what torchair enables as `cc_parallel_enable`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from msched.errors import OptionError
from msched.problem import UNLIMITED, Problem

Parallelism = Literal["single_stream", "cc_parallel", "engine_parallel", "intra_engine", "full"]


def allow(problem: Problem, parallelism: Parallelism, device_streams: int | None) -> Problem:
    """`problem` with the streams that a mode allows, each mode all that the one before it does.

    single_stream: one stream for all.
    cc_parallel: one stream for all that computes, one for collectives.
    engine_parallel: a stream for each engine.
    intra_engine: `problem.streams` streams for each engine, or as many as the engine may have.
    full: the problem itself: any op on any of its streams, unless its binding says otherwise.

    But for `full`, the number of streams in all follows from the mode, and `problem.streams` sets it in `intra_engine`
    alone; `device_streams` is the most that there can be. A mode allows less than the next only in the streams that it
    has: without costs of events, no mode is slower than the one before it, `full` if it has as many streams in all.

    The streams of the first three modes are logical ones, as before the last step of GE, which goes on on another
    physical stream where one holds too many tasks. Their limit on tasks is lifted where a plan could break it, and a
    warning says what that leaves out.

    Raises OptionError for an unknown mode, and where labels tie computing to communication under `cc_parallel`.
    """
    if parallelism not in get_args(Parallelism):
        raise OptionError(f"parallelism is {parallelism!r}; it must be one of: {', '.join(get_args(Parallelism))}")
    if parallelism == "full":
        return problem
    if parallelism != "intra_engine":
        problem = _of_any_length(problem, parallelism)
    if parallelism == "single_stream":
        return replace(problem, streams=1, binding="free")
    if parallelism == "cc_parallel":
        return _computing_and_communicating(problem, 2 if device_streams is None else min(2, device_streams))
    most = problem.streams if parallelism == "intra_engine" else 1
    each = problem.engine_streams
    if most is not None:
        each = np.where(each == UNLIMITED, most, np.minimum(each, most))
    used = np.unique(problem.engine)
    total = device_streams if (each[used] == UNLIMITED).any() else int(each[used].sum())
    if device_streams is not None and total is not None:
        total = min(total, device_streams)
    return replace(problem, streams=total, binding="engine", engine_streams=each)


def _of_any_length(problem: Problem, parallelism: Parallelism) -> Problem:
    limit = problem.tasks_per_stream
    stream = {
        "single_stream": np.zeros(problem.n, np.int64),
        "cc_parallel": problem.communication[problem.engine].astype(np.int64),
    }.get(parallelism, problem.engine)
    waits = int(np.not_equal(*stream[problem.edges].T).sum())  # at most; a record and two tasks each
    if limit is None or int(np.bincount(stream).max(initial=0)) + 3 * waits <= limit:
        return problem
    warning = (
        f"parallelism {parallelism!r}: a stream may hold more than the {limit} tasks that the device takes; it would "
        "go on on another one, at one event each time, which is not counted"
    )
    return replace(problem, tasks_per_stream=None, warnings=(*problem.warnings, warning))


def _computing_and_communicating(problem: Problem, streams: int) -> Problem:
    talks = problem.communication[problem.engine]
    for label in np.unique(problem.label[problem.label != UNLIMITED]):
        tied = problem.label == label
        if talks[tied].any() and not talks[tied].all():
            computing, talking = (problem.op_names[int(np.flatnonzero(tied & t)[0])] for t in (~talks, talks))
            raise OptionError(
                f"parallelism 'cc_parallel': ops {computing!r} and {talking!r} share a label, so that computing and "
                "communication cannot have streams of their own; take another mode or remove the label"
            )
    return replace(problem, streams=streams, binding="free", label=talks.astype(np.int64))
