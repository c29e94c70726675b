"""Pricing: durations and blocks worked out by hand from the figures of the device."""

import pytest

from msched.config import load
from msched.device import device_from
from msched.errors import ProblemError
from msched.graph import Matmul, Op
from msched.lowering.placement import Place
from msched.lowering.pricing import Price, collective_ns, lane_of, price
from tests.lowering.devices import TOY, toy

CUBE = lane_of(Place("matrix", (("cube", 1),)), toy())
VECTOR = lane_of(Place("vector", (("vector", 1),)), toy())
MIX = lane_of(Place("attention", (("cube", 1), ("vector", 2))), toy())


def product(batch: int, m: int, n: int, k: int) -> Op:
    return Op(name="m", kind="MatMul", matmul=Matmul(batch=batch, m=m, n=n, k=k))


@pytest.mark.parametrize(
    ("op", "moved", "duration", "blocks"),
    [
        # A tile of depth k takes k ns on one of the 4 cubes.
        (product(1, 128, 256, 700), 0, 700, 1),  # one tile
        (product(1, 300, 500, 1000), 6000, 2000, 4),  # 3 x 2 tiles: two waves on four cubes
        (product(1, 512, 256, 1000), 0, 1000, 4),  # exactly one wave
        (product(5, 1, 1, 1000), 0, 2000, 4),  # one padded tile a batch: five on four cubes
        # Four cubes could move 40 bytes a ns, the memory gives 30: 600000 / 30.
        (product(1, 512, 256, 1000), 600_000, 20_000, 4),
        # Two cubes move 20 bytes a ns, less than the memory: 600000 / 20.
        (product(1, 256, 256, 1000), 600_000, 30_000, 2),
        (product(1, 1, 1, 1), 6, 5, 1),  # 1 ns of arithmetic, 1 ns of traffic, floor of 5
    ],
)
def test_a_matrix_product_on_the_toy(op: Op, moved: int, duration: int, blocks: int) -> None:
    assert price(op, CUBE, moved, 0) == Price(duration, blocks)


@pytest.mark.parametrize(
    ("read", "written", "flops", "duration", "blocks"),
    [
        (2000, 500, 0, 84, 3),  # 2500 bytes in 3 blocks; 3 cores could move 30 a ns, as the memory: ceil(83.3)
        (1000, 500, 0, 75, 2),  # 2 blocks move 20 a ns
        (2000, 500, 90_000, 300, 3),  # 90000 flops on 3 cores of 100
        (100_000, 0, 600_000, 3334, 6),  # 6 cores: 1000 ns of arithmetic, 100000 / 30 of traffic
        (1, 0, 0, 5, 1),  # the floor
    ],
)
def test_elementwise_work_on_the_toy(read: int, written: int, flops: int, duration: int, blocks: int) -> None:
    op = Op(name="v", kind="Add", flops=flops)
    assert price(op, VECTOR, read, written) == Price(duration, blocks)


def test_attention_has_a_block_for_each_head_and_tile_of_rows() -> None:
    # Heads 2, 200 queries in 2 tiles of rows: 4 blocks, but 6 vector cores let only 3 run at once: 2 waves. All do
    # 4 x 2 x 200 x 1024 x 64 = 104857600 flops, a block 26214400: 400 ns at 65536 a ns, twice.
    op = Op(name="a", kind="Attention", matmul=Matmul(batch=2, m=200, n=1024, k=64))
    assert price(op, MIX, 0, 0) == Price(800, 3)


def test_attention_takes_its_flops_from_the_op_where_it_gives_them() -> None:
    # A causal mask halves the flops of the case above.
    op = Op(name="a", kind="Attention", flops=52_428_800, matmul=Matmul(batch=2, m=200, n=1024, k=64))
    assert price(op, MIX, 0, 0).duration_ns == 400


def test_a_matrix_product_on_the_910b() -> None:
    # 4096 cubed: 32 x 16 = 512 tiles on 24 cores, 22 waves. A tile is 2 x 128 x 256 x 4096 = 2^28 flops and a core does
    # 1.8 x 2^13 a ns: 2^15 / 1.8 = 18204.44 ns, 22 times. Memory: 3 x 32 MiB at 24 x 57.6 bytes a ns is 72819 ns.
    device = device_from(load("device", "atlas_800i_a2"))
    lane = lane_of(Place("matrix", (("ai_core", 1),)), device)
    assert price(product(1, 4096, 4096, 4096), lane, 2 * 2**25, 2**25) == Price(400_498, 24)


