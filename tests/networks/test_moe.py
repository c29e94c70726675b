"""Mixture of experts: sizes and operations against the published figures, structure and traffic by hand."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from msched.config import options
from msched.errors import OptionError
from msched.graph import Matmul, Op, OpGraph, Rows
from msched.lowering import lower
from msched.networks.moe import build
from msched.problem import Problem
from msched.topology import topological_order

# Billions of parameters, and those activated for a token, as published: DeepSeek-V2, appendix B.1 and section 3.1.2;
# DeepSeek-V3, section 4.2.
PUBLISHED = {"v2-lite": (15.7, 2.4), "v2": (236, 21), "v3": (671, 37)}
# The activated ones again, without embedding and norms: sums over the matrices of the released configurations. v2-lite:
# attention 2048 x 16 x 192 + 2048 x 576 + 512 x 16 x 256 + 16 x 128 x 2048 = 13.76 M a layer, 27 layers; dense layer
# 3 x 2048 x 10944 = 67.2 M; 26 times 8 experts of 3 x 2048 x 1408 = 8.65 M and a router of 2048 x 64; head 209.7 M:
# together 371.6 + 67.2 + 26 x 69.34 + 209.7 = 2,451 M. The others alike.
ACTIVATED = {"v2-lite": 2.451e9, "v2": 20.85e9, "v3": 36.62e9}
# layers, heads, channels of a head in a product with keys, in a product with values
ATTENTION = {"v2-lite": (27, 16, 192, 128), "v2": (60, 128, 192, 128), "v3": (61, 128, 192, 128)}
FED = "layer0.feed_forward"


def op(graph: OpGraph, name: str) -> Op:
    return next(o for o in graph.ops if o.name == name)


def edges(graph: OpGraph) -> set[tuple[str, str]]:
    names = [o.name for o in graph.ops]
    return {(names[u], names[v]) for u, v in graph.edges.tolist()}


def weights(graph: OpGraph) -> int:
    return sum(t.bytes for t in graph.tensors if t.name.endswith(".weight")) // 2


def layer(**parameters: Any) -> OpGraph:
    """One layer of V2 with experts; 160 experts, of which a token takes 6."""
    return build(**{"size": "v2", "layers": 1, "dense_layers": 0, "sequence": 64, "batch": 2} | parameters)


@pytest.mark.parametrize("size", PUBLISHED)
@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_weights_are_as_many_as_published(size: str, phase: str) -> None:
    graph = build(size=size, tensor_parallel=1, expert_parallel=1, phase=phase, sequence=1)
    assert weights(graph) == pytest.approx(PUBLISHED[size][0] * 1e9, rel=0.005)


@pytest.mark.parametrize("size", PUBLISHED)
@pytest.mark.parametrize("experts", [1, 8])
def test_a_forward_pass_takes_two_operations_an_activated_parameter_and_the_attention(size: str, experts: int) -> None:
    tokens = 2048
    graph = build(size=size, tensor_parallel=1, expert_parallel=experts, sequence=tokens, logits="all")
    layers, heads, key, value = ATTENTION[size]
    attention = layers * 2 * heads * (key + value) * tokens * (tokens + 1) / 2
    assert sum(o.flops for o in graph.ops) == pytest.approx(2 * ACTIVATED[size] * tokens + attention, rel=0.02)
    products = sum(o.flops for o in graph.ops if o.kind in ("MatMul", "GroupedMatMul"))
    # two digits are published: half a unit of the second is 2 % of 2.4 and 21, 1 % of 37
    assert products / (2 * tokens) == pytest.approx(PUBLISHED[size][1] * 1e9, rel=0.022)


def test_the_number_of_ops() -> None:
    # Attention: 2 norms beside the one in front of it with compressed queries, q_a q_b kv_a kv_b o, 2 rotations, cache
    # write, attention, addition make 13, 2 fewer with plain queries. Experts: norm, router, choice, permutation, two
    # products and SwiGLU, weighted sum, 5 ops of the shared ones, 2 additions make 15. A dense layer: norm, 3 products,
    # SiLU, product, addition make 7. Dispatch, sort, unsort, combine; 2 all-reduces a layer; at decode 1 product.
    one = {"tensor_parallel": 1, "expert_parallel": 1, "logits": "all"}
    assert len(build(size="v2", **one).ops) == 60 * 13 + 7 + 59 * 15 + 3
    assert len(build(size="v2-lite", **one).ops) == 27 * 11 + 7 + 26 * 15 + 3
    assert len(build(size="v3", tensor_parallel=8, expert_parallel=8).ops) == 61 * 15 + 3 * 7 + 58 * 19 + 6
    assert (
        len(build(size="v3", tensor_parallel=8, expert_parallel=8, phase="decode").ops) == 61 * 16 + 3 * 7 + 58 * 19 + 5
    )
    # 160 experts in 8 parts: 20 on a chip, of 3 ops each in place of 3
    single = build(size="v2", tensor_parallel=1, expert_parallel=8, logits="all", experts="single", layers=2)
    assert len(single.ops) == 2 * 13 + 7 + (19 - 3 + 20 * 3) + 3


def test_matrix_shapes_of_one_chip_of_prefill() -> None:
    graph = layer(tensor_parallel=4, expert_parallel=8)
    shapes = {o.name.split(".", 2)[-1]: o.matmul for o in graph.ops if o.matmul}
    # 128 tokens; 128 heads in 4 parts; 128 x 6 copies over 20 experts, rounded up; widths 1,536 and 2 x 1,536 in 4
    assert shapes == {
        "q_a_proj": Matmul(1, 128, 1536, 5120),
        "q_b_proj": Matmul(1, 128, 32 * 192, 1536),
        "kv_a_proj": Matmul(1, 128, 576, 5120),
        "kv_b_proj": Matmul(1, 128, 32 * 256, 512),
        "flash": Matmul(2 * 32, 64, 64, 192),
        "o_proj": Matmul(1, 128, 5120, 32 * 128),
        "router": Matmul(1, 128, 160, 5120),
        "experts.gate_up": Matmul(20, 39, 768, 5120),
        "experts.down": Matmul(20, 39, 5120, 384),
        "shared.gate_proj": Matmul(1, 128, 768, 5120),
        "shared.up_proj": Matmul(1, 128, 768, 5120),
        "shared.down_proj": Matmul(1, 128, 5120, 768),
        "lm_head": Matmul(1, 2, 25600, 5120),
    }
    assert op(graph, f"{FED}.experts.gate_up").flops == 2 * 768 * 5120 * 768  # the copies as they are
    # a causal mask leaves 64 x 65 / 2 pairs a head and request
    assert op(graph, "layer0.attention.flash").flops == 2 * 32 * 2 * (192 + 128) * 2080


def test_decoding_works_on_the_latent_cache() -> None:
    graph = layer(tensor_parallel=4, expert_parallel=8, phase="decode", batch=3, sequence=99)
    shapes = {o.name.rsplit(".", 1)[-1]: o.matmul for o in graph.ops if o.matmul and ".attention." in o.name}
    assert shapes["q_absorb"] == Matmul(32, 3, 512, 128)
    assert shapes["flash"] == Matmul(3, 32, 100, 576)
    assert shapes["v_up"] == Matmul(32, 3, 128, 512)
    assert "kv_b_proj" not in shapes
    flash = op(graph, "layer0.attention.flash")
    # 32 heads of 3 requests against 100 latents: 576 channels of keys, 512 of values
    assert flash.flops == 3 * 100 * 32 * 2 * (576 + 512)
    # absorbed queries of 512, rotated ones of 64, and the cache once for all heads
    assert flash.bytes_read == 2 * (3 * 32 * 576 + 3 * 100 * 576)
    assert {("layer0.attention.latent_cache.write", "layer0.attention.flash")} <= edges(graph)


def test_few_tokens_meet_few_experts() -> None:
    graph = layer(tensor_parallel=1, expert_parallel=8, phase="decode", batch=2)
    # 2 x 6 copies meet 12 of the 20 experts of the chip, one each, and read the weights of no other
    product = op(graph, f"{FED}.experts.gate_up")
    assert product.matmul == Matmul(12, 1, 3072, 5120)
    assert product.bytes_read == 2 * (12 * 5120 + 12 * 5120 * 3072)
    weight = next(t for t in graph.tensors if t.name == f"{FED}.experts.gate_up.weight")
    assert weight.bytes == 2 * 20 * 5120 * 3072


def test_experts_in_ops_of_their_own_do_the_same_work() -> None:
    grouped = layer(expert_parallel=8)
    single = layer(expert_parallel=8, experts="single")
    assert weights(single) == weights(grouped)
    assert sum(o.flops for o in single.ops) == sum(o.flops for o in grouped.ops)
    # 768 copies over 20 experts: 8 take 39, the other 12 take 38
    shares = Counter(o.matmul.m for o in single.ops if o.matmul and o.name.endswith(".gate_up"))
    assert shares == {39: 8, 38: 12}
    few = layer(expert_parallel=8, experts="single", phase="decode", batch=1)
    assert sum(o.name.endswith(".gate_up") for o in few.ops) == 6
    assert weights(few) == weights(layer(expert_parallel=8, phase="decode", batch=1))


def test_collectives_of_the_two_groups() -> None:
    graph = layer(tensor_parallel=4, expert_parallel=8, logits="all")
    collectives = {
        o.name: (o.kind, o.communicator, o.participants, o.payload_bytes) for o in graph.ops if o.participants
    }
    stream, copies = 128 * 5120 * 2, 128 * 6 * 5120 * 2
    assert collectives == {
        "embedding.all_reduce": ("HcomAllReduce", "tp", 4, stream),
        "layer0.attention.all_reduce": ("HcomAllReduce", "tp", 4, stream),
        f"{FED}.dispatch": ("HcomAllToAll", "ep", 8, copies),
        f"{FED}.combine": ("HcomAllToAll", "ep", 8, copies),
        f"{FED}.all_reduce": ("HcomAllReduce", "tp", 4, stream),
        "lm_head.all_gather": ("HcomAllGather", "tp", 4, 128 * 102400 * 2),
    }
    assert not any(o.participants for o in layer(tensor_parallel=1, expert_parallel=1).ops)


def test_the_shared_experts_run_beside_dispatch_and_combine() -> None:
    import networkx

    graph = layer(tensor_parallel=2, expert_parallel=8)
    reach = networkx.DiGraph(sorted(edges(graph)))
    shared = [o.name for o in graph.ops if ".shared." in o.name]
    assert len(shared) == 5
    for other in (f"{FED}.router", f"{FED}.dispatch", f"{FED}.experts.gate_up", f"{FED}.combine", f"{FED}.finalize"):
        for name in shared:
            assert not networkx.has_path(reach, name, other)
            assert not networkx.has_path(reach, other, name)
    assert {(f"{FED}.finalize", f"{FED}.add"), (f"{FED}.shared.down_proj", f"{FED}.add")} <= edges(graph)


def test_a_token_goes_out_and_comes_back() -> None:
    graph = layer(tensor_parallel=2, expert_parallel=8)
    steps = (
        "permute",
        "dispatch",
        "sort",
        "experts.gate_up",
        "experts.swiglu",
        "experts.down",
        "unsort",
        "combine",
        "finalize",
    )
    names = [f"{FED}.{step}" for step in steps]
    assert set(pairwise(names)) <= edges(graph)
    assert {(f"{FED}.top_k", f"{FED}.permute"), (f"{FED}.top_k", f"{FED}.finalize")} <= edges(graph)
    assert {t.name for t in graph.tensors if t.output} == {"lm_head.all_gather"}


def test_rows_are_tokens_at_prefill_and_requests_at_decode() -> None:
    graph = layer(tensor_parallel=2, expert_parallel=8)
    assert [o.name for o in graph.ops if o.rows is None or o.rows.last] == ["last_token"]
    keys = ("layer0.attention.kv_b_proj", "layer0.attention.k_rotary")
    assert op(graph, "layer0.attention.flash").rows == Rows(2, 64, attends=keys, causal=True)
    assert op(graph, f"{FED}.dispatch").rows == Rows(2, 64)
    decode = layer(tensor_parallel=2, expert_parallel=8, phase="decode")
    cache = ("layer0.attention.latent_cache", "layer0.attention.latent_cache.write")
    assert op(decode, "layer0.attention.flash").rows == Rows(2, 1, attends=cache)
    assert {t.name for t in decode.tensors if t.token_wise} == {"tokens", "rotary.table", cache[0]}


def test_a_model_without_shared_experts() -> None:
    graph = layer(shared=0, expert_parallel=1, tensor_parallel=1)
    assert not any("shared" in o.name for o in graph.ops)
    assert (f"{FED}.finalize", "layer0.feed_forward_add") in edges(graph)


@pytest.mark.parametrize("device", options("device"))
@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_it_lowers_on_every_device(device: str, phase: str) -> None:
    graph = build(size="v3", tensor_parallel=4, expert_parallel=32, layers=5, phase=phase, sequence=128, batch=4)
    problem: Problem = lower(graph, device)
    assert problem.n == len(graph.ops)
    # Its experts lie on more chips than a server has, of which the devices have no figures.
    assert [one for one in problem.warnings if "collectives join up to 32 chips" not in one] == []
    assert len(topological_order(problem.n, problem.edges)) == problem.n
    # two communicators, each of which keeps an order of its own
    assert len(set(problem.communicator[problem.communicator >= 0].tolist())) == 2


def test_the_same_arguments_give_the_same_graph() -> None:
    assert layer().content_hash() == layer().content_hash()
    assert build(size="V3", layers=1) == build(size="v3", layers=1)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"size": "v4"}, "size 'v4' is not known; there are: v2-lite, v2, v3"),
        ({"phase": "train"}, "phase 'train' is not known"),
        ({"experts": "some"}, "experts 'some' is not known; there are: grouped, single"),
        ({"logits": "none"}, "logits 'none' is not known"),
        ({"tensor_parallel": 3}, "tensor_parallel is 3; a divisor of heads, 16, is needed"),
        ({"tensor_parallel": 0}, "tensor_parallel is 0; a whole number of at least 1"),
        ({"expert_parallel": 7}, "expert_parallel is 7; a divisor of the 64 routed experts is needed"),
        ({"expert": 1001}, "tensor_parallel is 2; a divisor of expert, 1001, is needed"),
        ({"active": 65}, "active is 65; at most the 64 routed experts can be"),
        ({"latent": 0}, "latent is 0; a whole number of at least 1"),
        ({"shared": -1}, "shared is -1; a whole number of at least 0"),
        ({"batch": 1.5}, r"batch is 1\.5"),
    ],
)
def test_parameters_that_make_no_sense(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        build(**parameters)
