"""Blevel and Heft: by hand, against plain references, and against what is proven of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msched
from msched import simulator
from msched.errors import OptionError
from msched.problem import Problem
from msched.solvers.base import Budget, Dispatch, UnassignableError
from msched.solvers.joint.blevel import Blevel
from msched.solvers.joint.heft import Heft
from msched.solvers.limits import unbindable
from msched.solvers.securing import keep_communicators_in_order
from msched.solvers.stream_pool import stream_pool
from tests.reference import list_scheduling
from tests.strategies import problems

SOLVERS: list[Blevel | Heft] = [Blevel(), Heft()]
ONE_CHOICE: dict[str, Blevel | Heft] = {"blevel": Blevel(narrower=False), "heft": Heft(narrower=False)}


@st.composite
def collective_problems(draw: st.DrawFn, *, host: bool = True) -> Problem:
    """Problems with labels, and with collectives of up to two communicators."""
    problem = draw(problems(labels=True, modes=False, tensors=False, host=host))
    groups = st.lists(st.sampled_from([-1, -1, 0, 1]), min_size=problem.n, max_size=problem.n)
    return replace(problem, communicator=np.array(draw(groups)))


def _allowed(problem: Problem) -> list[list[int]]:
    pool = stream_pool(problem, problem.streams or 32)
    return [list(range(pool.first[p], pool.first[p + 1])) for p in pool.of_op]


def _numbered(streams: list[int]) -> list[int]:
    return [sorted(set(streams)).index(s) for s in streams]


@given(collective_problems(host=False))
def test_blevel_agrees_with_a_plain_one(problem: Problem) -> None:
    if unbindable(problem):
        with pytest.raises(UnassignableError):
            Blevel().solve(problem, Budget())
        return
    plan = ONE_CHOICE["blevel"].solve(problem, Budget())
    start, stream = list_scheduling.by_level(problem, _allowed(problem))
    assert plan.predicted_start_ns is not None
    assert (plan.predicted_start_ns.tolist(), plan.stream.tolist()) == (start, _numbered(stream))


@given(collective_problems(host=False))
def test_heft_agrees_with_a_plain_one(problem: Problem) -> None:
    if unbindable(problem):
        with pytest.raises(UnassignableError):
            Heft().solve(problem, Budget())
        return
    plan = ONE_CHOICE["heft"].solve(problem, Budget())
    start, stream = list_scheduling.by_earliest_finish(problem, _allowed(problem))
    assert plan.predicted_start_ns is not None
    assert (plan.predicted_start_ns.tolist(), plan.stream.tolist()) == (start, _numbered(stream))


@pytest.mark.parametrize("solver", SOLVERS)
@given(problem=collective_problems())
def test_planned_dispatch_keeps_every_prediction(solver: Blevel | Heft, problem: Problem) -> None:
    if unbindable(problem):
        return
    plan = keep_communicators_in_order(problem, solver.solve(problem, Budget()))
    timeline = simulator.simulate(problem, plan, "planned")
    assert plan.predicted_start_ns is not None
    assert (timeline.start_ns <= plan.predicted_start_ns).all()
    assert plan.predicted_makespan_ns == (plan.predicted_start_ns + problem.duration).max()


@pytest.mark.parametrize("solver", SOLVERS)
@given(data=st.data())
def test_unit_ops_of_an_in_tree_take_the_least_time_that_hu_proves(solver: Blevel | Heft, data: st.DataObject) -> None:
    # Hu 1961: ops above level g must be through before the last g steps, so no schedule of k machines is shorter than
    # ceil(ops above level g / k) + g for any g; and highest level first reaches the largest of these on an in-tree.
    n = data.draw(st.integers(1, 30))
    parent = [data.draw(st.integers(-1, v - 1)) for v in range(n)]  # -1: a root of the forest
    k = data.draw(st.integers(1, 4))
    level = [1] * n
    for v in range(n):
        level[v] = 1 + (level[parent[v]] if parent[v] >= 0 else 0)
    least = max(-(-sum(other > g for other in level) // k) + g for g in range(max(level)))
    edges = [(v, parent[v]) for v in range(n) if parent[v] >= 0]
    plan = solver.solve(Problem.from_arrays(duration=[1] * n, edges=edges, streams=k), Budget())
    assert plan.predicted_makespan_ns == least


def _fork(sync: int) -> Problem:
    return Problem.from_arrays(duration=[10, 5, 5], edges=[(0, 1), (0, 2)], streams=2, record_ns=1, wait_ns=sync - 1)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_second_branch_pays_the_event(solver: Blevel | Heft) -> None:
    # op1 follows on stream 0 at 10. op2 would start there at 15, on stream 1 at 10 + 3.
    plan = solver.solve(_fork(3), Budget())
    assert plan.predicted_start_ns is not None
    assert plan.predicted_start_ns.tolist() == [0, 10, 13]
    assert (plan.stream.tolist(), plan.predicted_makespan_ns) == ([0, 0, 1], 18)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_dear_event_keeps_the_branches_together(solver: Blevel | Heft) -> None:
    # On stream 1 op2 could start at 10 + 20 only; stream 0 is free at 15.
    plan = solver.solve(_fork(20), Budget())
    assert (plan.stream.tolist(), plan.predicted_makespan_ns) == ([0, 0, 0], 20)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_join_stays_with_its_last_input(solver: Blevel | Heft) -> None:
    # op0 [0, 9) on stream 0, op1 [0, 6) on stream 1, both into op2. On stream 0: max(9, 6 + 2) = 9; on 1: 9 + 2.
    problem = Problem.from_arrays(duration=[9, 6, 1], edges=[(0, 2), (1, 2)], streams=2, wait_ns=2)
    plan = solver.solve(problem, Budget())
    assert (plan.stream.tolist(), plan.predicted_makespan_ns) == ([0, 1, 0], 10)


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_engine_serves_one_after_the_other(solver: Blevel | Heft) -> None:
    # Two ops of a unary engine and one without: 4 + 4 on the engine, 3 beside it. Streams would allow all at once.
    problem = Problem.from_arrays(duration=[4, 4, 3], demand=[[1], [1], [0]], capacity=[1], streams=3)
    plan = solver.solve(problem, Budget())
    assert plan.predicted_start_ns is not None
    assert plan.predicted_start_ns.tolist() == [0, 4, 0]


@pytest.mark.parametrize("solver", SOLVERS)
def test_collectives_of_one_communicator_leave_room_for_the_fence(solver: Blevel | Heft) -> None:
    # No engine limits the two collectives, but a fence between their streams costs 1 + 2 after the first ends at 5.
    problem = Problem.from_arrays(duration=[5, 4], communicator=[7, 7], streams=2, record_ns=1, wait_ns=2)
    plan = solver.solve(problem, Budget())
    assert plan.predicted_start_ns is not None
    assert plan.predicted_start_ns.tolist() == [0, 8]


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_host_puts_off_what_it_issues_late(solver: Blevel | Heft) -> None:
    # Three ops of 10 on three streams, issued at 4, 8 and 12.
    plan = solver.solve(Problem.from_arrays(duration=[10] * 3, streams=3, host_issue_ns=4), Budget())
    assert plan.predicted_start_ns is not None
    assert plan.predicted_start_ns.tolist() == [4, 8, 12]


def test_heft_inserts_into_an_opening() -> None:
    # Upward ranks: a 10 + 5, q 6, b 5, c 3. a runs [0, 10) on stream 0 and q [0, 6) on 1. b shares q's label, so it
    # runs [10, 15) on stream 1 and leaves it idle in [6, 10): c fits there at 6, and not before 10 anywhere else.
    problem = Problem.from_arrays(duration=[10, 6, 5, 3], edges=[(0, 2)], label=[-1, 0, 0, -1], streams=2)
    plan = Heft().solve(problem, Budget())
    assert plan.predicted_start_ns is not None
    assert plan.predicted_start_ns.tolist() == [0, 0, 10, 6]
    assert (plan.stream.tolist(), plan.order.tolist()) == ([0, 1, 1, 1], [0, 1, 3, 2])


def test_heft_as_published_knows_no_engines_and_claims_nothing() -> None:
    # Two ops of a unary engine: they spread over two streams as if they could run together.
    problem = Problem.from_arrays(duration=[4, 4], demand=[[1], [1]], capacity=[1], streams=2)
    plan = Heft(engine_capacity=False).solve(problem, Budget())
    assert plan.stream.tolist() == [0, 1]
    assert (plan.predicted_start_ns, plan.predicted_makespan_ns) == (None, None)


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_op_of_no_duration_is_issued_before_what_starts_with_it(solver: Blevel | Heft) -> None:
    # op0 (5) and op1 (0) start at 0 on one stream. Issued after op0, op1 would have to wait for it.
    problem = Problem.from_arrays(duration=[5, 0, 6], edges=[(1, 2)], streams=1)
    plan = solver.solve(problem, Budget())
    assert plan.predicted_start_ns is not None
    assert plan.predicted_start_ns.tolist() == [6, 0, 0]
    assert plan.order.tolist() == [1, 2, 0]


def test_no_more_streams_than_the_parameter_where_the_problem_sets_no_limit() -> None:
    problem = Problem.from_arrays(duration=[1] * 5)
    assert [solver.solve(problem, Budget()).streams for solver in SOLVERS] == [5, 5]
    assert [s.solve(problem, Budget()).streams for s in (Blevel(max_streams=2), Heft(max_streams=2))] == [2, 2]
    assert [s.solve(replace(problem, streams=3), Budget()).streams for s in (Blevel(2), Heft(max_streams=2))] == [3, 3]


def test_labels_that_events_make_dear_stay_together() -> None:
    # One label has op0 and op2, the other op1 and op3. op0 and op1 can start at once, on streams of their own; but then
    # each step of the chain op0, op3, op2 costs an event of 10. On one stream all take 4 x 1.
    problem = Problem.from_arrays(
        duration=[1] * 4, edges=[(0, 3), (3, 2)], label=[0, 1, 0, 1], streams=2, record_ns=5, wait_ns=5
    )
    assert [s.solve(problem, Budget()).predicted_makespan_ns for s in SOLVERS] == [4, 4]
    assert ONE_CHOICE["blevel"].solve(problem, Budget()).predicted_makespan_ns == 23  # 3 x 1 + 2 x 10


@pytest.mark.parametrize("solver", SOLVERS)
def test_labels_for_which_the_first_op_chooses_badly_go_apart(solver: Blevel | Heft) -> None:
    # op0 (4) into the collective op1 (6) and into op2 (6), both into op3 (5); an event costs 1. op1 starts at 4 behind
    # op0 and so takes the label of collectives to stream 0: 4 + 6 + 6 + 5 = 21. On a stream of their own it runs
    # [5, 11), op2 [4, 10), op3 from 12 to 17.
    problem = Problem.from_arrays(
        duration=[4, 6, 6, 5], edges=[(0, 1), (0, 2), (1, 3), (2, 3)], label=[0, 1, 0, 0], streams=2, wait_ns=1
    )
    assert solver.solve(problem, Budget()).predicted_makespan_ns == 17


@pytest.mark.parametrize("solver", SOLVERS)
@settings(deadline=None)
@given(problem=collective_problems(), dispatch=st.sampled_from(["arrival", "planned", "greedy"]))
def test_more_freedom_is_never_worse(solver: Blevel | Heft, problem: Problem, dispatch: Dispatch) -> None:
    # A single stream, and a stream an engine, are choices that a free problem has.
    free = replace(problem, binding="free", streams=None, engine_streams=np.full(problem.capacity.size, -1))
    made = simulator.simulate(free, msched.solve(free, solver, dispatch=dispatch), dispatch).makespan_ns
    one = replace(solver, narrower=False)
    single = replace(free, streams=1)
    assert made <= simulator.simulate(single, msched.solve(single, one, dispatch=dispatch), dispatch).makespan_ns
    bound = replace(free, binding="engine", streams=np.unique(free.engine).size)
    if not unbindable(bound):
        apart = msched.solve(bound, one, dispatch=dispatch)
        assert made <= simulator.simulate(bound, apart, dispatch).makespan_ns


def test_parameters_out_of_range_are_named() -> None:
    for solver in (Blevel, Heft):
        with pytest.raises(OptionError, match="max_streams is 0; it must be at least 1"):
            solver(max_streams=0)
        with pytest.raises(OptionError, match="narrower is 7; True or False is needed"):
            solver(narrower=7)  # type: ignore[arg-type]


@pytest.mark.parametrize("solver", SOLVERS)
def test_nothing_to_schedule(solver: Blevel | Heft) -> None:
    plan = solver.solve(Problem.from_arrays(duration=[], streams=2), Budget())
    assert (plan.order.size, plan.predicted_makespan_ns) == (0, 0)
