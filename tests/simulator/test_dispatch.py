"""The three dispatch rules: worked out by hand, and against a plain simulator."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from msched.plan import Plan
from msched.problem import Problem
from msched.simulator import simulate
from tests.reference import simulator as reference
from tests.strategies import problems_with_plans

RULES = ("arrival", "planned", "greedy")


def _starts(problem: Problem, dispatch: str, stream: list[int] | None = None, **plan: object) -> list[int]:
    """Issued by index; each op on a stream of its own unless `stream` says otherwise."""
    ops = np.arange(problem.n)
    made = Plan(stream=np.array(stream) if stream is not None else ops, order=ops, **plan)
    return simulate(problem, made, dispatch=dispatch).start_ns.tolist()


@pytest.mark.parametrize(
    ("dispatch", "starts"), [("arrival", [0, 10, 15]), ("planned", [0, 10, 15]), ("greedy", [0, 10, 0])]
)
def test_a_blocked_mix_op_blocks_the_other_engine_behind_it(dispatch: str, starts: list[int]) -> None:
    # op0 holds the cube until 10. op1 needs cube and vector, so it stands at the head of the vector queue until 10,
    # and op2, behind it there, waits for the idle vector core until op1 ends at 15. Greedy lets op2 in at once.
    problem = Problem.from_arrays(duration=[10, 5, 3], demand=[[1, 0], [1, 1], [0, 1]], capacity=[1, 1])
    assert _starts(problem, dispatch) == starts


@pytest.mark.parametrize(
    ("dispatch", "starts"), [("arrival", [0, 6, 0]), ("planned", [0, 4, 9]), ("greedy", [0, 6, 0])]
)
def test_who_arrives_first_overtakes_unless_the_plan_rules(dispatch: str, starts: list[int]) -> None:
    # op1 follows op0 on its stream and arrives at 4; op2, issued after it, arrives at 0 and takes the unit until 6.
    # Under planned op2 waits for op1, which runs from 4 to 9.
    problem = Problem.from_arrays(duration=[4, 5, 6], demand=[[0], [1], [1]], capacity=[1])
    assert _starts(problem, dispatch, [0, 0, 1]) == starts


@pytest.mark.parametrize(
    ("dispatch", "starts"), [("arrival", [0, 10, 15]), ("planned", [0, 10, 15]), ("greedy", [0, 20, 0])]
)
def test_only_greedy_lets_a_small_op_pass_a_large_one(dispatch: str, starts: list[int]) -> None:
    # op0 holds 3 of 4 units until 10. op1 needs all 4: at the head it starts at 10 and keeps op2 out until 15.
    # Greedy gives the spare unit to op2 from 0 to 20, and op1 finds 4 free units only then.
    problem = Problem.from_arrays(duration=[10, 5, 20], demand=[[3], [4], [1]], capacity=[4])
    assert _starts(problem, dispatch) == starts


@pytest.mark.parametrize(
    ("dispatch", "starts"),
    [
        # Vector queue: op1 and op6 arrive at 0, op5 at 1, op3 at 2. op1 until 6, op6 until 7. op5 is then at the head
        # of both queues, the cube having been free since 4, and runs until 9; op3 follows.
        ("arrival", [0, 0, 0, 9, 0, 7, 6]),
        # By issue: op1 until 6, op3 until 9, op5 until 11, op6.
        ("planned", [0, 0, 0, 6, 0, 9, 11]),
        # At 4 the cube is free but the vector core is not; at 6 op6 arrived first; at 7 op5 before op3.
        ("greedy", [0, 0, 0, 9, 0, 7, 6]),
    ],
)
def test_two_mix_ops_stand_in_both_queues_in_one_order(dispatch: str, starts: list[int]) -> None:
    problem = Problem.from_arrays(
        duration=[4, 6, 2, 3, 1, 2, 1],
        demand=[[1, 0], [0, 1], [0, 0], [1, 1], [0, 0], [1, 1], [0, 1]],
        capacity=[1, 1],
    )
    assert _starts(problem, dispatch, [0, 1, 2, 2, 3, 3, 4]) == starts


@pytest.mark.parametrize("dispatch", RULES)
def test_equal_arrivals_go_by_issue_order_not_by_index(dispatch: str) -> None:
    # Three ops of one unit arrive at 0; issued 2, 0, 1.
    problem = Problem.from_arrays(duration=[4, 3, 2], demand=[[1], [1], [1]], capacity=[1])
    plan = Plan(stream=np.arange(3), order=np.array([2, 0, 1]))
    assert simulate(problem, plan, dispatch=dispatch).start_ns.tolist() == [2, 6, 0]


@pytest.mark.parametrize("dispatch", RULES)
def test_units_given_back_at_an_instant_serve_who_arrives_then(dispatch: str) -> None:
    # op0 gives the unit back at 5, when op2 arrives behind op1 on stream 1: no overlap and no idle time.
    problem = Problem.from_arrays(duration=[5, 5, 1], demand=[[1], [0], [1]], capacity=[1])
    assert _starts(problem, dispatch, [0, 1, 1]) == [0, 0, 5]


@pytest.mark.parametrize("dispatch", RULES)
def test_an_op_of_no_time_takes_no_units_and_does_not_queue(dispatch: str) -> None:
    # op1 takes no time: it starts at 0 beside op0, which holds the only unit, and op2 on its stream arrives at 0 too.
    problem = Problem.from_arrays(duration=[10, 0, 1], demand=[[1], [1], [0]], capacity=[1])
    assert _starts(problem, dispatch, [0, 1, 1]) == [0, 0, 0]


@pytest.mark.parametrize("dispatch", RULES)
def test_an_op_of_no_time_keeps_its_place_in_its_stream(dispatch: str) -> None:
    # 3 ns, a gap, nothing, a gap: 0, 3 + 1, 4 + 1.
    problem = Problem.from_arrays(duration=[3, 0, 2], gap_ns=1)
    assert _starts(problem, dispatch, [0, 0, 0]) == [0, 4, 5]


@pytest.mark.parametrize("dispatch", RULES)
def test_what_an_op_of_no_time_releases_arrives_before_later_issues_start(dispatch: str) -> None:
    # At 5 op0 and op3 end. op1 (no time) comes first, so op2 arrives at 5 as op4 does and is issued before it.
    problem = Problem.from_arrays(duration=[5, 0, 1, 5, 1], demand=[[1], [0], [1], [0], [1]], capacity=[1])
    assert _starts(problem, dispatch, [0, 0, 0, 1, 1]) == [0, 5, 5, 0, 6]


@pytest.mark.parametrize("dispatch", RULES)
def test_every_cost_in_its_place(dispatch: str) -> None:
    # op0 is issued at 2 and ends at 5. op1, same stream: 5 + gap 1 = 6 (issued at 4), ends at 7. op2, other stream,
    # after op0: 5 + record 1 + wait 2 + delay 4 = 12, ends at 14. op3, after op1: 7 + 3 + delay 10 = 20 (its stream
    # is free at 15). op4, first stream, fence from op2: 14 + 3 = 17 (its stream is free at 8, issued at 10).
    problem = Problem.from_arrays(
        duration=[3, 1, 2, 1, 1],
        edges=[(0, 1), (0, 2), (1, 3)],
        delay=[9, 4, 10],
        gap_ns=1,
        record_ns=1,
        wait_ns=2,
        host_issue_ns=2,
    )
    assert _starts(problem, dispatch, [0, 0, 1, 1, 0], fences=[(2, 4)]) == [2, 6, 12, 20, 17]


@pytest.mark.parametrize("dispatch", RULES)
def test_the_chosen_mode_says_how_long_and_how_much(dispatch: str) -> None:
    # Two ops of 2 units and 4 ns on 2 units run one after the other; in mode 1 (7 ns on one unit) side by side.
    problem = Problem.from_arrays(
        duration=[4, 4], demand=[[2], [2]], capacity=[2], modes=[(0, 7, [1]), (1, 9, [2]), (1, 7, [1])]
    )
    assert _starts(problem, dispatch) == [0, 4]
    side_by_side = Plan(stream=np.arange(2), order=np.arange(2), mode=np.array([1, 2]))
    timeline = simulate(problem, side_by_side, dispatch=dispatch)
    assert timeline.start_ns.tolist() == [0, 0]
    assert timeline.finish_ns.tolist() == [7, 7]


@pytest.mark.parametrize("dispatch", RULES)
@settings(max_examples=150)
@given(case=problems_with_plans(most_ops=10))
def test_starts_and_live_bytes_are_those_of_the_plain_simulator(dispatch: str, case: tuple[Problem, Plan]) -> None:
    problem, plan = case
    timeline = simulate(problem, plan, dispatch=dispatch)
    starts = reference.start_times(problem, plan, dispatch)
    duration, _ = reference.chosen(problem, plan)
    finish = [s + d for s, d in zip(starts, duration, strict=True)]
    assert timeline.start_ns.tolist() == starts
    assert timeline.finish_ns.tolist() == finish
    assert timeline.makespan_ns == max(finish)
    assert timeline.peak_bytes == reference.peak_bytes(problem, starts, finish)


@pytest.mark.parametrize("dispatch", RULES)
def test_a_network_of_many_queues_runs_as_the_plain_simulator_says(dispatch: str) -> None:
    generator = np.random.default_rng(5)
    n, capacity = 120, [4, 3, 2]
    edges = [(int(generator.integers(max(0, v - 12), v)), v) for v in range(1, n) for _ in range(2)]
    demand = [[int(generator.integers(0, c + 1)) for c in capacity] for _ in range(n)]
    problem = Problem.from_arrays(
        duration=generator.integers(0, 9, n), edges=edges, demand=demand, capacity=capacity, gap_ns=1, wait_ns=1
    )
    plan = Plan(stream=np.unique(generator.integers(0, 9, n), return_inverse=True)[1], order=np.arange(n))
    assert simulate(problem, plan, dispatch=dispatch).start_ns.tolist() == reference.start_times(
        problem, plan, dispatch
    )
