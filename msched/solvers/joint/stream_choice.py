"""On which streams a list scheduler does best: a few choices, each scheduled, simulated and compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from msched.arrays import Int64Array
from msched.plan import Plan
from msched.problem import Problem
from msched.simulator import simulate, start_times
from msched.solvers.base import Budget, Dispatch, UnassignableError
from msched.solvers.limits import broken
from msched.solvers.securing import keep_communicators_in_order, secure
from msched.solvers.splitting import split
from msched.solvers.stream_pool import StreamPool, stream_pool

MOST_OPS = 10_000  # above, one choice only: each costs a schedule and simulations
_NEVER = 2**62


def shortest(
    problem: Problem,
    budget: Budget,
    most_streams: int,
    narrower: bool,
    attempt: Callable[[Problem, StreamPool], Plan],
) -> Plan:
    """The plan of `attempt` on the streams that there may be or, if `narrower`, on the best of several choices of them.

    List scheduling on more streams can be longer, as an op takes a free stream whatever the events that this costs
    later (Graham 1969, SIAM J. Appl. Math. 17(2), on such anomalies without events). So half as many streams are tried,
    down to one or one an engine; and, where binding is free, one an engine, one for computing and one for
    communication, and one a label, since the first op of a label chooses before the rest is known. The plan that
    breaks no limit and, secured, simulates shortest under the budget's dispatch is taken, of equal ones the
    first. Above 10,000 ops there is one attempt.

    Raises UnassignableError where the first attempt does and no other has a plan.
    """
    pool = stream_pool(problem, most_streams)
    if not narrower or not 0 < problem.n <= MOST_OPS:
        return attempt(problem, pool)
    refused: UnassignableError | None = None
    best, shortest_ns = None, _NEVER
    for streams in (pool, *_narrower(problem, pool)):
        if best is not None and budget.stop.is_set():
            break
        try:
            plan = attempt(problem, streams)
        except UnassignableError as error:
            refused = refused or error
            continue
        makespan = _makespan(problem, plan, budget.dispatch, shortest_ns)
        if best is None or makespan < shortest_ns:
            best, shortest_ns = plan, makespan
    if best is None:
        assert refused is not None
        raise refused
    return best


def _makespan(problem: Problem, plan: Plan, dispatch: Dispatch, shorter_than: int) -> int:
    """Simulated ns of the plan as it will be returned, `_NEVER` where it breaks a limit or is no shorter.

    Securing is only tried where the plan may become shorter than `shorter_than` by it.
    """
    ordered = keep_communicators_in_order(problem, plan)
    planned, arrived = (
        int((start_times(problem, ordered, rule) + problem.duration).max(initial=0)) for rule in ("planned", dispatch)
    )
    if min(planned, arrived) >= shorter_than:
        return _NEVER
    bare = split(problem, ordered)
    timeline = simulate(problem, bare, dispatch)
    if broken(problem, bare, timeline):
        return _NEVER
    if planned >= min(timeline.makespan_ns, shorter_than):
        return timeline.makespan_ns
    fenced = split(problem, secure(problem, ordered, dispatch))
    secured = simulate(problem, fenced, dispatch)
    return timeline.makespan_ns if broken(problem, fenced, secured) else secured.makespan_ns


def _narrower(problem: Problem, pool: StreamPool) -> Iterator[StreamPool]:
    most = int(pool.first[-1])
    least = np.unique(problem.engine).size if problem.binding == "engine" else 1
    width = most // 2
    while width > least:
        yield stream_pool(problem, width)
        width //= 2
    if most > least:
        yield stream_pool(problem, least)
    if problem.binding == "engine":
        return
    for group in (problem.engine, problem.communication[problem.engine], problem.label):
        groups, of_op = np.unique(group, return_inverse=True)
        if 1 < groups.size <= most and _keeps_labels(problem, of_op):
            yield StreamPool(of_op.astype(np.int64), np.arange(groups.size + 1))


def _keeps_labels(problem: Problem, of_op: Int64Array) -> bool:
    """Whether no label has ops of two groups."""
    labelled = problem.label >= 0
    return (
        np.unique(problem.label[labelled]).size == np.unique(problem.label[labelled] * problem.n + of_op[labelled]).size
    )