def test_a_vector_matrix_product_on_the_910b_is_bound_by_the_cores_it_fills() -> None:
    # 1 x 4096 by 4096 x 4096: 16 tiles, one wave of 2^15 / 1.8 = 18205 ns; 33570816 bytes over 16 x 57.6 = 921.6.
    device = device_from(load("device", "atlas_800i_a2"))
    lane = lane_of(Place("matrix", (("ai_core", 1),)), device)
    assert price(product(1, 1, 4096, 4096), lane, 33_562_624, 8192) == Price(36_427, 16)


def test_rates_are_the_decimals_of_the_file() -> None:
    # 57.6 has no exact binary form; 576 bytes at 57.6 a ns are 10 ns and not a bit more.
    engines = TOY["engines"] | {"vector": {"units": 1, "bytes_per_ns": 57.6}}
    memory = {"bytes": 1, "bytes_per_ns": 1000}
    device = toy(engines=engines, memory=memory, placement={"vector": {"vector": 1}}, task_floor_ns=0)
    lane = lane_of(Place("vector", (("vector", 1),)), device)
    assert price(Op(name="v", kind="Add"), lane, 576, 0).duration_ns == 10
    assert price(Op(name="v", kind="Add"), lane, 577, 0).duration_ns == 11


def test_a_measured_duration_wins_and_demand_still_comes_from_tiles() -> None:
    op = Op(name="m", kind="MatMul", duration_ns=3, matmul=Matmul(batch=1, m=256, n=256, k=10**6))
    assert price(op, CUBE, 10**6, 0) == Price(3, 2)
    assert price(Op(name="z", kind="Add", duration_ns=0), VECTOR, 1500, 0) == Price(0, 2)


def test_an_op_of_unknown_size_fills_its_engine_but_control_work_is_one_block() -> None:
    cpu = lane_of(Place("control", (("cpu", 1),)), toy())
    assert price(Op(name="v", kind="Add", duration_ns=7), VECTOR, 0, 0) == Price(7, 6, sized=False)
    assert price(Op(name="c", kind="Shape", duration_ns=7), cpu, 0, 0) == Price(7, 1, sized=False)
    assert price(Op(name="v", kind="Add", flops=6000), VECTOR, 0, 0) == Price(10, 6, sized=False)


@pytest.mark.parametrize(
    ("kind", "ranks", "payload", "duration"),
    [
        # alpha 100 ns, beta 10 bytes a ns. Four ranks and 1000 bytes: (p - 1) alpha = 300, (p - 1) / p S / beta = 75.
        ("AllGather", 4, 1000, 375),
        ("hcom_reduceScatter_", 4, 1000, 375),
        ("AllToAll", 4, 1000, 375),
        ("HcomAllReduce", 4, 1000, 750),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 4, 1000, 750),
        ("HcomBroadcast", 4, 1000, 650),  # 3 + 2 steps, twice 75
        ("HcomReduce", 4, 1000, 650),
        ("HcomGather", 4, 1000, 275),  # 2 steps
        ("HcomSend", 2, 1000, 200),
        ("Receive", 0, 1000, 200),
        ("Barrier", 4, 0, 200),
        ("AllReduce", 3, 100, 414),  # 4 steps; 2 x 2/3 x 10 = 13.33, rounded up
        ("HcomBroadcast", 5, 0, 700),  # 4 + ceil(lg 5) = 7 steps
        ("AllReduce", 1, 1000, 0),  # alone, nothing moves
    ],
)
def test_collectives_by_the_alpha_beta_model(kind: str, ranks: int, payload: int, duration: int) -> None:
    op = Op(name="c", kind=kind, participants=ranks, payload_bytes=payload)
    assert collective_ns(op, toy(), payload) == duration


def test_a_collective_is_one_block_and_not_shorter_than_a_task() -> None:
    lane = lane_of(Place("collective", (("link", 1),)), toy())
    assert price(Op(name="c", kind="AllReduce", participants=1, payload_bytes=8), lane, 0, 0) == Price(5, 1)
    assert price(Op(name="c", kind="AllReduce", duration_ns=2), lane, 0, 0) == Price(2, 1)
    # Without a payload its buffer is the larger of what it reads and writes: 375 ns as above.
    assert price(Op(name="c", kind="AllGather", participants=4), lane, 250, 1000) == Price(375, 1)


def test_a_collective_that_cannot_be_priced_is_refused() -> None:
    with pytest.raises(ProblemError, match=r"op 'c' \(AllReduce\) on device 'toy'.*participants"):
        collective_ns(Op(name="c", kind="AllReduce", payload_bytes=8), toy(), 8)
    with pytest.raises(ProblemError, match=r"op 'c' on device 'toy'.*'Frobnicate'.*allreduce"):
        collective_ns(Op(name="c", kind="Frobnicate", participants=2), toy(), 8)
