"""Every plan of a tiny problem, by plain enumeration: for at most three ops, since their number explodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, permutations, product

import numpy as np

from msched.plan import Plan
from msched.problem import Problem


def every_plan(problem: Problem) -> list[Plan]:
    """Streams, orders and modes that keep the limits on streams and labels; without fences."""
    ops = range(problem.n)
    orders = [o for o in permutations(ops) if all(o.index(u) < o.index(v) for u, v in problem.edges.tolist())]
    streams = [s for s in product(ops, repeat=problem.n) if _keeps_limits(problem, s)]
    modes = list(product(*(range(1 + problem.mode_op.tolist().count(v)) for v in ops)))
    return [
        Plan(stream=np.array(s), order=np.array(o), mode=np.array(m)) for s, o, m in product(streams, orders, modes)
    ]


def every_fenced_plan(problem: Problem) -> Iterator[Plan]:
    """Each of them with each set of fences that follows its order."""
    for plan in every_plan(problem):
        later = list(combinations(plan.order.tolist(), 2))
        for count in range(len(later) + 1):
            for fences in combinations(later, count):
                yield replace(plan, fences=np.array(fences, np.int64).reshape(-1, 2))


def _keeps_limits(problem: Problem, stream: tuple[int, ...]) -> bool:
    used = set(stream)
    if used != set(range(len(used))) or (problem.streams is not None and len(used) > problem.streams):
        return False
    for u, v in product(range(problem.n), repeat=2):
        if problem.label[u] == problem.label[v] >= 0 and stream[u] != stream[v]:
            return False
        if problem.binding == "engine" and stream[u] == stream[v] and problem.engine[u] != problem.engine[v]:
            return False
    of_engine = [len({s for s, e in zip(stream, problem.engine, strict=True) if e == k}) for k in problem.engine]
    limit = [problem.engine_streams[k] for k in problem.engine]
    return problem.binding == "free" or all(most < 0 or k <= most for k, most in zip(of_engine, limit, strict=True))
