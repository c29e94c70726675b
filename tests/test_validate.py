"""Each test of a rule breaks one thing in a run that is otherwise right, and that rule alone must be named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msched
from msched.errors import OptionError
from msched.plan import Plan
from msched.problem import Problem
from msched.rederivation_kernel import two_steps_lead
from msched.simulator import simulate
from msched.validate import Violation, validate
from tests.reference.simulator import report, start_times
from tests.strategies import problems_with_plans

RULES = ("arrival", "planned", "greedy")


def _plan(problem: Problem, stream: list[int] | None = None, **fields: Any) -> Plan:
    ops = np.arange(problem.n)
    return Plan(**{"stream": np.array(stream) if stream is not None else ops, "order": ops, **fields})


def _broken(
    problem: Problem, plan: Plan, start: list[int] | None = None, dispatch: Any = "arrival", **figures: Any
) -> set[str]:
    """Rules named for the plan's run, or for the times `start`, with the figures given in place of the true ones."""
    times = start if start is not None else start_times(problem, plan, dispatch)
    finish = figures.pop("finish", None)
    return _rules(problem, plan, replace(report(problem, plan, times, finish), **figures), dispatch)


def _rules(problem: Problem, plan: Plan, timeline: Any, dispatch: Any) -> set[str]:
    return {violation.rule for violation in validate(problem, plan, timeline, dispatch)}


# op0 (5 ns) on stream 0; op1 and op2 (2 ns each) on stream 1, op1 after op0.
CHAIN = Problem.from_arrays(duration=[5, 2, 2], edges=[(0, 1)])
CHAINED = [0, 1, 1]


def test_the_module_can_be_called_and_its_types_imported() -> None:
    plan = _plan(CHAIN, CHAINED)
    assert msched.validate(CHAIN, plan, simulate(CHAIN, plan)) == []
    wrong = replace(report(CHAIN, plan, [0, 5, 7]), makespan_ns=8)
    assert msched.validate(CHAIN, plan, wrong) == [Violation("makespan", "8 ns is reported; the last op ends at 9 ns")]


def test_unknown_dispatch() -> None:
    plan = _plan(CHAIN, CHAINED)
    with pytest.raises(OptionError, match="dispatch is 'fastest'"):
        msched.validate(CHAIN, plan, simulate(CHAIN, plan), dispatch="fastest")


@settings(max_examples=200)
@given(problems_with_plans(), st.sampled_from(RULES), st.data())
def test_no_other_times_pass(case: tuple[Problem, Plan], dispatch: str, data: st.DataObject) -> None:
    problem, plan = case
    times = start_times(problem, plan, dispatch)
    moved = list(times)
    for op in data.draw(st.lists(st.integers(0, problem.n - 1), min_size=1, unique=True)):
        moved[op] = max(0, times[op] + data.draw(st.integers(-3, 3)))
    assert (_broken(problem, plan, moved, dispatch) == set()) == (moved == times)


@settings(max_examples=150)
@given(problems_with_plans(), st.sampled_from(RULES), st.sampled_from(RULES))
def test_a_run_passes_for_the_dispatch_that_made_it(case: tuple[Problem, Plan], ran: str, told: str) -> None:
    problem, plan = case
    times = start_times(problem, plan, ran)
    assert (_broken(problem, plan, times, told) == set()) == (times == start_times(problem, plan, told))


def test_fifo_overlap_gap() -> None:
    plan = _plan(CHAIN, CHAINED)
    assert _broken(CHAIN, plan, [0, 5, 7]) == set()
    assert _broken(CHAIN, plan, [0, 5, 0]) == {"fifo"}
    assert _broken(CHAIN, plan, [0, 5, 6]) == {"overlap"}
    spaced = replace(CHAIN, gap_ns=2)
    assert _broken(spaced, plan, [0, 5, 9]) == set()
    assert _broken(spaced, plan, [0, 5, 8]) == {"gap"}


def test_dependency_and_fence() -> None:
    # After op0 ends at 5: record 1 + wait 1, and 3 of delay on a dependency between streams.
    problem = Problem.from_arrays(duration=[5, 2], edges=[(0, 1)], delay=[3], record_ns=1, wait_ns=1)
    assert _broken(problem, _plan(problem), [0, 10]) == set()
    assert _broken(problem, _plan(problem), [0, 9]) == {"dependency"}
    assert _broken(problem, _plan(problem, [0, 0]), [0, 5]) == set()
    free = Problem.from_arrays(duration=[5, 2], record_ns=1, wait_ns=1)
    assert _broken(free, _plan(free, fences=[(0, 1)]), [0, 7]) == set()
    assert _broken(free, _plan(free, fences=[(0, 1)]), [0, 6]) == {"fence"}


