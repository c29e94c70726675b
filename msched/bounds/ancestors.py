"""Heads and tails by what the ancestors, or the descendants, of an op must carry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from msched.arrays import BoolArray, Int64Array
from msched.bounds.paths import least_lags, shortest_durations
from msched.bounds.resources import Load, loads
from msched.problem import Problem

if TYPE_CHECKING:
    from msched.bounds.ancestors_kernel import Graph

_PLACES = 2**61  # times times units stay below: no int64 overflow
_SEQUENCED = 400_000  # ancestors that are sequenced in all
_MOST = 256  # and for one op
_SMALL, _HOPS = 2_000, 8  # ops of small problems; the length of paths that end before their time


def best_heads_and_tails(problem: Problem) -> tuple[Int64Array, Int64Array]:
    """The largest heads and tails known, in ns: `loaded_heads_and_tails`, whatever the size. Shapes (n,)."""
    return loaded_heads_and_tails(problem)


def loaded_heads_and_tails(problem: Problem) -> tuple[Int64Array, Int64Array]:
    """As `heads_and_tails`, with what the ancestors, or descendants, of an op must carry, in ns: shapes (n,).

    Of an op's ancestors those that cannot start before h all run, on each engine and on the streams, between h and the
    op's start; the best such h is taken: the energetic reasoning of cumulative scheduling (Baptiste, Le Pape and
    Nuijten 2001, Constraint-based scheduling, chapter 3) on the intervals that the precedence order gives. The last of
    the ancestors are also sequenced by Jackson's preemptive schedule, with their heads and with their longest paths to
    the op as tails (Carlier 1982, section 2; Brucker, Jurisch and Sievers 1994 call them heads and tails by immediate
    predecessors). Tails are heads of the reversed network.
    """
    from msched.bounds.ancestors_kernel import loaded_heads

    graph = _graph(problem)
    reverse = graph._replace(
        after_start=graph.before_start,
        after=graph.before,
        after_lag=graph.before_lag,
        before_start=graph.after_start,
        before=graph.after,
        before_lag=graph.after_lag,
    )
    dead_ends, late_begins = _astray(problem)
    recent = min(_MOST, _SEQUENCED // max(1, problem.n))
    host = problem.host_issue_ns
    return loaded_heads(graph, dead_ends, host, host, recent), loaded_heads(reverse, late_begins, 0, 0, recent)


def _astray(problem: Problem) -> tuple[BoolArray, BoolArray]:
    """Ops of large problems whose descendants end, or whose ancestors begin, far from where the longest do: (n,)."""
    from msched.topology_kernel import levels

    order = problem.topological_order
    depth = levels(order, problem.successor_start, problem.successor)
    height = levels(order[::-1].copy(), problem.predecessor_start, problem.predecessor)
    aside = (depth + height < depth.max(initial=0) - _HOPS) & (problem.n > _SMALL)
    return aside & (height < _HOPS), aside & (depth < _HOPS)


def _graph(problem: Problem) -> Graph:
    from msched.bounds.ancestors_kernel import Graph

    lag = least_lags(problem)
    horizon = int(shortest_durations(problem).sum() + lag.sum()) + (problem.host_issue_ns + problem.gap_ns) * problem.n
    chosen = [load for load in loads(problem) if load.work.any() and load.units * max(1, horizon) < _PLACES]
    start, item, work = _items(chosen, problem.n)
    return Graph(
        np.ascontiguousarray(shortest_durations(problem)),
        problem.successor_start,
        problem.successor,
        lag[problem.successor_edge],
        problem.predecessor_start,
        problem.predecessor,
        lag[problem.predecessor_edge],
        start,
        item,
        work,
        np.array([load.units for load in chosen], np.int64),
        np.array([load.gap for load in chosen], np.int64),
    )


def _items(chosen: list[Load], n: int) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Work of each op as CSR over loads: row starts (n + 1,), loads and works."""
    work = np.stack([load.work for load in chosen], axis=1) if chosen else np.zeros((n, 0), np.int64)
    op, item = np.nonzero(work)
    start = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(op, minlength=n), out=start[1:])
    return start, item.astype(np.int64), work[op, item]
