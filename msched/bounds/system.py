"""Everything that restricts the starts of ops, in the arrays that propagation works on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from msched.arrays import Int64Array
from msched.bounds.cliques import exclusive_sets
from msched.bounds.paths import least_lags, shortest_durations
from msched.bounds.resources import Resource, resources
from msched.problem import Problem

if TYPE_CHECKING:
    from msched.bounds.propagation_kernel import System


def system_of(problem: Problem) -> System:
    """Dependencies with their least lags, engines, streams, and ops that exclude each other."""
    from msched.bounds.propagation_kernel import System

    lag, duration = least_lags(problem), np.ascontiguousarray(shortest_durations(problem))
    groups = list(_groups(problem))
    member = [group.op for group, _ in groups]
    return System(
        duration=duration,
        order=problem.topological_order,
        backward=problem.topological_order[::-1].copy(),
        after_start=problem.successor_start,
        after=problem.successor,
        after_lag=lag[problem.successor_edge],
        before_start=problem.predecessor_start,
        before=problem.predecessor,
        before_lag=lag[problem.predecessor_edge],
        group_start=np.cumsum([0, *(ops.size for ops in member)]).astype(np.int64),
        member=_joined(member),
        held=_joined([group.duration for group, _ in groups]),
        demand=_joined([group.demand for group, _ in groups]),
        capacity=np.array([group.capacity for group, _ in groups], np.int64),
        gap=np.array([group.gap for group, _ in groups], np.int64),
        alone=np.array([alone for _, alone in groups], np.int64),
    )


def _groups(problem: Problem) -> Iterator[tuple[Resource, bool]]:
    """Ops that share something, and whether they run one at a time; no group of the latter kind holds another."""
    known: list[set[int]] = []
    for resource in resources(problem):
        large = resource.demand > resource.capacity // 2
        if not large.all():
            yield resource, False
        if large.sum() > 1:
            known.append(set(resource.op[large].tolist()))
            yield (
                Resource(
                    resource.kind, resource.op[large], resource.duration[large], resource.demand[large],
                    resource.capacity, resource.gap,
                ),
                True,
            )  # fmt: skip
    duration = shortest_durations(problem)
    for ops in exclusive_sets(problem):
        if not any(other.issuperset(ops.tolist()) for other in known):
            yield Resource("clique", ops, duration[ops], np.ones(ops.size, np.int64), 1), True


def _joined(parts: list[Int64Array]) -> Int64Array:
    return np.concatenate([np.zeros(0, np.int64), *parts])