def test_host_issue() -> None:
    problem = Problem.from_arrays(duration=[5, 2], host_issue_ns=4)
    assert _broken(problem, _plan(problem), [4, 8]) == set()
    assert _broken(problem, _plan(problem), [4, 7]) == {"host-issue"}
    assert _broken(CHAIN, _plan(CHAIN, CHAINED), [-1, 5, 7], finish=[4, 7, 9]) >= {"host-issue"}


@pytest.mark.parametrize("dispatch", RULES)
def test_capacity(dispatch: str) -> None:
    problem = Problem.from_arrays(duration=[3, 3], demand=[[1], [1]], capacity=[1])
    assert _broken(problem, _plan(problem), [0, 3], dispatch) == set()
    assert _broken(problem, _plan(problem), [0, 2], dispatch) == {"capacity"}


def test_overtaking() -> None:
    # The small op2 takes the spare unit ahead of op1, which needs all four: right for greedy alone.
    problem = Problem.from_arrays(duration=[10, 5, 20], demand=[[3], [4], [1]], capacity=[4])
    assert _broken(problem, _plan(problem), [0, 20, 0], "greedy") == set()
    assert _broken(problem, _plan(problem), [0, 20, 0], "arrival") == {"overtaking"}
    assert _broken(problem, _plan(problem), [0, 20, 0], "planned") == {"overtaking"}


@pytest.mark.parametrize("dispatch", RULES)
def test_late(dispatch: str) -> None:
    problem = Problem.from_arrays(duration=[3, 3, 0, 1], demand=[[1], [1], [1], [0]], capacity=[1])
    plan = _plan(problem)
    assert _broken(problem, plan, [0, 3, 0, 0], dispatch) == set()
    assert _broken(problem, plan, [0, 4, 0, 0], dispatch) == {"late"}  # the unit was free at 3
    assert _broken(problem, plan, [0, 3, 1, 0], dispatch) == {"late"}  # an op of no time needs no unit
    assert _broken(problem, plan, [0, 3, 0, 1], dispatch) == {"late"}  # nor does an op without demand


def test_passed_over_at_its_turn() -> None:
    # Both fit at 0, but not together, and op0 was issued first.
    problem = Problem.from_arrays(duration=[4, 4], demand=[[2], [2]], capacity=[2])
    assert _broken(problem, _plan(problem), [4, 0], "greedy") == {"late"}
    assert _broken(problem, _plan(problem), [4, 0], "arrival") == {"overtaking"}


def test_finish_of_the_chosen_mode() -> None:
    problem = Problem.from_arrays(duration=[4], demand=[[2]], capacity=[2], modes=[(0, 7, [1])])
    slow = _plan(problem, mode=np.array([1]))
    assert _broken(problem, slow, [0]) == set()
    assert _broken(problem, slow, [0], finish=[4], utilisation=np.array([7 / 8])) == {"finish"}


def test_figures_of_the_timeline() -> None:
    problem = Problem.from_arrays(
        duration=[4, 2], demand=[[1, 0], [0, 1]], capacity=[1, 2], communication=[False, True], tensors=[(0, 7, [])]
    )
    plan = _plan(problem, [0, 0])
    true = report(problem, plan, [0, 4])
    # Engine 0 is held for 4 of 6 ns, one of two units of engine 1 for 2; op1 communicates beside nothing.
    assert (true.makespan_ns, true.peak_bytes, true.exposed_communication_ns) == (6, 7, 2)
    assert true.utilisation.tolist() == [4 / 6, 2 / 12]
    assert _broken(problem, plan) == set()
    assert _broken(problem, plan, makespan_ns=7) == {"makespan"}
    assert _broken(problem, plan, peak_bytes=6) == {"peak"}
    assert _broken(problem, plan, utilisation=np.array([4 / 6, 2 / 6])) == {"utilisation"}
    assert _broken(problem, plan, exposed_communication_ns=0) == {"exposed"}
    assert _broken(problem, plan, critical_ops=np.array([0])) == {"critical"}
    assert _broken(problem, plan, critical_ops=np.array([1, 0])) == {"critical"}
    assert _broken(problem, plan, critical_ops=np.array([0, 1])) == set()


