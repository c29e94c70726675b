"""lower: from a graph and a device to the arrays of a problem."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from msched.config import options
from msched.errors import MschedError, OptionError, ProblemError
from msched.graph import Matmul, Op, OpGraph, Tensor
from msched.lowering import lower
from msched.networks import network, networks
from msched.problem import Problem
from tests.lowering.devices import toy

MATMUL = Op(name="matmul", kind="MatMul", matmul=Matmul(batch=1, m=256, n=256, k=100), bytes_read=30, bytes_written=30)
RESHAPE = Op(name="reshape", kind="Reshape")
ATTENTION = Op(name="attention", kind="Attention", matmul=Matmul(batch=2, m=1, n=64, k=64), bytes_read=300)
REDUCE = Op(name="reduce", kind="AllReduce", participants=4, payload_bytes=1000, communicator="tp")
ADD = Op(name="add", kind="Add", bytes_read=1500, bytes_written=750, workspace_bytes=100)


def chain(*ops: Op, **fields: Any) -> OpGraph:
    """Each op consumes the tensor of 100 bytes that the one before it yields; the last tensor is an output."""
    last = len(ops) - 1
    tensors = [
        Tensor(name=f"t{i}", bytes=100, producer=i, consumers=(i + 1,) if i < last else (), output=i == last)
        for i in range(len(ops))
    ]
    return OpGraph("net", ops, tuple(tensors), **fields)


def test_a_network_on_the_toy() -> None:
    problem = lower(chain(MATMUL, RESHAPE, ATTENTION, REDUCE, ADD), toy())
    assert problem.name == "net"
    assert problem.op_names == ("matmul", "attention", "reduce", "add")
    assert problem.engine_names == ("cube", "vector", "cpu", "link")
    assert problem.capacity.tolist() == [4, 6, 2, 1]
    # A product of two tiles, 100 ns deep. Two heads of 16384 flops, 300 bytes over two cubes. A ring all-reduce of
    # 6 x 100 + 150. 2250 bytes in three blocks at 30 a ns.
    assert problem.duration.tolist() == [100, 15, 750, 75]
    assert problem.demand.tolist() == [[2, 0, 0, 0], [2, 4, 0, 0], [0, 0, 0, 1], [0, 3, 0, 0]]
    assert problem.engine.tolist() == [0, 0, 3, 1]
    assert problem.edges.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert problem.delay.tolist() == [0, 0, 0]
    assert problem.communication.tolist() == [False, False, False, True]
    assert problem.warnings == ()


def test_sizes_are_rounded_up_to_the_alignment() -> None:
    problem = lower(chain(MATMUL, RESHAPE, ADD), toy())
    assert problem.tensor_bytes.tolist() == [128, 128]  # 100 at an alignment of 64; the view has no buffer
    assert problem.tensor_producer.tolist() == [0, 1]
    assert problem.tensor_consumer_start.tolist() == [0, 1, 1]
    assert problem.tensor_consumer.tolist() == [1]
    assert problem.tensor_output.tolist() == [False, True]
    assert problem.workspace.tolist() == [0, 128]


def test_weights_stay_resident() -> None:
    weight = Tensor(name="w", bytes=64, consumers=(0,), persistent=True)
    problem = lower(OpGraph("net", (MATMUL,), (weight,)), toy())
    assert (problem.tensor_producer.tolist(), problem.tensor_persistent.tolist()) == ([-1], [True])


def test_limits_and_costs_come_from_the_device() -> None:
    problem = lower(chain(ADD), toy())
    assert (problem.streams, problem.tasks_per_stream, problem.events) == (8, 50, 20)
    assert (problem.gap_ns, problem.record_ns, problem.wait_ns, problem.host_issue_ns) == (1, 2, 3, 4)
    assert problem.engine_streams.tolist() == [-1, -1, -1, 1]
    assert problem.memory_bytes is None
    assert problem.binding == "free"


def test_options_override_the_device() -> None:
    problem = lower(chain(ADD), toy(), streams=2, binding="engine", memory_bytes="device")
    assert (problem.streams, problem.binding, problem.memory_bytes) == (2, "engine", 100_000)
    assert lower(chain(ADD), toy(), memory_bytes=5).memory_bytes == 5


def test_labels_and_communicators_are_numbered_by_first_appearance() -> None:
    ops = [
        Op(name=f"c{i}", kind="AllReduce", duration_ns=9, label=label, communicator=group)
        for i, (label, group) in enumerate([(None, "z"), ("b", "a"), ("a", None), ("b", "z")])
    ]
    problem = lower(OpGraph("net", tuple(ops)), toy())
    assert problem.label.tolist() == [-1, 0, 1, 0]
    assert problem.communicator.tolist() == [0, 1, -1, 0]


def test_collectives_in_aiv_mode_compete_with_vector_work() -> None:
    plain = lower(chain(REDUCE, ADD), toy())
    shared = lower(chain(REDUCE, ADD), toy(), collective="aiv")
    assert plain.demand[0].tolist() == [0, 0, 0, 1]
    assert shared.demand.tolist() == [[0, 2, 0, 1], [0, 3, 0, 0]]  # a third of 6 cores
    assert shared.engine.tolist() == plain.engine.tolist()
    assert shared.duration.tolist() == plain.duration.tolist()
    assert shared.warnings == ("collectives hold 2 of 6 units of 'vector': assumed (aiv_share)",)
    assert lower(chain(REDUCE), toy(), collective="aiv", aiv_share=1.0).demand[0, 1] == 6
    assert lower(chain(REDUCE), toy(), collective="aiv", aiv_share=0.01).demand[0, 1] == 1


def test_the_default_share_is_the_16_of_48_cores_of_the_published_case() -> None:
    problem = lower(chain(REDUCE), "atlas_800i_a2", collective="aiv")
    assert problem.demand[0].tolist() == [0, 16, 0, 0, 1]


def test_aiv_mode_says_nothing_without_collectives() -> None:
    assert lower(chain(ADD), toy(), collective="aiv") == lower(chain(ADD), toy())


def test_a_measured_duration_wins_over_the_model() -> None:
    measured = Op(name="m", kind="MatMul", duration_ns=7, matmul=Matmul(batch=1, m=256, n=256, k=100))
    problem = lower(chain(measured), toy())
    assert problem.duration.tolist() == [7]
    assert problem.demand[0].tolist() == [2, 0, 0, 0]


def test_a_view_that_was_measured_to_take_time_stays() -> None:
    dropout = Op(name="dropout", kind="Dropout", duration_ns=7)
    problem = lower(chain(MATMUL, dropout, ADD), toy())
    assert problem.op_names == ("matmul", "dropout", "add")
    assert problem.duration.tolist() == [100, 7, 75]
    assert problem.demand[1].tolist() == [0, 1, 0, 0]


def test_a_user_moves_a_kind() -> None:
    problem = lower(chain(MATMUL, ADD), toy(), placement={"Add": "control", "MatMul": {"vector": 3}})
    assert problem.engine.tolist() == [1, 2]
    # 256 x 256 is two tiles, and 6 vector cores run two blocks of three.
    assert problem.demand.tolist() == [[0, 6, 0, 0], [0, 0, 1, 0]]


def test_every_assumption_is_a_warning_behind_those_of_the_graph() -> None:
    ops = (
        Op(name="mystery", kind="Frobnicate", bytes_read=1),
        Op(name="implied", kind="Add"),
        Op(name="timed", kind="Add", duration_ns=9),
        Op(name="bare", kind="Add"),
    )
    tensor = Tensor(name="t", bytes=1000, producer=0, consumers=(1,))
    problem = lower(OpGraph("net", ops, (tensor,), warnings=("from the reader",)), toy())
    assert problem.warnings[0] == "from the reader"
    starts = ["kind 'Frobnicate' (1 ops)", "1 ops say nothing of the bytes", "1 ops say nothing of their size"]
    for warning, start in zip(problem.warnings[1:], [*starts, "1 ops say neither duration nor size"], strict=True):
        assert warning.startswith(start)
    for warning, name in zip(problem.warnings[2:], ("implied", "timed", "bare"), strict=True):
        assert warning.endswith(f"the first is {name!r}")
    # 1000 bytes in one block at 10 a ns; the others as measured, or the shortest task on the whole engine.
    assert problem.duration.tolist() == [5, 100, 9, 5]
    assert problem.demand[:, 1].tolist() == [1, 1, 6, 6]


def test_a_wide_barrier_stays_as_an_op_without_time_or_units() -> None:
    # 40 x 40 dependencies, or 40 into the NoOp and 40 out of it; it is bound to the engine of the first op before it
    ops = [Op(name="all", kind="NoOp"), *(Op(name=f"add{v}", kind="Add", bytes_read=1500) for v in range(80))]
    control = [*((v, 0) for v in range(1, 41)), *((0, v) for v in range(41, 81))]
    problem = lower(OpGraph("net", tuple(ops), (), tuple(control)), toy(), binding="engine")
    assert (problem.n, len(problem.edges)) == (81, 80)
    assert (problem.duration[0], problem.demand[0].tolist(), problem.engine[0]) == (0, [0, 0, 0, 0], 1)
    assert problem.duration[1:].tolist() == [75] * 80  # two blocks of 1500 bytes, at 2 x 10 a ns
    (warning,) = problem.warnings
    assert warning.startswith("1 ops stay as barriers of no duration, each in place of more than 1024 dependencies")
    assert warning.endswith("the first is 'all'")


def test_an_empty_graph_and_a_graph_that_folds_away_are_empty_problems() -> None:
    for graph in (OpGraph("none", ()), chain(RESHAPE)):
        problem = lower(graph, toy())
        assert (problem.n, problem.demand.shape) == (0, (0, 4))


def test_lowering_twice_gives_the_same_problem() -> None:
    graph = chain(MATMUL, RESHAPE, ATTENTION, REDUCE, ADD)
    first, second = lower(graph, "ascend_910b3"), lower(graph, "ascend_910b3")
    assert first.to_json() == second.to_json()
    assert Problem.from_json(first.to_json()) == first


@pytest.mark.parametrize(
    ("options_", "error", "message"),
    [
        ({"collective": "rdma"}, OptionError, "collective is 'rdma'; it must be one of: hccl, aiv"),
        ({"collective": "aiv", "aiv_share": 0}, OptionError, "aiv_share is 0"),
        ({"collective": "aiv", "aiv_share": "half"}, OptionError, "aiv_share is 'half'"),
        ({"streams": 9}, OptionError, "streams is 9, but device 'toy' has 8"),
        ({"streams": 0}, ProblemError, "streams is 0"),
        ({"binding": "loose"}, ProblemError, "binding is 'loose'"),
        ({"memory_bytes": "all"}, OptionError, "memory_bytes is 'all'"),
        ({"memory_bytes": -1}, ProblemError, "memory_bytes is -1"),
        ({"placement": {"Add": "tensor"}}, OptionError, "'tensor' is no class of work"),
        ({"placement": ["Add"]}, OptionError, "placement"),
    ],
)
def test_options_that_nothing_understands_are_named(options_: Any, error: type[MschedError], message: str) -> None:
    with pytest.raises(error, match=message):
        lower(chain(ADD), toy(), **options_)


def test_an_op_that_would_outlast_the_clock_is_named() -> None:
    endless = Op(name="endless", kind="MatMul", matmul=Matmul(batch=1, m=1, n=1, k=2**80))
    with pytest.raises(ProblemError, match=r"op 'endless' \(MatMul\) would take .* on device 'toy'"):
        lower(chain(endless), toy())


def test_an_unknown_device_is_named_with_those_that_are_known() -> None:
    with pytest.raises(OptionError, match=r"'b200' is not known; there are: a100, ascend_310p3"):
        lower(chain(ADD), "b200")


def test_aiv_mode_needs_a_place_for_vector_work() -> None:
    device = toy(placement={"collective": {"link": 1}})
    with pytest.raises(OptionError, match="'toy' has no place for vector work"):
        lower(chain(REDUCE), device, collective="aiv")


@pytest.mark.parametrize("device", options("device"))
def test_every_class_of_work_lowers_on_every_device(device: str) -> None:
    ops = [MATMUL, ATTENTION, REDUCE, ADD]
    ops += [
        Op(name=kind, kind=kind, bytes_read=10**6, bytes_written=10**6) for kind in ("Shape", "DecodeJpeg", "Memcpy")
    ]
    problem = lower(chain(*ops), device)
    assert problem.n == 7
    assert (problem.duration >= 1000).all()  # no device runs a task in less than a microsecond
    assert (problem.demand.max(axis=1) >= 1).all()
    assert (problem.demand[np.arange(7), problem.engine] >= 1).all()
    assert problem.warnings == ()


@pytest.mark.parametrize("device", options("device"))
@pytest.mark.parametrize("name", list(networks()))
def test_every_generated_network_lowers_on_every_device(name: str, device: str) -> None:
    problem = lower(network(name), device)
    assert problem.n > 0
    assert not [w for w in problem.warnings if "in no table" in w]
    assert (problem.demand[np.arange(problem.n), problem.engine] >= 1).all()


@pytest.mark.parametrize(("ranks", "warns"), [(8, False), (16, True)])
def test_collectives_beyond_the_chips_that_the_link_joins_are_a_warning(ranks: int, warns: bool) -> None:
    reduce = Op(name="reduce", kind="AllReduce", participants=ranks, payload_bytes=1000)
    measured = Op(name="measured", kind="AllReduce", participants=99, payload_bytes=1000, duration_ns=7)
    warnings = lower(OpGraph("pair", (reduce, measured)), "atlas_800i_a2").warnings
    said = (
        "1 collectives join up to 16 chips, but the link of device 'atlas_800i_a2' joins 8: "
        "priced as if it joined all, so too cheap; the first is 'reduce'"
    )
    assert warnings == ((said,) if warns else ())


def test_weights_that_do_not_fit_are_a_warning_where_there_is_no_limit() -> None:
    # 68 719 476 736 bytes of device memory
    ops = (Op(name="add", kind="Add", bytes_read=8),)
    for size, fits in ((68_719_476_736, True), (68_719_476_737, False)):
        weight = Tensor(name="w", bytes=size, producer=None, consumers=(0,), persistent=True)
        graph = OpGraph("large", ops, (weight,))
        said = [w for w in lower(graph, "atlas_800i_a2").warnings if "they do not fit" in w]
        assert len(said) == (not fits)
        # with a limit it is the solver that refuses
        assert not lower(graph, "atlas_800i_a2", memory_bytes="device").warnings


def test_look_ups_on_the_host_go_where_the_device_says_or_else_to_control_work() -> None:
    # 6,400,000 bytes over the bus of an H200, of 64 bytes a ns
    graph = OpGraph("host", (Op(name="rows", kind="HostEmbeddingBag", bytes_read=6_000_000, bytes_written=400_000),))
    for device, engine in (("h200", "copy"), ("atlas_800i_a2", "ai_cpu")):
        problem = lower(graph, device)
        assert problem.engine_names[problem.engine[0]] == engine
    assert lower(graph, "h200").duration.tolist() == [100_000]
    assert "host" not in toy().placement
    problem = lower(graph, toy())
    assert problem.engine.tolist() == [problem.engine_names.index(next(iter(toy().placement["control"])))]
