"""Problem: what it refuses, and that nothing is lost on the way through JSON and networkx."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import msched
from msched.bounds import bound
from msched.errors import ProblemError
from msched.problem import Problem
from msched.validate import validate
from tests.strategies import problems

# One problem with something in every field: three ops in a row on two engines.
FULL: dict[str, Any] = {
    "duration": [5, 7, 9],
    "edges": [(0, 1), (1, 2)],
    "demand": [[1, 0], [0, 3], [2, 1]],
    "capacity": [2, 4],
    "delay": [10, 20],
    "tensors": [(0, 100, [1]), (None, 50, [0, 2])],
    "modes": [(1, 8, [0, 2])],
    "op_names": ["a", "b", "c"],
    "engine_names": ["core", "vector"],
    "streams": 2,
}


@given(problems(labels=True))
def test_json_gives_back_an_equal_problem(problem: Problem) -> None:
    assert Problem.from_json(problem.to_json()) == problem


@given(problems(labels=True))
def test_networkx_gives_back_an_equal_problem(problem: Problem) -> None:
    assert Problem.from_networkx(problem.to_networkx()) == problem


@given(problems())
def test_neighbours_are_those_of_networkx(problem: Problem) -> None:
    drawing = problem.to_networkx()
    for v in range(problem.n):
        after = problem.successor[problem.successor_start[v] : problem.successor_start[v + 1]].tolist()
        before = problem.predecessor[problem.predecessor_start[v] : problem.predecessor_start[v + 1]].tolist()
        assert sorted(after) == sorted(drawing.successors(v))
        assert sorted(before) == sorted(drawing.predecessors(v))
        delays = problem.delay[problem.successor_edge[problem.successor_start[v] : problem.successor_start[v + 1]]]
        assert [drawing.edges[v, w]["delay"] for w in after] == delays.tolist()


@given(problems(), st.data())
def test_equality_sees_every_array(problem: Problem, data: st.DataObject) -> None:
    op = data.draw(st.integers(0, problem.n - 1))
    duration = problem.duration.copy()
    duration[op] += 1
    assert dataclasses.replace(problem, duration=duration) != problem


def test_only_durations_are_needed() -> None:
    problem = Problem.from_arrays(duration=[3, 4])
    assert problem.n == 2
    assert problem.capacity.tolist() == [0]  # one engine that limits nothing
    assert problem.demand.tolist() == [[0], [0]]
    assert problem.op_names == ("op0", "op1")


def test_an_empty_problem_survives_both_ways() -> None:
    empty = Problem.from_arrays(duration=[])
    assert Problem.from_json(empty.to_json()) == empty
    assert Problem.from_networkx(empty.to_networkx()) == empty


def test_a_dependency_given_twice_keeps_its_larger_delay() -> None:
    problem = Problem.from_arrays(duration=[1, 1, 1], edges=[(1, 2), (0, 1), (1, 2)], delay=[3, 4, 5])
    assert problem.edges.tolist() == [[1, 2], [0, 1]]
    assert problem.delay.tolist() == [5, 4]


def test_the_binding_engine_is_the_one_of_which_an_op_holds_the_largest_share() -> None:
    # Shares: 1/2 and 1/4, then 1/2 and 4/4.
    problem = Problem.from_arrays(duration=[1, 1], demand=[[1, 1], [1, 4]], capacity=[2, 4])
    assert problem.engine.tolist() == [0, 1]


def test_arrays_are_read_only_copies() -> None:
    given_ = np.array([1, 2])
    problem = Problem.from_arrays(duration=given_)
    given_[0] = 9
    assert problem.duration.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        problem.duration[0] = 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"duration": [1.5, 2, 3]}, "duration: whole numbers that fit in 64 bits are needed, not float64"),
        ({"duration": [5, -7, 9]}, "duration of op 'b' is negative"),
        ({"duration": [5, 2**63, 9]}, "duration: whole numbers that fit in 64 bits are needed"),
        ({"duration": [2**59, 2**59, 9]}, "add up to 2^60 or more"),
        ({"workspace": [0, 0, -1]}, "workspace of op 'c' is negative"),
        ({"workspace": [0, 0]}, "workspace has shape (2,) where (3,) is needed"),
        ({"workspace": [2**60, 0, 0]}, "add up to 2^60 or more"),
        ({"edges": [(0, 1, 2)]}, "edges: a list of pairs of indices is needed"),
        ({"edges": [(0, 1), (1, 3)]}, "edges: (1, 3) names an op that does not exist; ops are 0 to 2"),
        ({"edges": [(0, 1), (-1, 2)]}, "edges: (-1, 2) names an op that does not exist; ops are 0 to 2"),
        ({"edges": [(0, 1), (1, 0)], "tensors": []}, "the dependencies have a cycle"),
        ({"delay": [1]}, "delay: 1 figures for 2 edges; one a dependency is needed"),
        ({"delay": [1, -1]}, "delay of dependency 'b' -> 'c' is negative"),
        ({"capacity": None}, "demand and capacity go together"),
        ({"demand": None}, "demand and capacity go together"),
        ({"demand": [[1], [1], [1]]}, "demand has shape (3, 1); 3 ops and 2 engines were given"),
        (
            {"demand": [[1, 0], [0, 5], [0, 0]]},
            "demand of op 'b' on engine 'vector' is 5; it must lie between 0 and the capacity 4",
        ),
        ({"demand": [[-1, 0], [0, 0], [0, 0]]}, "demand of op 'a' on engine 'core' is -1"),
        ({"capacity": [], "demand": np.zeros((3, 0), int), "engine_names": [], "modes": []}, "at least one engine"),
        ({"capacity": [2, -4], "demand": [[0, 0]] * 3, "modes": []}, "demand of op 'a' on engine 'vector' is 0"),
        ({"engine": [0, 2, 1]}, "op 'b' is bound to an unknown engine; engines are 0 to 1"),
        ({"engine": [0, -1, 1]}, "op 'b' is bound to an unknown engine"),
        ({"modes": [(1, 8, [0, 5])]}, "a mode's demand of op 'b' on engine 'vector' is 5"),
        ({"modes": [(1, -8, [0, 2])]}, "modes: sorted by op, of ops that exist, with durations that are not negative"),
        ({"modes": [(1, 8, [2])]}, "mode_demand has shape (1, 1) where (1, 2) is needed"),
        ({"tensors": [(0, -4, [1])]}, "tensor 0: its bytes are negative"),
        ({"tensors": [(3, 4, [])]}, "a tensor is produced or consumed by an op that does not exist; ops are 0 to 2"),
        ({"tensors": [(0, 4, [3])]}, "a tensor is produced or consumed by an op that does not exist"),
        ({"tensors": [(0, 4, [2])]}, "op 'c' consumes a tensor of op 'a', but no dependency orders them; add the edge"),
        ({"tensors": [(0, 4.5, [1])]}, "tensors are (producer or None, bytes, [consumers])"),
        ({"tensors": [(0, 4)]}, "tensors are (producer or None, bytes, [consumers])"),
        ({"modes": [(1, 8.5, [0, 2])]}, "modes are (op, duration, [demands])"),
        ({"engine_streams": [1.5, None]}, "engine_streams: whole numbers"),
        ({"outputs": [2]}, "outputs: there is no tensor 2; there are 2"),
        ({"engine_streams": [-2, None]}, "engine_streams are -1 (no limit) or more"),
        ({"engine_streams": [1]}, "engine_streams has shape (1,) where (2,) is needed"),
        ({"label": [0, -2, 0]}, "label of op 'b' is below -1"),
        ({"communicator": [-3, 0, 0]}, "communicator of op 'a' is below -1"),
        ({"communication": [1, 0]}, "communication: true or false is needed"),
        ({"communication": [[True], [True, False]]}, "communication: "),
        ({"label": [0, 2**40, 0]}, "label of op 'b' is 1099511627776; count them from 0"),
        ({"communicator": [-1, -1, 2**20]}, "communicator of op 'c' is 1048576; count them from 0"),
        ({"engine": [2**62, 0, 0], "demand": None, "capacity": None}, "engine of op 0 is 4611686018427387904"),
        ({"tensors": [(-5, 4, [1])]}, "tensor 0: its producer is -5; an op, or -1 for none, is needed"),
        ({"name": b"x"}, "name is b'x'; text is needed"),
        ({"name": "\ud800"}, "name: text that is not Unicode"),
        ({"op_names": [np.int64(1), np.int64(2), np.int64(3)]}, "op_names: a list of strings is needed"),
        ({"op_names": "abc"}, "op_names: a list of strings is needed"),
        ({"binding": np.array(["free", "free"])}, "binding is array"),
        ({"binding": "loose"}, "binding is 'loose'; it must be 'free' or 'engine'"),
        ({"op_names": ["a"]}, "1 op names for 3 ops, 2 names for 2 engines"),
        ({"engine_names": ["core"]}, "3 op names for 3 ops, 1 names for 2 engines"),
        ({"engine_names": ["core", "core"]}, "engine_names: ['core', 'core'] names an engine twice"),
    ],
)
def test_what_from_arrays_refuses(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ProblemError, match=re.escape(message)):
        Problem.from_arrays(**FULL | change)


WRONG: list[Any] = [
    None, 3, -1, 2**31, 2**63, 2**70, 1.5, float("nan"), True, "x", b"x", [], [None], ["x"], [b"x"], [1.5], [2**63],
    [-7], [[]], [[1], [2, 3]], [[0, 1, 2]] * 3, {}, {"a": 1}, {0, 1, 2}, object(), [object()] * 3, np.array(3),
    np.int64(3), np.float64(0.5), np.array(["free", "free"]), np.zeros((3, 2, 2), int), np.zeros((0, 3)),
    np.array([None, 1, 2]),
    [True, False, True], [np.int64(1), np.int64(2), np.int64(3)], ["a", None, "c"], [(0, 1)], [(0, 1, 2, 3)],
    [[0, 1, [2**70]]], [(1, 2**70, [0, 2])], [(1.5, 2, [0, 1])], [(0, 5, [object()])], len,
]  # fmt: skip
# What a message calls an argument whose own check is one of another's.
ALSO = {
    "modes": ["mode"],
    "tensors": ["tensor"],
    "duration": ["ops"],
    "edges": ["dependenc"],
    "demand": ["ops"],
    "op_names": ["op names"],
    "engine_names": ["names for 2 engines"],
    "engine": ["bound to an unknown engine"],
}


@pytest.mark.parametrize("argument", list(inspect.signature(Problem.from_arrays).parameters))
@pytest.mark.parametrize("value", WRONG, ids=[str(k) for k in range(len(WRONG))])
def test_whatever_an_argument_is_the_problem_is_whole_or_the_error_names_it(argument: str, value: Any) -> None:
    try:
        problem = Problem.from_arrays(**FULL | {argument: value})
    except ProblemError as error:
        told = str(error)
    else:
        assert Problem.from_json(problem.to_json()) == problem
        return
    assert any(name in told for name in [argument, *ALSO.get(argument, [])]), told


@pytest.mark.parametrize(
    ("limit", "most"),
    [("streams", 2**31 - 1), ("tasks_per_stream", 2**31 - 1), ("events", 2**31 - 1), ("memory_bytes", 2**63 - 1)],
)
def test_the_largest_limits_are_like_none(limit: str, most: int) -> None:
    for solver in ("heft", "blevel", "round_robin", "cpsat"):
        free = Problem.from_arrays(**FULL | {"streams": None})
        problem = Problem.from_arrays(**FULL | {"streams": None, limit: most})
        assert bound(problem).makespan_ns == bound(free).makespan_ns
        plan = msched.solve(problem, solver, time_limit=5)
        timeline = msched.simulate(problem, plan)
        assert validate(problem, plan, timeline) == []
        assert timeline.makespan_ns == msched.simulate(free, msched.solve(free, solver, time_limit=5)).makespan_ns
    with pytest.raises(ProblemError, match=f"{limit} is {most + 1}; a number below 2"):
        Problem.from_arrays(**FULL | {limit: most + 1})


# 5 + 7 + 9 ns, 3 ops and 1: a capacity may be (2^61 - 1) // 25.
LARGEST = (2**61 - 1) // 25


@pytest.mark.parametrize("dispatch", ["arrival", "planned", "greedy"])
@pytest.mark.parametrize("solver", ["heft", "round_robin", "blevel", "single", "cpsat"])
def test_the_largest_units_are_computed_without_overflow(solver: str, dispatch: Any) -> None:
    # No two ops fit side by side: 5 + 7 + 9 whatever the solver, and the engine is never idle.
    problem = Problem.from_arrays(
        duration=[5, 7, 9], demand=[[LARGEST // 2 + 1]] * 2 + [[LARGEST]], capacity=[LARGEST], streams=3
    )
    plan = msched.solve(problem, solver, time_limit=5)
    timeline = msched.simulate(problem, plan, dispatch)
    assert validate(problem, plan, timeline, dispatch) == []
    assert timeline.makespan_ns == bound(problem).makespan_ns == 21


def test_larger_units_are_refused() -> None:
    with pytest.raises(ProblemError, match=f"capacity of engine 'engine0' is {LARGEST + 1}; .* at most {LARGEST}$"):
        Problem.from_arrays(duration=[5, 7, 9], demand=[[1]] * 3, capacity=[LARGEST + 1])
    with pytest.raises(ProblemError, match="capacity of engine 'engine1' is 9223372036854775807"):
        Problem.from_arrays(duration=[5, 7, 9], demand=[[1, 2**62]] * 3, capacity=[1, 2**63 - 1], streams=3)


@pytest.mark.parametrize(
    "figures", [{"duration": [2**60 - 1]}, {"duration": [2**60 - 4], "wait_ns": 1, "record_ns": 0}]
)
def test_the_longest_times(figures: dict[str, Any]) -> None:
    problem = Problem.from_arrays(**figures)
    plan = msched.solve(problem, "single")
    assert msched.simulate(problem, plan).makespan_ns == bound(problem).makespan_ns == figures["duration"][0]
    with pytest.raises(ProblemError, match=re.escape("add up to 2^60 or more")):
        Problem.from_arrays(**figures | {"duration": [2**60 - 1], "gap_ns": 1})


def test_a_dependency_of_many_is_out_of_range() -> None:
    with pytest.raises(ProblemError, match=re.escape("edges: (1, 5) names an op that does not exist; ops are 0 to 4")):
        Problem.from_arrays(duration=[1] * 5, edges=[(0, 1), (1, 5), (2, 7)])


@pytest.mark.parametrize("limit", ["streams", "tasks_per_stream", "events", "memory_bytes"])
@pytest.mark.parametrize("value", [-1, 2.5, True, "4"])
def test_limits_are_whole_numbers(limit: str, value: Any) -> None:
    with pytest.raises(
        ProblemError, match=f"{limit} is {value!r}; a whole number of at least [01], or None, is needed"
    ):
        Problem.from_arrays(**FULL | {limit: value})


@pytest.mark.parametrize("limit", ["streams", "tasks_per_stream"])
def test_no_stream_at_all_is_no_limit(limit: str) -> None:
    with pytest.raises(ProblemError, match=f"{limit} is 0; a whole number of at least 1"):
        Problem.from_arrays(**FULL | {limit: 0})


@pytest.mark.parametrize("cost", ["gap_ns", "record_ns", "wait_ns", "host_issue_ns"])
@pytest.mark.parametrize("value", [-1, 2.5, True, None])
def test_costs_are_whole_numbers(cost: str, value: Any) -> None:
    with pytest.raises(ProblemError, match=f"{cost} is {value!r}; a whole number of ns, 0 or more, is needed"):
        Problem.from_arrays(**FULL | {cost: value})


def test_a_cycle_is_named_from_its_first_op_back_to_it() -> None:
    names = ["a", "b", "c", "d"]
    with pytest.raises(ProblemError, match=r"cycle: (b -> c -> b|c -> b -> c)$"):
        Problem.from_arrays(duration=[1] * 4, edges=[(0, 1), (1, 2), (2, 1), (2, 3)], op_names=names)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edges": [[0, 1], [0, 1]]}, "edges: a dependency is given twice"),
        ({"edges": [[0, 1], [1, 7]]}, "edges name an op that does not exist; ops are 0 to 2"),
        ({"edges": 5}, "edges must be pairs"),
        ({"edges": [[0, 1, 2], [0, 1, 2]]}, "edges has shape (2, 3) where (2, 2) is needed"),
        ({"tensor_consumer_start": 0}, "tensor_consumer_start a plain list"),
        ({"tensor_consumer_start": [0, 2, 1]}, "tensor_consumer"),
        ({"tensor_consumer_start": [1, 1, 3]}, "tensor_consumer_start must begin at 0 and never fall"),
        ({"tensor_producer": [0, -1], "tensor_persistent": [False, False]}, "tensor 1 dangles"),
        ({"tensor_persistent": [1, 0]}, "tensor_persistent: true or false is needed"),
        ({"tensor_persistent": [[True], [True, False]]}, "tensor_persistent:"),
        ({"mode_op": [3]}, "modes: sorted by op, of ops that exist"),
        ({"duration": "long"}, "duration: whole numbers that fit in 64 bits are needed"),
        ({"duration": [[1], [2, 3]]}, "duration:"),
        ({"name": 5}, "name is 5; text is needed"),
        ({"op_names": ["a", "b", 3]}, "op_names: a list of strings is needed"),
        ({"warnings": "none"}, "warnings: a list of strings is needed"),
        ({"schema": "msched.problem/9"}, "not a problem of schema msched.problem/1: it says no such schema"),
        ({"colour": "red"}, "missing fields [], unknown fields ['colour']"),
    ],
)
def test_json_that_breaks_the_schema(change: dict[str, Any], message: str) -> None:
    document = json.loads(Problem.from_arrays(**FULL).to_json()) | change
    with pytest.raises(ProblemError, match=re.escape(message)):
        Problem.from_json(json.dumps(document))


@pytest.mark.parametrize("field", [f.name for f in dataclasses.fields(Problem)])
def test_json_without_a_field(field: str) -> None:
    document = json.loads(Problem.from_arrays(**FULL).to_json())
    del document[field]
    with pytest.raises(ProblemError, match=re.escape(f"missing fields ['{field}']")):
        Problem.from_json(json.dumps(document))


@pytest.mark.parametrize(
    "junk", [None, "x", 1.5, -5, [], [[1], [2, 3]], {"a": 1}, 10**30, [[0, 1, 2]], [None], [[[1]]]]
)
@pytest.mark.parametrize("field", [f.name for f in dataclasses.fields(Problem) if "Array" in str(f.type)])
def test_json_with_rubbish_in_an_array(field: str, junk: Any) -> None:
    document = json.loads(Problem.from_arrays(**FULL).to_json()) | {field: junk}
    with pytest.raises(ProblemError):
        Problem.from_json(json.dumps(document))


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff\xfe", b"null", b"[" * 100_000, b"{}"])
def test_what_is_no_problem_json(data: bytes) -> None:
    with pytest.raises(ProblemError, match=r"not a problem of schema msched\.problem/1"):
        Problem.from_json(data)


def test_an_edge_added_in_networkx_stands_behind_the_others() -> None:
    drawing = Problem.from_arrays(**FULL).to_networkx()
    drawing.add_edge(0, 2)
    problem = Problem.from_networkx(drawing)
    assert problem.edges.tolist() == [[0, 1], [1, 2], [0, 2]]
    assert problem.delay.tolist() == [10, 20, 0]


def test_networkx_graphs_that_are_no_problem() -> None:
    with pytest.raises(ProblemError, match=r"lower an OpGraph, or use Problem\.from_arrays"):
        Problem.from_networkx(networkx.DiGraph([(0, 1)]))
    drawing = Problem.from_arrays(**FULL).to_networkx()
    del drawing.nodes[1]["duration"]
    with pytest.raises(ProblemError, match="one lacks 'duration'"):
        Problem.from_networkx(drawing)