def test_reported_waits() -> None:
    # op0 -> op2 is implied by op0 -> op1 -> op2.
    problem = Problem.from_arrays(duration=[1, 1, 1], edges=[(0, 1), (1, 2), (0, 2)])
    plan = _plan(problem)
    assert _broken(problem, plan, waits=np.array([(0, 1), (1, 2)])) == set()
    assert _broken(problem, plan, waits=np.array([(0, 1)])) == {"waits"}
    assert _broken(problem, plan, waits=np.array([(0, 1), (1, 2), (0, 2)])) == {"waits"}
    assert _broken(problem, plan, waits=np.array([(0, 1), (1, 2), (1, 2)])) == {"waits"}


def test_limits_on_streams() -> None:
    problem = Problem.from_arrays(duration=[1, 1, 1], streams=2)
    assert _broken(problem, _plan(problem, [0, 1, 0])) == set()
    assert _broken(problem, _plan(problem, [0, 1, 2])) == {"streams"}
    assert _broken(problem, _plan(problem, [0, 2, 0])) == {"streams"}  # a hole
    assert _broken(problem, _plan(problem, [0, -1, 0]), [0, 0, 1]) == {"streams"}


def test_binding_and_streams_of_an_engine() -> None:
    limits = {"capacity": [9, 9], "engine_streams": [1, 2], "binding": "engine"}
    problem = Problem.from_arrays(duration=[1, 1, 1, 1], demand=[[1, 0], [1, 0], [0, 1], [0, 1]], **limits)
    assert _broken(problem, _plan(problem, [0, 0, 1, 2])) == set()
    assert _broken(problem, _plan(problem, [0, 1, 2, 3])) == {"engine-streams"}
    assert _broken(problem, _plan(problem, [0, 0, 0, 1])) == {"binding"}
    assert _broken(replace(problem, binding="free"), _plan(problem, [0, 1, 2, 0])) == set()


def test_label() -> None:
    problem = Problem.from_arrays(duration=[1, 1, 1, 1], label=[4, -1, 4, -1])
    assert _broken(problem, _plan(problem, [0, 1, 0, 2])) == set()
    assert _broken(problem, _plan(problem, [0, 1, 1, 2])) == {"label"}


def test_events_and_tasks() -> None:
    # Streams 0, 1, 2 with one op each and two waits for op0: stream 0 has 1 + 2 records, each of the others 1 + 2.
    problem = Problem.from_arrays(duration=[1, 1, 1], edges=[(0, 1), (0, 2)], events=2, tasks_per_stream=3)
    assert _broken(problem, _plan(problem)) == set()
    assert _broken(replace(problem, events=1), _plan(problem)) == {"events"}
    assert _broken(replace(problem, tasks_per_stream=2), _plan(problem)) == {"tasks"}
    # With op1 on stream 0 that stream has two ops and one record, the other one op and a wait of two tasks.
    assert _broken(replace(problem, events=1), _plan(problem, [0, 0, 1])) == set()


@pytest.mark.parametrize(
    ("peak", "tensors", "outputs"),
    [
        (9, [(0, 4, [2]), (1, 5, [2])], []),  # both live when op2 starts
        (5, [(0, 4, []), (1, 5, [2])], []),  # read by none: gone when op0 ends
        (9, [(0, 4, []), (1, 5, [2])], [0]),  # an output stays
        (8, [(None, 3, [0]), (1, 5, [2])], []),  # a weight is always there
        (5, [(0, 4, [1]), (2, 5, [])], []),  # its last reader ends as the next is born
    ],
)
def test_memory_by_hand(peak: int, tensors: Any, outputs: Any) -> None:
    problem = Problem.from_arrays(
        duration=[3, 3, 3], edges=[(0, 1), (0, 2), (1, 2)], tensors=tensors, outputs=outputs, memory_bytes=peak
    )
    plan = _plan(problem, [0, 0, 0])
    assert _broken(problem, plan, peak_bytes=peak) == set()
    assert _broken(problem, plan, peak_bytes=peak + 1) == {"peak"}
    assert _broken(replace(problem, memory_bytes=peak - 1), plan, peak_bytes=peak) == {"memory"}


