"""What the random families share: their ops, and what holds for all of them."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from msched.errors import OptionError
from msched.graph import OpGraph
from msched.lowering import lower
from msched.networks import network
from msched.networks.random_work import draw, generator, tied

FAMILIES = ["erdos_renyi", "fork_join", "pipeline", "random_layered", "series_parallel", "stencil", "tree"]


def ops(graph: OpGraph) -> list[tuple[str, str, int | None, int]]:
    return [(o.name, o.kind, o.duration_ns, o.bytes_written) for o in graph.ops]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_seed_decides(family: str) -> None:
    assert network(family, seed=3) == network(family, seed=3)
    assert ops(network(family, seed=3)) != ops(network(family, seed=4))


@pytest.mark.parametrize("family", FAMILIES)
def test_ops_come_in_an_order_that_runs(family: str) -> None:
    edges = network(family).edges
    assert len(edges) > 0
    assert (edges[:, 0] < edges[:, 1]).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_every_op_writes_one_tensor_and_takes_time(family: str) -> None:
    graph = network(family)
    assert [t.producer for t in graph.tensors] == list(range(len(graph.ops)))
    assert all(t.bytes > 0 and not t.persistent for t in graph.tensors)
    assert all(t.output == (not t.consumers) for t in graph.tensors)
    assert all((o.duration_ns or 0) >= 1000 for o in graph.ops)


@pytest.mark.parametrize("family", FAMILIES)
def test_many_ops_leave_units_free_on_all_five_engines(family: str) -> None:
    stages = {"stages": 100} if family == "pipeline" else {}  # a stage has one kind of work for all micro-batches
    problem = lower(network(family, **stages), "atlas_800i_a2")
    assert problem.warnings == ()
    assert len(set(problem.engine.tolist())) == 5
    assert ((problem.demand / problem.capacity).max(axis=1) < 1).mean() > 0.5


@pytest.mark.parametrize("family", FAMILIES)
def test_mix_and_durations_are_passed_on(family: str) -> None:
    graph = network(family, mix={"vector": 1}, median_ns=7000, spread=0)
    assert {(o.kind, o.duration_ns) for o in graph.ops} == {("Add", 7000)}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"seed": -1}, "seed is -1; a whole number of at least 0"),
        ({"mix": {"quantum": 1}}, "mix has no class 'quantum'; weights of these are needed: matrix"),
        ({"median_ns": 0}, "median_ns is 0; a whole number of at least 1"),
        ({"spread": 4}, "spread is 4; a number from 0 to 3 is needed"),
        ({"spread": float("nan")}, "spread is nan"),
        ({"spread": "wide"}, "spread is 'wide'"),
    ],
)
def test_work_that_makes_no_sense(family: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        network(family, **parameters)


def test_durations_are_log_normal() -> None:
    # The logarithm of the durations has the mean log(median) and the spread as its standard deviation; their estimates
    # from n draws have the standard errors spread / sqrt(n) and spread / sqrt(2 n), of which five are allowed.
    n = 20_000
    logarithm = np.log([o.duration_ns or 0 for o in draw(generator(1), n, None, 10**6, 0.5)])
    assert logarithm.mean() == pytest.approx(math.log(10**6), abs=5 * 0.5 / math.sqrt(n))
    assert logarithm.std() == pytest.approx(0.5, abs=5 * 0.5 / math.sqrt(2 * n))


def test_no_spread_means_the_median_to_the_nanosecond() -> None:
    for median_ns in (1000, 3001, 50_000, 999_999_937):
        assert {o.duration_ns for o in draw(generator(0), 20, None, median_ns, 0)} == {median_ns}
    assert {o.duration_ns for o in draw(generator(0), 20, None, 10, 0)} == {1000}  # no task is shorter


def test_spread_changes_nothing_but_durations() -> None:
    one, other = draw(generator(5), 200, None, 50_000, 0), draw(generator(5), 200, None, 50_000, 2)
    assert [(o.kind, o.bytes_read, o.matmul) for o in one] == [(o.kind, o.bytes_read, o.matmul) for o in other]
    assert [o.duration_ns for o in one] != [o.duration_ns for o in other]


def test_the_longest_durations_still_fit() -> None:
    graph = tied("g", draw(generator(0), 10_000, None, 2**31 - 1, 3), np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert max(o.duration_ns or 0 for o in graph.ops) < 2**60


def test_the_sizes_of_each_class_of_work() -> None:
    drawn = draw(generator(2), 5000, None, 50_000, 0.8)
    assert set(Counter(o.kind for o in drawn)) == {
        "MatMul", "Add", "NonMaxSuppression", "ResizeBilinear", "HcomAllReduce"
    }  # fmt: skip
    for o in drawn:
        if o.matmul is not None:
            blocks = (o.matmul.m // 128) * (o.matmul.n // 256)
            assert (o.matmul.m % 128, o.matmul.n % 256) == (0, 0)
            assert 1 <= blocks <= 32
            assert o.flops == 2 * o.matmul.m * o.matmul.n * o.matmul.k
        else:
            blocks = (o.bytes_read + o.bytes_written) // 32768
            assert 1 <= blocks <= (4 if o.kind == "NonMaxSuppression" else 64)
        assert (o.kind == "HcomAllReduce") == (o.participants == 8) == (o.communicator == "world")


def test_a_dependency_given_twice_is_one_reader() -> None:
    graph = tied("g", draw(generator(0), 3, None, 1000, 0), np.array([0, 0, 0]), np.array([2, 1, 2]))
    assert [t.consumers for t in graph.tensors] == [(1, 2), (), ()]
    assert [t.output for t in graph.tensors] == [False, True, True]
