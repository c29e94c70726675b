"""Single, PerEngine, RoundRobin and their composition with an order, by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from msched.errors import OptionError
from msched.problem import Problem
from msched.solvers.assign.engine import PerEngine
from msched.solvers.assign.round_robin import RoundRobin
from msched.solvers.assign.single import Single
from msched.solvers.base import Budget, UnassignableError
from msched.solvers.compose import Compose
from msched.solvers.order.topological import Topological

# A chain 3 -> 2 -> 1 -> 0 and op4 by itself: sources by index, so the topological order is 3, 4, 2, 1, 0.
CHAIN = Problem.from_arrays(duration=[1] * 5, edges=[(3, 2), (2, 1), (1, 0)], engine=[2, 0, 2, 0, 2])


def test_single_uses_one_stream_in_topological_order() -> None:
    plan = Compose(Single(), Topological()).solve(CHAIN, Budget())
    assert (plan.stream.tolist(), plan.order.tolist()) == ([0] * 5, [3, 4, 2, 1, 0])
    assert (plan.predicted_start_ns, plan.predicted_makespan_ns, plan.fences.size) == (None, None, 0)


def test_single_cannot_serve_two_engines_that_bind_their_streams() -> None:
    with pytest.raises(UnassignableError, match="'op1' shares a stream with ops of another engine"):
        Single().assign(replace(CHAIN, binding="engine"), Budget())


def test_per_engine_numbers_the_engines_in_use() -> None:
    assert PerEngine().assign(CHAIN, Budget()).tolist() == [1, 0, 1, 0, 1]
    assert PerEngine().assign(replace(CHAIN, binding="engine"), Budget()).tolist() == [1, 0, 1, 0, 1]


def test_per_engine_takes_a_label_to_the_engine_of_its_first_op() -> None:
    # op3 (engine 0) comes before op2 (engine 2), both of label 4.
    labelled = replace(CHAIN, label=np.array([-1, -1, 4, 4, -1]))
    assert PerEngine().assign(labelled, Budget()).tolist() == [1, 0, 0, 0, 1]
    with pytest.raises(UnassignableError, match="'op2' shares a stream with ops of another engine"):
        PerEngine().assign(replace(labelled, binding="engine"), Budget())


def test_per_engine_needs_as_many_streams_as_engines() -> None:
    with pytest.raises(UnassignableError, match="2 streams, the limit is 1"):
        PerEngine().assign(replace(CHAIN, streams=1), Budget())


def test_round_robin_goes_by_topological_order() -> None:
    # 3, 4, 2, 1, 0 take the streams 0, 1, 0, 1, 0.
    assert RoundRobin(streams=2).assign(CHAIN, Budget()).tolist() == [0, 1, 0, 0, 1]


def test_round_robin_takes_as_many_streams_as_the_problem_allows_or_eight() -> None:
    free = Problem.from_arrays(duration=[1] * 20)
    assert RoundRobin().assign(replace(free, streams=3), Budget()).tolist() == [v % 3 for v in range(20)]
    assert RoundRobin().assign(free, Budget()).tolist() == [v % 8 for v in range(20)]


def test_round_robin_keeps_labels_together_and_numbers_without_holes() -> None:
    # 3, 4, 2, 1, 0 would take 0, 1, 2, 3, 0, but op4 follows its label's first op 3 to stream 0: 2 and 3 move up.
    labelled = replace(CHAIN, label=np.array([-1, -1, -1, 0, 0]))
    assert RoundRobin(streams=4).assign(labelled, Budget()).tolist() == [0, 2, 1, 0, 0]


def test_round_robin_takes_turns_within_each_engine() -> None:
    # Engine 0 has ops 3 and 1, engine 2 has 4, 2 and 0, all of time 1. Four streams: one each, then engine 2 (3/1),
    # then engine 0 (2/1 against 3/2). Within engine 0: 3 on 0, 1 on 1; within engine 2: 4 on 2, 2 on 3, 0 on 2.
    bound = replace(CHAIN, binding="engine")
    assert RoundRobin(streams=4).assign(bound, Budget()).tolist() == [2, 1, 3, 0, 2]


def test_round_robin_names_what_it_cannot_keep() -> None:
    with pytest.raises(UnassignableError, match="3 streams, the limit is 2"):
        RoundRobin(streams=3).assign(replace(CHAIN, streams=2), Budget())
    with pytest.raises(OptionError, match="streams is 0; at least 1"):
        RoundRobin(streams=0)