def test_workspaces_count_while_their_ops_run() -> None:
    problem = Problem.from_arrays(duration=[3, 3], workspace=[4, 5], memory_bytes=8)
    assert _broken(problem, _plan(problem, [0, 0])) == set()
    assert _broken(problem, _plan(problem)) == {"memory"}


def test_communicator() -> None:
    problem = Problem.from_arrays(duration=[1, 1, 1], communicator=[7, 7, -1], edges=[(0, 2)])
    assert _broken(problem, _plan(problem)) == {"communicator"}
    assert _broken(problem, _plan(problem, [0, 0, 1])) == set()
    assert _broken(problem, _plan(problem, fences=[(0, 1)])) == set()
    through = _plan(problem, order=np.array([0, 2, 1]), fences=[(2, 1)])
    assert _broken(problem, through) == set()
    assert _broken(replace(problem, communicator=np.array([7, 8, -1])), _plan(problem)) == set()


def test_issue_order() -> None:
    times = [0, 5, 7]
    assert _broken(CHAIN, _plan(CHAIN, CHAINED, order=np.array([1, 0, 2])), times, waits=np.array([(0, 1)])) == {
        "order"
    }
    plan = _plan(CHAIN, CHAINED)
    true = report(CHAIN, plan, times)
    for wrong in (replace(plan, fences=np.array([(2, 1)])), replace(plan, order=np.array([0, 1, 1]))):
        assert _rules(CHAIN, wrong, true, "arrival") == {"order"}
    for wrong in (replace(plan, mode=np.array([0, 0, 1])), replace(plan, mode=np.array([0, -1, 0]))):
        assert _rules(CHAIN, wrong, true, "arrival") == {"mode"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"start_ns": np.array([0, 5])},
        {"start_ns": np.array([0.0, 5.0, 7.0])},
        {"finish_ns": np.array([5, 7, 9, 9])},
        {"utilisation": np.array([0.0, 0.0])},
        {"utilisation": np.array([0])},
        {"waits": np.array([0, 1])},
        {"waits": np.array([(0, 3)])},
        {"critical_ops": np.array([3])},
    ],
)
def test_shapes_of_the_timeline(wrong: dict[str, Any]) -> None:
    assert _broken(CHAIN, _plan(CHAIN, CHAINED), **wrong) == {"shape"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"stream": np.array([0, 1])},
        {"order": np.array([0, 1])},
        {"mode": np.array([0, 0])},
        {"fences": np.array([(0, 3)])},
        {"stream": np.array([]), "order": np.array([]), "status": "timeout"},
    ],
)
def test_shapes_of_the_plan(wrong: dict[str, Any]) -> None:
    plan = _plan(CHAIN, CHAINED)
    assert _rules(CHAIN, replace(plan, **wrong), report(CHAIN, plan, [0, 5, 7]), "arrival") == {"shape"}


def test_a_problem_without_ops() -> None:
    problem = Problem.from_arrays(duration=[], tensors=[(None, 3, [])])
    plan = _plan(problem)
    assert _broken(problem, plan) == set()
    assert _broken(problem, plan, peak_bytes=0) == {"peak"}


def test_reasons_name_ops_times_and_what_is_allowed() -> None:
    plan = _plan(CHAIN, CHAINED)
    named = replace(CHAIN, op_names=("embed", "matmul", "softmax"))
    assert validate(named, plan, report(named, plan, [0, 4, 6])) == [
        Violation("dependency", "'matmul' starts at 4 ns; after 'embed', which ends at 5 ns, 5 ns is the earliest")
    ]


@pytest.mark.parametrize("words", [1, 2, 128])
def test_ancestors_do_not_depend_on_how_many_are_followed_at_once(words: int) -> None:
    n, rng = 300, np.random.default_rng(0)
    steps = np.unique(np.sort(rng.choice(n, (500, 2)), axis=1), axis=0)
    steps = steps[steps[:, 0] < steps[:, 1]]
    drawing: networkx.DiGraph[int] = networkx.DiGraph(steps.tolist())
    drawing.add_nodes_from(range(n))
    reached = {u: networkx.descendants(drawing, u) for u in drawing}
    asked = np.array([(u, v) for v in range(n) for u in range(v)])
    expected = [any(v in reached[w] for w in drawing.successors(u)) for u, v in asked.tolist()]
    assert two_steps_lead(n, steps, asked, words).tolist() == expected
