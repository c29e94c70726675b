"""Modes of parallelism: the streams that each allows, and what it can gain."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msched
from msched.bounds import bound
from msched.errors import OptionError
from msched.graph import Matmul, Op, OpGraph
from msched.lowering import lower
from msched.lowering.parallelism import Parallelism, allow
from msched.problem import Problem
from tests.lowering.devices import toy

MODES: tuple[Parallelism, ...] = get_args(Parallelism)
NONE = [-1, -1, -1, -1]


def one_op_an_engine(**labels: str) -> OpGraph:
    """Ops on the cubes, vector cores, AI CPU and link of the toy device."""
    ops = (
        Op(name="product", kind="MatMul", matmul=Matmul(1, 128, 256, 100)),
        Op(name="add", kind="Add", bytes_read=100),
        Op(name="shape", kind="Shape", bytes_read=8),
        Op(name="reduce", kind="AllReduce", participants=2, payload_bytes=1000),
    )
    return OpGraph("four", tuple(msgspec.structs.replace(op, label=labels.get(op.name)) for op in ops))


@pytest.mark.parametrize(
    ("mode", "streams", "total", "binding", "each", "label"),
    [
        # the toy device has 8 streams, and one for its link
        ("single_stream", None, 1, "free", [-1, -1, -1, 1], NONE),
        ("single_stream", 3, 1, "free", [-1, -1, -1, 1], NONE),
        ("cc_parallel", None, 2, "free", [-1, -1, -1, 1], [0, 0, 0, 1]),
        ("cc_parallel", 3, 2, "free", [-1, -1, -1, 1], [0, 0, 0, 1]),
        ("engine_parallel", None, 4, "engine", [1, 1, 1, 1], NONE),
        ("engine_parallel", 3, 4, "engine", [1, 1, 1, 1], NONE),
        ("intra_engine", None, 8, "engine", [8, 8, 8, 1], NONE),
        ("intra_engine", 2, 7, "engine", [2, 2, 2, 1], NONE),
        ("intra_engine", 3, 8, "engine", [3, 3, 3, 1], NONE),
        ("full", None, 8, "free", [-1, -1, -1, 1], NONE),
        ("full", 3, 3, "free", [-1, -1, -1, 1], NONE),
    ],
)
def test_the_streams_of_a_mode(
    mode: Parallelism, streams: int | None, total: int, binding: str, each: list[int], label: list[int]
) -> None:
    problem = lower(one_op_an_engine(), toy(), streams=streams, parallelism=mode)
    assert (problem.streams, problem.binding) == (total, binding)
    assert (problem.engine_streams.tolist(), problem.label.tolist()) == (each, label)


def test_only_engines_in_use_count() -> None:
    graph = OpGraph("two", one_op_an_engine().ops[:2])
    assert lower(graph, toy(), parallelism="engine_parallel").streams == 2
    assert lower(graph, toy(), parallelism="intra_engine", streams=3).streams == 6


def test_engines_without_a_limit_on_a_device_without_one() -> None:
    problem = Problem.from_arrays(
        duration=[5, 5], edges=[], engine=[0, 1], demand=[[1, 0], [0, 1]], capacity=[1, 1], engine_streams=[None, 2]
    )
    intra = allow(problem, "intra_engine", None)
    assert (intra.streams, intra.engine_streams.tolist()) == (None, [-1, 2])
    assert allow(problem, "engine_parallel", None).streams == 2


@pytest.mark.parametrize("mode", ["cc_parallel", "engine_parallel"])
def test_no_mode_has_more_streams_than_the_device(mode: Parallelism) -> None:
    for streams in (1, 2, 3):
        problem = lower(one_op_an_engine(), toy(streams=streams), parallelism=mode)
        assert problem.streams == min(streams, {"cc_parallel": 2, "engine_parallel": 4}[mode])
    # a stream for all is a plan of cc_parallel, whereas engines with streams of their own need four
    lone = lower(one_op_an_engine(), toy(streams=1), parallelism=mode)
    assert msched.solve(lone, "blevel").status == {"cc_parallel": "optimal", "engine_parallel": "infeasible"}[mode]


def test_an_unknown_mode_is_refused_with_those_that_there_are() -> None:
    message = "parallelism is 'max'; it must be one of: single_stream, cc_parallel, engine_parallel, intra_engine, full"
    with pytest.raises(OptionError, match=message):
        lower(one_op_an_engine(), toy(), parallelism="max")  # type: ignore[arg-type]


def test_labels_that_tie_computing_to_communication_forbid_cc_parallel() -> None:
    tied = one_op_an_engine(product="L", reduce="L")
    with pytest.raises(OptionError, match="parallelism 'cc_parallel': ops 'product' and 'reduce' share a label"):
        lower(tied, toy(), parallelism="cc_parallel")
    # others hold of themselves on the one stream for all that computes
    problem = lower(one_op_an_engine(product="L", add="L"), toy(), parallelism="cc_parallel")
    assert problem.label.tolist() == [0, 0, 0, 1]
    assert lower(tied, toy(), parallelism="full").label.tolist() == [0, -1, -1, 0]


def two_slices(**changes: Any) -> Problem:
    """Two slices of: compute 10 ns, communicate 6 ns, compute 10 ns, on one core and one link."""
    fields: dict[str, Any] = {
        "duration": [10, 10, 6, 6, 10, 10],
        "edges": [(0, 2), (2, 4), (1, 3), (3, 5)],
        "engine": [0, 0, 1, 1, 0, 0],
        "demand": [[1, 0], [1, 0], [0, 1], [0, 1], [1, 0], [1, 0]],
        "capacity": [1, 1],
        "communication": [False, True],
    }
    return Problem.from_arrays(**(fields | changes))


def exact(problem: Problem, mode: Parallelism) -> int:
    """The makespan of an optimal plan."""
    allowed = allow(problem, mode, None)
    plan = msched.solve(allowed, "cpsat", time_limit=30, dispatch="planned")
    assert plan.status == "optimal"
    makespan = msched.simulate(allowed, plan, "planned").makespan_ns
    assert bound(allowed).makespan_ns <= makespan
    return makespan


def test_communication_that_hides_costs_nothing() -> None:
    # 0-10 and 10-20 compute, 10-16 and 20-26 communicate, 20-30 and 30-40 compute: all four computations, no gap
    problem = two_slices()
    assert exact(problem, "single_stream") == 52
    assert exact(problem, "cc_parallel") == 40
    assert bound(allow(problem, "cc_parallel", None)).makespan_ns == 40


def test_communication_that_does_not_hide_shows() -> None:
    # the second waits for the first at 10 + 20, and its computation for it: 10 + 20 + 20 + 10
    assert exact(two_slices(duration=[10, 10, 20, 20, 10, 10]), "cc_parallel") == 60


def test_each_kind_of_parallelism_by_hand() -> None:
    # 4 ops of 10 ns that share nothing: two that take half of the cores each, one on vector cores, one on the link
    fields: dict[str, Any] = {
        "duration": [10, 10, 10, 10],
        "edges": [],
        "engine": [0, 0, 1, 2],
        "demand": [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]],
        "capacity": [2, 1, 1],
        "communication": [False, False, True],
    }
    problem = Problem.from_arrays(**fields)
    assert [exact(problem, mode) for mode in MODES] == [40, 30, 20, 10, 10]


def test_full_with_fewer_streams_than_engines_may_be_slower_than_a_stream_for_each() -> None:
    fields: dict[str, Any] = {
        "duration": [10] * 3,
        "edges": [],
        "engine": [0, 1, 2],
        "demand": np.eye(3, dtype=int).tolist(),
    }
    problem = Problem.from_arrays(**fields, capacity=[1] * 3, streams=2)
    assert [exact(problem, mode) for mode in ("engine_parallel", "intra_engine", "full")] == [10, 10, 20]


@st.composite
def small(draw: st.DrawFn) -> Problem:
    """Up to 6 ops on two computing engines and a link, without costs, delays or limits."""
    n = draw(st.integers(2, 6))
    engine = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    pairs = [(u, v) for u in range(n) for v in range(u + 1, n)]
    capacity = [2, 2, 1]
    units = [draw(st.integers(1, capacity[e])) for e in engine]
    return Problem.from_arrays(
        duration=draw(st.lists(st.sampled_from([1, 2, 3, 5, 8]), min_size=n, max_size=n)),
        edges=[pair for pair in pairs if draw(st.integers(0, 2)) == 0],
        engine=engine,
        demand=[[u if e == f else 0 for f in range(3)] for u, e in zip(units, engine, strict=True)],
        capacity=capacity,
        communication=[False, False, True],
    )


@pytest.mark.slow
@settings(max_examples=60)
@given(small())
def test_no_mode_is_slower_than_the_one_before_it(problem: Problem) -> None:
    shortest = [exact(problem, mode) for mode in MODES]
    assert shortest == sorted(shortest, reverse=True)
    assert shortest[0] == int(problem.duration.sum())


@pytest.mark.parametrize("mode", MODES)
def test_streams_that_a_mode_fixes_may_be_longer_than_the_device_allows(mode: Parallelism) -> None:
    # 3,000 ops in a chain, 2,013 tasks a stream: `intra_engine` and `full` have streams left to go on on.
    ops = tuple(Op(name=f"op{i}", kind="Add", bytes_read=100) for i in range(3000))
    graph = OpGraph("chain", ops, control=tuple((i, i + 1) for i in range(2999)))
    problem = lower(graph, "atlas_800i_a2", parallelism=mode)
    warned = any("more than the 2013 tasks" in warning for warning in problem.warnings)
    fixed = mode in ("single_stream", "cc_parallel", "engine_parallel")
    assert (warned, problem.tasks_per_stream) == (fixed, None if fixed else 2013)
    plan = msched.solve(problem, "blevel")
    assert plan.status in ("optimal", "feasible")
    if fixed:
        assert msched.simulate(problem, plan).makespan_ns == int(problem.duration.sum()) + 2999 * problem.gap_ns
    short = lower(OpGraph("short", ops[:9]), "atlas_800i_a2", parallelism=mode)
    assert (short.tasks_per_stream, short.warnings) == (2013, ())
