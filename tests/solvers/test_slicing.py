"""The search over the number of slices."""

from __future__ import annotations

from typing import Any

import pytest

import msched
from msched.errors import OptionError
from msched.graph import Op, OpGraph, Rows, Tensor
from msched.problem import Problem
from msched.solvers.slicing import Candidate, best_of, candidates, solve_slices


def problem_of(*durations: int) -> Problem:
    """A chain."""
    return Problem.from_arrays(duration=durations, edges=[(v, v + 1) for v in range(len(durations) - 1)])


def test_the_shortest_plan_wins_and_what_cannot_beat_it_is_not_solved() -> None:
    cuts = [Candidate(1, problem_of(30)), Candidate(2, problem_of(9, 9)), Candidate(4, problem_of(5, 5, 5, 5))]
    found = best_of(cuts, "blevel", time_limit=1)
    assert found.slices == 2
    assert found.problem is cuts[1].problem
    # a chain's length is its bound: 30 and 20 cannot beat 18
    assert [(t.slices, t.makespan_ns, t.bound_ns, t.status) for t in found.tried] == [
        (1, None, 30, "pruned"),
        (2, 18, 18, "optimal"),
        (4, None, 20, "pruned"),
    ]


def test_every_number_is_reported_where_bounds_rule_none_out() -> None:
    # 3 ops of 4 units on an engine of 6: one after another, 30, though the load alone says less
    apart = {"demand": [[4]] * 3, "capacity": [6]}
    cuts = [
        Candidate(1, Problem.from_arrays(duration=[10] * 3, edges=[], **apart)),
        Candidate(2, Problem.from_arrays(duration=[9] * 3, edges=[], **apart)),
    ]
    found = best_of(cuts, "single", time_limit=1)
    assert found.slices == 2
    assert found.tried[1].makespan_ns == 27


def test_of_equal_plans_the_first_is_kept() -> None:
    # neither bound (the longer op) reaches the 8 ns of one stream
    cuts = [Candidate(k, Problem.from_arrays(duration=[4, 4], edges=[])) for k in (1, 2)]
    assert best_of(cuts, "single", time_limit=1).slices == 1


def test_a_number_that_cannot_be_cut_is_reported_with_its_reason() -> None:
    found = best_of([Candidate(1, problem_of(3)), Candidate(8, None, "too few rows")], "single", time_limit=1)
    assert [(t.slices, t.status, t.reason) for t in found.tried] == [
        (1, "optimal", ""),
        (8, "impossible", "too few rows"),
    ]


def test_a_limit_that_no_cut_meets_leaves_its_reason() -> None:
    tight = Problem.from_arrays(
        duration=[5], edges=[], demand=[[1]], capacity=[1], tensors=[(0, 10, [])], memory_bytes=4
    )
    found = best_of([Candidate(1, tight)], "single", time_limit=1)
    assert found.plan.status == "infeasible"
    assert "memory_bytes is 4" in found.tried[0].reason
    assert found.tried[0].makespan_ns is None


@pytest.fixture
def layer() -> OpGraph:
    """A product, its all-reduce, and a product: 4 tokens."""
    rows = Rows(1, 4)
    shared: dict[str, Any] = {"rows": rows, "bytes_read": 4, "bytes_written": 4}
    talk = {"participants": 2, "payload_bytes": 4, "communicator": "tp"}
    ops = (
        Op(name="a.product", kind="MatMul", flops=40, **shared),
        Op(name="a.reduce", kind="HcomAllReduce", **talk, **shared),
        Op(name="b.product", kind="MatMul", flops=40, **shared),
    )
    tensors = (
        Tensor(name="x", bytes=4, producer=0, consumers=(1,)),
        Tensor(name="y", bytes=4, producer=1, consumers=(2,)),
    )
    return OpGraph("layer", ops, tensors)


def lowered(graph: OpGraph) -> Problem:
    """Every flop takes a nanosecond on one engine, every byte of a collective ten on another."""
    time = [op.flops or 10 * op.payload_bytes for op in graph.ops]
    talks = [op.participants > 0 for op in graph.ops]
    edges = [(t.producer, c) for t in graph.tensors for c in t.consumers]
    demand = [[0, 1] if t else [1, 0] for t in talks]
    return Problem.from_arrays(duration=time, edges=edges, demand=demand, capacity=[1, 1])


def test_slices_hide_communication_as_a_pipeline_does(layer: OpGraph) -> None:
    # k slices of 40 ns each way, two products on one engine: 120 whole; 20 20 20 20 with 2; the engine alone takes 80
    found = solve_slices(layer, lowered, "cpsat", choices=(1, 2, 4, 8), time_limit=4)
    times = {t.slices: t.makespan_ns for t in found.tried if t.makespan_ns is not None}
    assert times.get(1, 120) == 120
    # two: products of slices 0 and 1 end at 40, the first is reduced by then, the second at 60
    assert (found.slices, msched.simulate(found.problem, found.plan).makespan_ns) == (2, 80)
    assert found.tried[3].status == "impossible"
    assert "4 tokens" in found.tried[3].reason


def test_auto_in_a_pattern_leaves_the_others_fixed(layer: OpGraph) -> None:
    cuts = candidates(layer, lowered, {"b.*": 1, "*": "auto"}, (1, 2))
    assert [c.slices for c in cuts] == [{"b.*": 1, "*": 1}, {"b.*": 1, "*": 2}]
    assert [c.problem.n for c in cuts if c.problem is not None] == [3, 5]


@pytest.mark.parametrize(
    ("slices", "choices", "message"),
    [
        (8, (1,), "no op has as many rows"),
        ("auto", (8, 16), "none of 2 numbers of slices fits"),
        ("auto", (), "slice_choices"),
        ("auto", (0, 2), "slice_choices"),
        ("auto", None, "slice_choices is None; whole numbers"),
        ("auto", 3, "slice_choices is 3; whole numbers"),
        ("auto", "12", "slice_choices is '12'; whole numbers"),
        ("auto", [[1]], r"slice_choices is \[\[1\]\]; whole numbers"),
        ({f"{letter}.*": "auto" for letter in "abcd"}, (1, 2, 4), "81 cuts"),
        ("two", (1, 2), "slices is 'two'"),
    ],
)
def test_what_cannot_be_searched_is_said(layer: OpGraph, slices: Any, choices: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        candidates(layer, lowered, slices, choices)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"along": "rows"}, "^along is 'rows'; it must be one of: auto, batch, sequence$"),
        ({"around": 3}, "^around is 3; it must be one of: collectives, any$"),
        ({"time_limit": -1}, "^time_limit is -1; a finite number of seconds"),
        ({"time_limit": "a"}, "^time_limit is 'a'; a finite number of seconds"),
        ({"workers": 0}, "^workers is 0"),
        ({"solver": 3}, r"^solver is 3; a name \(blevel, "),
        ({"lower": "atlas_800i_a2"}, "^lower is 'atlas_800i_a2'; a function from OpGraph to Problem is needed$"),
        ({"lower": lambda graph: None}, "^lower gives NoneType; it must return the Problem that it makes$"),
        ({"graph": None}, "^graph is None; an OpGraph is needed"),
    ],
)
def test_bad_arguments_are_named(layer: OpGraph, options: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"graph": layer, "lower": lowered, "solver": "blevel", **options}
    with pytest.raises(OptionError, match=message):
        solve_slices(**arguments)
