"""Hypothesis strategies: problems with every cost and limit of the model, and plans of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from hypothesis import strategies as st

from msched.plan import Plan
from msched.problem import Problem

Value = TypeVar("Value")

# Few distinct figures, so that ties, and finishes that meet arrivals, are common.
_DURATIONS = st.sampled_from([0, 1, 2, 3, 5, 8])
_COSTS = st.sampled_from([0, 0, 1, 2])


@st.composite
def problems(
    draw: st.DrawFn,
    *,
    most_ops: int = 8,
    least_ops: int = 1,
    most_engines: int = 3,
    costs: bool = True,
    host: bool = True,
    delays: bool = True,
    modes: bool = True,
    tensors: bool = True,
    limits: bool = True,
    labels: bool = False,
) -> Problem:
    """A problem that some plan keeps: no limit but on streams, with one at least for each engine."""
    n = draw(st.integers(least_ops, most_ops))
    engines = draw(st.integers(0, most_engines))
    capacity = draw(st.lists(st.integers(1, 4), min_size=engines, max_size=engines)) if engines else None
    units = st.tuples(*(st.integers(0, c) for c in capacity or []))
    pairs = [(u, v) for u in range(n) for v in range(u + 1, n)]
    names = draw(st.permutations(range(n)))  # so that an op's index does not tell its place in the order
    edges = [(names[u], names[v]) for u, v in (draw(_some(pairs)))]
    binding = draw(st.sampled_from(["free", "engine"])) if limits else "free"
    used = max(1, engines)
    streams = draw(st.none() | st.integers(1 if binding == "free" else used, max(n, used))) if limits else None
    of_engine = draw(st.none() | st.lists(st.none() | st.integers(1, 3), min_size=used, max_size=used))
    engine = draw(st.lists(st.integers(0, used - 1), min_size=n, max_size=n))
    marked = draw(_some(list(range(n)))) if labels else []
    if binding == "engine":  # a stream serves one engine, and so does a label
        marked = [v for v in marked if engine[v] == engine[marked[0]]]
    consumers = {u: [v for w, v in edges if w == u] for u in range(n)}
    rows = []
    for producer in draw(st.lists(st.none() | st.integers(0, n - 1), max_size=4)) if tensors else []:
        uses = consumers[producer] if producer is not None else list(range(n))
        rows.append((producer, draw(st.integers(0, 9)), draw(_some(uses))))
    return Problem.from_arrays(
        duration=draw(st.lists(_DURATIONS, min_size=n, max_size=n)),
        edges=edges,
        demand=draw(st.lists(units, min_size=n, max_size=n)) if capacity else None,
        capacity=capacity,
        engine=engine,
        communication=draw(st.lists(st.booleans(), min_size=used, max_size=used)),
        delay=[draw(_COSTS) for _ in edges] if delays else None,
        gap_ns=draw(_COSTS) if costs else 0,
        record_ns=draw(_COSTS) if costs else 0,
        wait_ns=draw(_COSTS) if costs else 0,
        host_issue_ns=draw(_COSTS) if host else 0,
        modes=[(v, draw(_DURATIONS), draw(units)) for v in draw(st.lists(st.integers(0, n - 1), max_size=4))]
        if modes and capacity
        else [],
        tensors=rows,
        outputs=draw(_some(list(range(len(rows))))),
        workspace=draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)) if tensors else None,
        streams=streams,
        binding=binding,
        engine_streams=of_engine if limits else None,
        label=[0 if v in marked else -1 for v in range(n)],
    )


@st.composite
def plans(draw: st.DrawFn, problem: Problem, *, fences: bool = True, most_streams: int | None = None) -> Plan:
    """A plan that keeps the problem's limits on streams and labels."""
    n, engines = problem.n, problem.capacity.size
    priority = draw(st.permutations(range(n)))
    order: list[int] = []
    while len(order) < n:
        waiting = {int(v) for u, v in problem.edges.tolist() if u not in order}
        order.append(next(v for v in priority if v not in order and v not in waiting))
    limit = min(n, most_streams or n, problem.streams or n)
    if problem.binding == "free":
        choice = draw(st.lists(st.integers(0, limit - 1), min_size=n, max_size=n))
    else:
        most = [n if k < 0 else int(k) for k in problem.engine_streams]
        spare = max(limit, engines) - engines
        for e in range(engines):
            most[e] = draw(st.integers(1, min(most[e], 1 + spare)))
            spare -= most[e] - 1
        choice = [sum(most[: problem.engine[v]]) + draw(st.integers(0, most[problem.engine[v]] - 1)) for v in range(n)]
    for group in set(problem.label.tolist()) - {-1}:
        alike = [v for v in range(n) if problem.label[v] == group]
        for v in alike:
            choice[v] = choice[alike[0]]
    used = sorted(set(choice))
    later = [(order[i], order[j]) for i in range(n) for j in range(i + 1, n)]
    modes = [draw(st.integers(0, problem.mode_op.tolist().count(v))) for v in range(n)]
    return Plan(
        stream=np.array([used.index(s) for s in choice]),
        order=np.array(order),
        fences=draw(_some(later, most=3)) if fences else [],
        mode=np.array(modes) if any(modes) or draw(st.booleans()) else None,
    )


@st.composite
def limited_problems(draw: st.DrawFn, **options: Any) -> Problem:
    """A problem, with the options of `problems`, under limits of every kind; perhaps no plan keeps them."""
    problem = draw(problems(labels=True, **options))
    groups = st.lists(st.sampled_from([-1, 0, 0, 1]), min_size=problem.n, max_size=problem.n)
    return replace(
        problem,
        memory_bytes=draw(st.none() | st.integers(0, 25)),
        events=draw(st.none() | st.integers(0, 3)),
        tasks_per_stream=draw(st.none() | st.integers(1, 8)),
        communicator=np.array(draw(groups)),
    )


@st.composite
def problems_with_plans(draw: st.DrawFn, **options: Any) -> tuple[Problem, Plan]:
    """A problem, with the options of `problems`, and a plan of it."""
    problem = draw(problems(**options))
    return problem, draw(plans(problem))


def _some(values: list[Value], most: int | None = None) -> st.SearchStrategy[list[Value]]:
    return st.lists(st.sampled_from(values), unique=True, max_size=most) if values else st.just([])
