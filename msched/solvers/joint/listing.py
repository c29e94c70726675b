"""What list schedulers share: ops renumbered by decreasing rank, and the plan that a schedule makes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from msched.arrays import Int64Array, compressed_rows
from msched.plan import Plan
from msched.problem import Problem
from msched.solvers.stream_pool import StreamPool, within_limits


@dataclass(frozen=True)
class Listing:
    """A problem as a list scheduler reads it: op 0 is the one of highest rank, and equal ranks keep their place in
    the topological order, so that the numbers are one.

    op (n,): the problem's index of each. duration (n,), label (n,), communicator (n,). demand (n, E): nothing for an
    op of no duration, whose interval is empty. pool (n,) and first (P + 1,): see `StreamPool`.
    before_start, before, before_lag: predecessors as CSR, and the time that each costs between streams (ns).
    after_start, after: successors as CSR.
    """

    op: Int64Array
    duration: Int64Array
    label: Int64Array
    communicator: Int64Array
    demand: Int64Array
    pool: Int64Array
    first: Int64Array
    before_start: Int64Array
    before: Int64Array
    before_lag: Int64Array
    after_start: Int64Array
    after: Int64Array


def listing(problem: Problem, pool: StreamPool, lag_in_rank: bool) -> Listing:
    """Ops by decreasing upward rank: the longest path to an exit, in durations and, if asked, costs between streams."""
    from msched.solvers.joint.list_kernel import upward_ranks

    lag = problem.delay + (problem.record_ns + problem.wait_ns)
    rank = upward_ranks(
        problem.topological_order,
        problem.duration,
        problem.successor_start,
        problem.successor,
        lag[problem.successor_edge] if lag_in_rank else np.zeros_like(lag),
    )
    position = np.argsort(problem.topological_order)
    op = np.lexsort((position, -rank))
    number = np.argsort(op)
    edges = number[problem.edges]
    before_start, into = compressed_rows(edges[:, 1], problem.n)
    after_start, out = compressed_rows(edges[:, 0], problem.n)
    return Listing(
        op=op,
        duration=problem.duration[op],
        label=_dense(problem.label[op]),
        communicator=_dense(problem.communicator[op]),
        demand=problem.demand[op] * (problem.duration[op] > 0)[:, None],
        pool=pool.of_op[op],
        first=pool.first,
        before_start=before_start,
        before=np.ascontiguousarray(edges[into, 0]),
        before_lag=lag[into],
        after_start=after_start,
        after=np.ascontiguousarray(edges[out, 1]),
    )


def scheduled(problem: Problem, ops: Listing, start: Int64Array, stream: Int64Array, claim: bool = True) -> Plan:
    """The plan of a schedule, `start` and `stream` (n,) in the numbers of `ops`; with its times if `claim`.

    The issue order sorts the starts. Where they are equal, ops of no duration come first, since they end at their
    start, and then the topological order decides. Where the host issues op after op, each op and all after it are put
    off as long as the issue makes it late: what does not overlap is never made to.
    """
    begin = np.empty(problem.n, np.int64)
    begin[ops.op] = start
    place = np.empty(problem.n, np.int64)
    place[ops.op] = stream
    position = np.argsort(problem.topological_order)
    order = np.lexsort((position, problem.duration > 0, begin))
    late = np.arange(1, problem.n + 1) * problem.host_issue_ns - begin[order]
    begin[order] += np.maximum.accumulate(np.maximum(late, 0))
    return Plan(
        stream=within_limits(problem, place),
        order=order,
        predicted_start_ns=begin if claim else None,
        predicted_makespan_ns=int((begin + problem.duration).max(initial=0)) if claim else None,
    )


def _dense(group: Int64Array) -> Int64Array:
    """Groups numbered from 0, -1 for none."""
    return (np.unique(np.append(group, -1), return_inverse=True)[1][:-1] - 1).astype(np.int64)
