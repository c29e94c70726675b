"""MemoryList: by hand, and on drawn problems the promise that a limit as high as the serial peak is always kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import msched
from msched.arrays import Int64Array
from msched.plan import Plan
from msched.problem import Problem
from msched.simulator import simulate
from msched.solvers.base import Budget, Dispatch, UnassignableError
from msched.solvers.joint.memory_list import MemoryList
from msched.solvers.low_peak import serial_peak
from msched.solvers.order.memory_first import MemoryFirst
from msched.validate import validate
from tests.strategies import problems

RULES: tuple[Dispatch, ...] = ("arrival", "planned", "greedy")


@dataclass(frozen=True)
class Given:
    """The order that a test wants."""

    order: tuple[int, ...]

    def sequence(self, problem: Problem, stream: Int64Array, budget: Budget) -> Int64Array:
        return np.array(self.order, np.int64)


def fork(**options: Any) -> Problem:
    """op0 feeds op1 and op2, a byte; their outputs of 4 bytes feed op3 and op4, one each."""
    return Problem.from_arrays(
        duration=[1, 5, 5, 2, 2],
        edges=[(0, 1), (0, 2), (1, 3), (2, 4)],
        tensors=[(0, 1, [1, 2]), (1, 4, [3]), (2, 4, [4])],
        streams=2,
        **options,
    )


def planned(problem: Problem, *order: int) -> Plan:
    return MemoryList(Given(order)).solve(problem, Budget())


def starts(plan: Plan) -> list[int]:
    assert plan.predicted_start_ns is not None
    return plan.predicted_start_ns.tolist()


@pytest.mark.parametrize("memory_bytes", [None, 9])
def test_branches_run_side_by_side_where_their_bytes_fit(memory_bytes: int | None) -> None:
    # 1 + 4 + 4 bytes from 1 to 6
    plan = planned(fork(memory_bytes=memory_bytes), 0, 1, 2, 3, 4)
    assert (starts(plan), plan.stream.tolist()) == ([0, 1, 1, 6, 6], [0, 0, 1, 0, 1])
    assert plan.predicted_makespan_ns == 8


def test_an_op_starts_no_earlier_than_the_one_before_it_in_the_order() -> None:
    # op3 can start at 6 only, and op2 comes after it
    assert starts(planned(fork(), 0, 1, 3, 2, 4)) == [0, 1, 6, 6, 11]


@pytest.mark.parametrize("memory_bytes", [8, 5])
def test_an_op_waits_until_its_bytes_are_free(memory_bytes: int) -> None:
    # op2 needs 4 beside the 1 of op0 and the 4 of op1, which op3 frees at 8
    plan = planned(fork(memory_bytes=memory_bytes), 0, 1, 3, 2, 4)
    assert (starts(plan), plan.predicted_makespan_ns) == ([0, 1, 8, 6, 13], 15)


def test_an_order_that_needs_more_than_the_limit_is_refused_and_the_op_named() -> None:
    # op2 before op3: 1 + 4 + 4 bytes, whatever else ends
    with pytest.raises(UnassignableError, match="op 'op2' finds no room in 8 bytes in this order"):
        planned(fork(memory_bytes=8), 0, 1, 2, 3, 4)


@pytest.mark.parametrize(
    ("memory_bytes", "start"),
    [
        (None, 6),  # with op3: its turn. Its input would be on stream 1 at 1 + 1 + 1.
        (9, 8),  # held back to its turn by a fence after op1: 6 + 1 + 1
        (8, 8),  # the same fence, and op3 has freed its 4 bytes by then
    ],
)
def test_what_is_held_back_starts_when_a_fence_can_let_it_go(memory_bytes: int | None, start: int) -> None:
    problem = fork(memory_bytes=memory_bytes, record_ns=1, wait_ns=1)
    plan = planned(problem, 0, 1, 3, 2, 4)
    assert (plan.stream.tolist(), starts(plan)) == ([0, 0, 1, 0, 1], [0, 1, start, 6, start + 5])


def test_a_dearer_event_takes_the_next_finish() -> None:
    # Room from 8. After op1: 6 + 3 = 9; after op0: 1 + 3.
    problem = fork(memory_bytes=8, record_ns=1, wait_ns=2)
    assert starts(planned(problem, 0, 1, 3, 2, 4)) == [0, 1, 9, 6, 14]


def test_engines_gaps_and_the_host_are_waited_for() -> None:
    # The host issues at 5, 10, 15 and 20. op2 takes both units, one of which op1 holds to 16. op3 finds the stream of
    # op1 free from 16 + 2, and that of op2 from 19 + 2.
    problem = Problem.from_arrays(
        duration=[4, 6, 3, 1], demand=[[1], [1], [2], [0]], capacity=[2], streams=2, gap_ns=2, host_issue_ns=5
    )
    assert starts(planned(problem, 0, 1, 2, 3)) == [5, 10, 16, 20]


def test_what_persists_is_always_there() -> None:
    chain = {"duration": [2, 2], "tensors": [(0, 5, []), (1, 5, []), (None, 7, [0])], "streams": 2}
    assert starts(planned(Problem.from_arrays(**chain, memory_bytes=17), 0, 1)) == [0, 0]
    assert starts(planned(Problem.from_arrays(**chain, memory_bytes=16), 0, 1)) == [0, 2]
    with pytest.raises(UnassignableError, match="op 'op0' finds no room in 11 bytes"):
        planned(Problem.from_arrays(**chain, memory_bytes=11), 0, 1)


def test_bound_streams_and_labels_are_refused() -> None:
    for options in ({"binding": "engine"}, {"label": [0] * 5}):
        with pytest.raises(UnassignableError, match="binding and labels are not kept"):
            planned(fork(**options), 0, 1, 2, 3, 4)


def test_no_more_streams_than_the_parameter_where_the_problem_sets_no_limit() -> None:
    problem = Problem.from_arrays(duration=[1] * 4)
    assert MemoryList(Given((0, 1, 2, 3)), max_streams=3).solve(problem, Budget()).streams == 3
    assert MemoryList(Given((0, 1, 2, 3)), max_streams=3).solve(replace(problem, streams=2), Budget()).streams == 2


def least_known(problem: Problem) -> int:
    """Bytes that the order of MemoryFirst needs, one op at a time."""
    order = MemoryFirst().sequence(problem, np.zeros(problem.n, np.int64), Budget())
    return serial_peak(problem, order) + int(problem.tensor_bytes[problem.tensor_persistent].sum())


@given(problems(modes=False), st.integers(0, 5), st.sampled_from(RULES))
def test_a_limit_as_high_as_the_serial_peak_is_always_kept(problem: Problem, spare: int, dispatch: Dispatch) -> None:
    assume(problem.binding == "free")
    problem = replace(problem, memory_bytes=least_known(problem) + spare)
    plan = msched.solve(problem, MemoryList(MemoryFirst()), dispatch=dispatch)
    assert plan.status in ("feasible", "optimal")
    assert validate(problem, plan, simulate(problem, plan, dispatch), dispatch) == []


def tight(seed: int) -> Problem:
    """Ops with a tensor each, which an event of up to 3 ns keeps apart, under the lowest limit that is sure to work."""
    draw = np.random.default_rng(seed)
    n = int(draw.integers(4, 10))
    edges = [(u, v) for v in range(n) for u in range(v) if draw.random() < 0.3]
    problem = Problem.from_arrays(
        duration=draw.integers(0, 9, n),
        edges=edges,
        demand=draw.integers(0, 3, (n, 2)),
        capacity=[2, 2],
        streams=int(draw.integers(2, 5)),
        tensors=[(u, int(draw.integers(1, 9)), [v for w, v in edges if w == u]) for u in range(n)],
        workspace=draw.integers(0, 4, n),
        record_ns=int(draw.integers(1, 4)),
        gap_ns=int(draw.integers(0, 2)),
        host_issue_ns=int(draw.integers(0, 2)),
    )
    return replace(problem, memory_bytes=least_known(problem))


@pytest.mark.parametrize("dispatch", RULES)
def test_so_it_is_where_events_take_time_and_bytes_are_short(dispatch: Dispatch) -> None:
    fenced = 0
    for seed in range(100):
        problem = tight(seed)
        plan = msched.solve(problem, MemoryList(MemoryFirst()), dispatch=dispatch)
        assert plan.status in ("feasible", "optimal"), seed
        assert validate(problem, plan, simulate(problem, plan, dispatch), dispatch) == [], seed
        fenced += len(plan.fences) > 0
    assert fenced > 20  # else nothing was held back, and nothing shown
