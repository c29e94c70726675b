"""A chain of ops and the others on an engine that it visits: they run between its ops there, and hold it up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from msched.arrays import Int64Array
from msched.bounds.paths import heads_and_tails, least_lags, shortest_durations
from msched.bounds.resources import resources
from msched.problem import Problem

_STATES = 600  # numbers of ops of each duration that have run, in all combinations


def inserted_ops(problem: Problem, heads: Int64Array, tails: Int64Array) -> int:
    """The best, over engines, of the times that a longest path needs with the other ops of the engine, in ns.

    Ops of an engine of which no two run at once lie, each as a whole, between two neighbours of the longest path on
    that engine, before the first, or behind the last: the one-machine problem with delayed precedences (Balas, Lenstra
    and Vazacopoulos 1995) of which one chain is kept. Dynamic programming over the ops of the path and the number of
    others that have run, by duration, gives the earliest start of each, where an op may run after its last ancestor on
    the path and has to before its first descendant. Durations are rounded down to a few where there are many. So a
    gradient's all-reduce that fits no pause between the collectives of a layer adds to every step.

    heads, tails: bounds on starts and on what comes after each op, in ns, shapes (n,). O(n + chain x states^2).
    """
    duration, lag = shortest_durations(problem), least_lags(problem)
    chain = _longest_path(problem, duration, lag)
    best = 0
    for resource in resources(problem):
        large = resource.op[2 * resource.demand > resource.capacity]
        if resource.kind == "engine" and large.size > 2:
            on_engine = np.zeros(problem.n, np.bool_)
            on_engine[large] = True
            stops = chain[on_engine[chain]]
            others = large[~np.isin(large, stops)]
            if stops.size and others.size:
                best = max(best, _least_makespan(problem, heads, tails, duration, lag, stops, others))
    return best


def _longest_path(problem: Problem, duration: Int64Array, lag: Int64Array) -> Int64Array:
    """Ops of a longest path of durations and lags, first to last."""
    heads, tails = heads_and_tails(problem)
    middle = int(np.argmax(heads + duration + tails))
    sides = (
        (heads, problem.predecessor_start, problem.predecessor, problem.predecessor_edge),
        (tails, problem.successor_start, problem.successor, problem.successor_edge),
    )
    walked = []
    for distance, start, other, edge in sides:
        path = [middle]
        while True:
            row = slice(start[path[-1]], start[path[-1] + 1])
            near = other[row]
            longest = distance[near] + duration[near] + lag[edge[row]] == distance[path[-1]]
            if not longest.any():
                break
            path.append(int(near[np.argmax(longest)]))
        walked.append(path)
    return np.array([*walked[0][:0:-1], *walked[1]], np.int64)


@dataclass(frozen=True)
class _Relation:
    """Of each op (n,): the number of the last stop of a path before it, -1 for none, and the time from that stop's
    finish to the op's start at least, in ns."""

    stop: Int64Array
    away: Int64Array


def _least_makespan(
    problem: Problem,
    heads: Int64Array,
    tails: Int64Array,
    duration: Int64Array,
    lag: Int64Array,
    stops: Int64Array,
    others: Int64Array,
) -> int:
    from msched.bounds.insertions_kernel import earliest_end, last_stops

    count = stops.size
    number = np.full(problem.n, -1, np.int64)
    number[stops] = np.arange(count)
    before = _Relation(*last_stops(
        problem.topological_order, number, duration, problem.successor_start, problem.successor,
        lag[problem.successor_edge],
    ))  # fmt: skip
    number[stops] = np.arange(count)[::-1]
    after = _Relation(*last_stops(
        problem.topological_order[::-1].copy(), number, duration, problem.predecessor_start, problem.predecessor,
        lag[problem.predecessor_edge],
    ))  # fmt: skip
    length, kind = _rounded(duration[others])
    kept = kind >= 0
    others, kind = others[kept], kind[kept]
    if not others.size:
        return 0
    kinds = length.size
    released, due = np.zeros((count + 1, kinds), np.int64), np.zeros((count + 1, kinds), np.int64)
    delay = np.full((count + 1, kinds), np.iinfo(np.int64).max)
    tail = np.full(kinds, np.iinfo(np.int64).max)
    np.add.at(released, (before.stop[others] + 1, kind), 1)
    last = after.stop[others] >= 0
    np.add.at(due, (count - after.stop[others][last] - 1, kind[last]), 1)
    away = np.where(before.stop[others] >= 0, before.away[others], heads[others])
    np.minimum.at(delay, (before.stop[others] + 1, kind), away)
    np.minimum.at(tail, kind, tails[others])
    gaps = np.zeros(count, np.int64)  # from the finish of the stop before to the start of each
    gaps[1:] = before.away[stops[1:]]
    return int(
        earliest_end(
            heads[stops], duration[stops], tails[stops], gaps, length, np.cumsum(released, axis=0),
            np.cumsum(due, axis=0), delay, tail,
        )
    )  # fmt: skip


def _rounded(duration: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Few durations, rising, and which of them each op has at least, -1 for none of them.

    Neighbours are merged, the one that loses least first, until there are at most `_STATES` combinations of numbers.
    """
    length, kind, size = np.unique(duration, return_inverse=True, return_counts=True)
    lengths, sizes = [0, *length.tolist()], [0, *size.tolist()]
    place = kind + 1
    while len(lengths) > 1 and np.prod(np.array(sizes[1:], np.float64) + 1) > _STATES:
        loss = [(lengths[k] - lengths[k - 1]) * sizes[k] for k in range(1, len(lengths))]
        k = 1 + int(np.argmin(loss))
        sizes[k - 1] += sizes[k]
        del lengths[k], sizes[k]
        place = np.where(place >= k, place - 1, place)
    return np.array(lengths[1:], np.int64), place - 1
