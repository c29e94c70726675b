"""What every heuristic owes, on drawn problems, as users get it: built from its configuration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

import msched
from msched import config
from msched.problem import Problem
from msched.solvers.base import Budget, Solver, UnassignableError
from tests.strategies import problems

NAMES = ["single", "engine", "round_robin", "ge", "blevel", "heft"]


def _built(name: str, **parameters: Any) -> Solver:
    solver: Solver = config.build({**config.load("solver", name), **parameters})
    return solver


BUILT = {name: _built(name) for name in NAMES}


def _kept(problem: Problem, stream: list[int]) -> bool:
    """Whether an assignment meets the limits on streams, the binding and the labels."""
    engines: dict[int, set[int]] = {}
    homes: dict[int, set[int]] = {}
    for v, s in enumerate(stream):
        engines.setdefault(s, set()).add(int(problem.engine[v]))
        homes.setdefault(int(problem.label[v]), set()).add(s)
    together = all(len(home) == 1 for label, home in homes.items() if label >= 0)
    if not together or len(engines) > (problem.streams or len(stream)):
        return False
    if problem.binding == "free":
        return True
    own = [sum(e in served for served in engines.values()) for e in range(problem.capacity.size)]
    enough = all(limit < 0 or k <= limit for k, limit in zip(own, problem.engine_streams.tolist(), strict=True))
    return enough and all(len(served) == 1 for served in engines.values())


@pytest.mark.parametrize("name", NAMES)
@given(problem=problems(labels=True, tensors=False))
def test_plans_are_linear_extensions_within_the_limits(name: str, problem: Problem) -> None:
    try:
        plan = BUILT[name].solve(problem, Budget())
    except UnassignableError:
        return  # the next test says when that is right
    stream, order = plan.stream.tolist(), plan.order.tolist()
    assert sorted(order) == list(range(problem.n))
    assert all(order.index(u) < order.index(v) for u, v in problem.edges.tolist())
    assert sorted(set(stream)) == list(range(max(stream) + 1))
    assert _kept(problem, stream)
    again = BUILT[name].solve(problem, Budget(seed=1))
    assert (again.stream.tolist(), again.order.tolist()) == (stream, order)
    assert (again.predicted_start_ns is None) == (name not in ("blevel", "heft"))


@pytest.mark.parametrize("name", ["round_robin", "blevel", "heft"])
@given(problem=problems(labels=True, tensors=False))
def test_those_that_share_out_streams_refuse_only_what_nothing_can_bind(name: str, problem: Problem) -> None:
    # The drawn problems allow a stream for each engine, so only a label across engines stands in the way.
    bound = problem.binding == "engine" and np.unique(problem.engine[problem.label >= 0]).size > 1
    if bound:
        with pytest.raises(UnassignableError, match="joins ops of"):
            BUILT[name].solve(problem, Budget())
    else:
        assert BUILT[name].solve(problem, Budget()).stream.size == problem.n


@given(problem=problems(tensors=False))
def test_single_and_engine_refuse_only_what_they_cannot_keep(problem: Problem) -> None:
    used = np.unique(problem.engine).size
    for name, needed in (("single", 1), ("engine", used)):
        kept = needed <= (problem.streams or needed) and (problem.binding == "free" or needed == used)
        if kept:
            assert BUILT[name].solve(problem, Budget()).streams == needed
        else:
            with pytest.raises(UnassignableError):
                BUILT[name].solve(problem, Budget())


def test_ge_of_the_configuration_knows_the_engines_of_both_makers() -> None:
    # A collective between two kernels: it has a stream of its own whatever it is called, and host work rides.
    for compute, collective in (("ai_core", "hccl"), ("sm", "nccl")):
        problem = Problem.from_arrays(
            duration=[1] * 4,
            edges=[(0, 1), (0, 2), (2, 3)],
            engine=[0, 1, 0, 2],
            demand=np.eye(3, dtype=np.int64)[[0, 1, 0, 2]],
            capacity=[1, 1, 1],
            engine_names=[compute, collective, "ai_cpu"],
        )
        assert BUILT["ge"].solve(problem, Budget()).stream.tolist() == [1, 0, 1, 1]


def test_memory_that_no_plan_can_do_with_names_a_limit_that_works() -> None:
    # a chain whose second op holds 10 + 20 bytes
    chain = {"duration": [5, 5, 5], "edges": [(0, 1), (1, 2)], "tensors": [(0, 10, [1]), (1, 20, [2])]}
    plan = msched.solve(Problem.from_arrays(**chain, memory_bytes=15), "heft")
    assert plan.status == "infeasible"
    assert plan.reason.endswith("one op at a time needs 30 bytes, the smallest limit known to work")
    assert msched.solve(Problem.from_arrays(**chain, memory_bytes=30), "memory_list").status == "optimal"
