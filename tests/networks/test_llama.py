"""LLaMA: sizes and operations against the published figures, structure and traffic against hand calculation."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from msched.config import options
from msched.errors import OptionError
from msched.graph import Matmul, Op, OpGraph, Rows, Tensor
from msched.lowering import lower
from msched.networks.llama import build

# Parameters as published (LLaMA, table 2; Llama 3: names of the models, 8.03, 70.6 and 405.9 billion as released),
# and vocabulary x hidden size, the embedding.
PUBLISHED = {
    "7b": (6.7e9, 32000 * 4096, 32, 4096),
    "13b": (13.0e9, 32000 * 5120, 40, 5120),
    "33b": (32.5e9, 32000 * 6656, 60, 6656),
    "65b": (65.2e9, 32000 * 8192, 80, 8192),
    "8b": (8.03e9, 128256 * 4096, 32, 4096),
    "70b": (70.6e9, 128256 * 8192, 80, 8192),
    "405b": (405.9e9, 128256 * 16384, 126, 16384),
}


def op(graph: OpGraph, name: str) -> Op:
    return next(o for o in graph.ops if o.name == name)


def tensor(graph: OpGraph, name: str) -> Tensor:
    return next(t for t in graph.tensors if t.name == name)


@pytest.mark.parametrize("size", PUBLISHED)
def test_weights_are_as_many_as_published(size: str) -> None:
    graph = build(size=size, tensor_parallel=1, sequence=1)
    weights = sum(t.bytes for t in graph.tensors if t.name.endswith(".weight")) // 2
    assert weights == pytest.approx(PUBLISHED[size][0], rel=0.01)


@pytest.mark.parametrize("size", PUBLISHED)
@pytest.mark.parametrize("chips", [1, 4])
def test_a_forward_pass_takes_two_operations_a_parameter_and_token_and_the_attention(size: str, chips: int) -> None:
    parameters, embedding, layers, hidden = PUBLISHED[size]
    tokens = 2048
    graph = build(size=size, tensor_parallel=chips, sequence=tokens, logits="all")
    total = chips * sum(o.flops for o in graph.ops)
    # Every query meets every key up to its own; a pair costs a product and a sum of `hidden` channels, 2 x 2 x hidden.
    attention = layers * 4 * hidden * tokens * (tokens + 1) / 2
    assert total == pytest.approx(2 * (parameters - embedding) * tokens + attention, rel=0.02)


@pytest.mark.parametrize("size", ["7b", "65b", "70b"])
def test_decoding_one_token_of_each_request(size: str) -> None:
    parameters, embedding, layers, hidden = PUBLISHED[size]
    graph = build(size=size, tensor_parallel=8, phase="decode", batch=16, sequence=1023)
    total = 8 * sum(o.flops for o in graph.ops)
    attention = layers * 4 * hidden * 1024  # 1,023 tokens cached, and the new one itself
    assert total == pytest.approx(16 * (2 * (parameters - embedding) + attention), rel=0.02)


def test_the_number_of_ops() -> None:
    # A layer: 2 norms, q k v o, 2 rotations, 2 cache writes, attention, gate up down, SiLU, product, 2 additions make
    # 18, and 2 all-reduces on several chips. Around them: embedding, norm, head; the choice of the last token at
    # prefill; an all-reduce and an all-gather on several chips.
    assert len(build(phase="decode").ops) == 80 * 20 + 5
    assert len(build(phase="prefill").ops) == 80 * 20 + 6
    assert len(build(phase="prefill", logits="all").ops) == 80 * 20 + 5
    assert len(build(size="7b", tensor_parallel=1, phase="decode").ops) == 32 * 18 + 3
    assert len(build(size="7b", tensor_parallel=1, phase="decode", layers=2).ops) == 2 * 18 + 3


def test_collectives_are_those_of_megatron() -> None:
    graph = build(size="65b", tensor_parallel=8, sequence=100, layers=3)
    collectives = [o for o in graph.ops if o.participants]
    assert Counter(o.kind for o in collectives) == {"HcomAllReduce": 7, "HcomAllGather": 1}
    assert {o.participants for o in collectives} == {8}
    assert {o.communicator for o in collectives} == {"tp"}
    # 100 tokens of 8,192 channels of 2 bytes; and the logits of one token
    assert {o.payload_bytes for o in collectives if o.kind == "HcomAllReduce"} == {100 * 8192 * 2}
    assert [o.payload_bytes for o in collectives if o.kind == "HcomAllGather"] == [32000 * 2]
    assert not any(o.participants for o in build(size="7b", tensor_parallel=1, layers=1).ops)


def test_matrix_shapes_of_one_chip_of_eight() -> None:
    graph = build(size="70b", tensor_parallel=8, batch=2, sequence=10, layers=1)
    # 20 tokens; 64 heads of 128 in 8 parts; one of the 8 key heads each; 28,672 in 8 parts
    shapes = {o.name.rsplit(".", 1)[-1]: o.matmul for o in graph.ops if o.matmul}
    assert shapes == {
        "q_proj": Matmul(1, 20, 1024, 8192),
        "k_proj": Matmul(1, 20, 128, 8192),
        "v_proj": Matmul(1, 20, 128, 8192),
        "flash": Matmul(2 * 8, 10, 10, 128),
        "o_proj": Matmul(1, 20, 8192, 1024),
        "gate_proj": Matmul(1, 20, 3584, 8192),
        "up_proj": Matmul(1, 20, 3584, 8192),
        "down_proj": Matmul(1, 20, 8192, 3584),
        "lm_head": Matmul(1, 2, 16032, 8192),
    }
    assert op(graph, "layer0.attention.flash").flops == 2 * 8 * 4 * 128 * 55  # 1 + 2 + ... + 10 pairs


def test_key_heads_are_copied_when_there_are_more_chips_than_heads() -> None:
    graph = build(size="70b", tensor_parallel=16, layers=1)
    assert op(graph, "layer0.attention.k_proj").matmul == Matmul(1, 2048, 128, 8192)


def test_decoding_reads_the_cache_behind_the_write_of_the_new_token() -> None:
    graph = build(size="7b", tensor_parallel=1, phase="decode", batch=4, sequence=99, layers=1)
    names = [o.name for o in graph.ops]
    edges = {(names[u], names[v]) for u, v in graph.edges.tolist()}
    attention = "layer0.attention"
    assert {(f"{attention}.{x}", f"{attention}.flash") for x in ("k_cache.write", "v_cache.write", "q_rotary")} <= edges
    cache = tensor(graph, f"{attention}.k_cache")
    assert (cache.bytes, cache.persistent) == (4 * 100 * 4096 * 2, True)
    # the query of 4 tokens, and both caches of 4 x 100
    assert op(graph, f"{attention}.flash").bytes_read == (4 + 2 * 400) * 4096 * 2
    write = op(graph, f"{attention}.k_cache.write")
    assert (write.bytes_read, write.bytes_written) == (4 * 4096 * 2, 4 * 4096 * 2)


def test_prefill_without_a_context_does_not_wait_for_the_cache() -> None:
    graph = build(size="7b", tensor_parallel=1, sequence=8, layers=1)
    names = [o.name for o in graph.ops]
    after_writes = [names[v] for u, v in graph.edges.tolist() if names[u].endswith("cache.write")]
    assert after_writes == []
    # a context of 5 before 3 new tokens: pairs 6 + 7 + 8
    chunk = build(size="7b", tensor_parallel=1, sequence=3, context=5, layers=1)
    assert op(chunk, "layer0.attention.flash").flops == 32 * 4 * 128 * 21
    assert op(chunk, "layer0.attention.flash").bytes_read == (3 + 2 * 8) * 4096 * 2


def test_the_residual_stream_runs_through_every_layer() -> None:
    graph = build(size="7b", tensor_parallel=2, sequence=8, layers=2)
    names = [o.name for o in graph.ops]
    into = {v: {names[a] for a, b in graph.edges.tolist() if names[b] == v} for v in names}
    assert into["layer0.attention_add"] == {"embedding.all_reduce", "layer0.attention.all_reduce"}
    assert into["layer0.feed_forward_add"] == {"layer0.attention_add", "layer0.feed_forward.all_reduce"}
    assert into["layer1.attention_add"] == {"layer0.feed_forward_add", "layer1.attention.all_reduce"}
    assert into["layer1.feed_forward.multiply"] == {"layer1.feed_forward.silu", "layer1.feed_forward.up_proj"}
    assert [t.name for t in graph.tensors if t.output] == ["lm_head.all_gather"]


def test_an_embedding_reads_only_the_rows_of_its_tokens() -> None:
    graph = build(size="7b", tensor_parallel=1, batch=2, sequence=8, layers=1)
    assert op(graph, "embedding").bytes_read == 16 * (8 + 4096 * 2)
    assert op(graph, "last_token").bytes_read == 2 * 4096 * 2


def test_rows_of_prefill_are_tokens_and_attention_needs_the_keys_up_to_its_own() -> None:
    graph = build(size="7b", tensor_parallel=2, batch=3, sequence=8, layers=1)
    attention = "layer0.attention"
    keys = (f"{attention}.k_rotary", f"{attention}.v_proj")
    assert op(graph, f"{attention}.flash").rows == Rows(3, 8, attends=keys, causal=True)
    # behind the choice of the last token one row a request is left; the choice itself needs the last of each
    behind = {
        "last_token": Rows(3, 1, last=True),
        "norm": Rows(3, 1),
        "lm_head": Rows(3, 1),
        "lm_head.all_gather": Rows(3, 1),
    }
    assert {o.name: o.rows for o in graph.ops if o.name in behind} == behind
    rest = [o for o in graph.ops if o.name not in (*behind, f"{attention}.flash")]
    assert {o.rows for o in rest} == {Rows(3, 8)}
    caches = {f"{attention}.k_cache", f"{attention}.v_cache"}
    assert {t.name for t in graph.tensors if t.token_wise} == {"tokens", "rotary.table", *caches}
    # 24 tokens of 8 bytes, of 128 channels of 2 bytes, and of 16 heads of 128 channels of 2 bytes
    sizes = {t.name: t.bytes for t in graph.tensors if t.token_wise}
    assert sizes == {"tokens": 24 * 8, "rotary.table": 24 * 256} | dict.fromkeys(caches, 24 * 4096)


def test_rows_of_decode_are_requests_that_need_their_own_cache() -> None:
    graph = build(size="7b", tensor_parallel=2, phase="decode", batch=3, sequence=8, layers=1)
    attention = "layer0.attention"
    cache = tuple(f"{attention}.{x}" for x in ("k_cache", "k_cache.write", "v_cache", "v_cache.write"))
    assert op(graph, f"{attention}.flash").rows == Rows(3, 1, attends=cache)
    assert {o.rows for o in graph.ops if not o.name.endswith("flash")} == {Rows(3, 1)}


def test_every_dimension_can_be_given() -> None:
    graph = build(
        tensor_parallel=2,
        sequence=4,
        layers=1,
        hidden=512,
        heads=8,
        key_value_heads=4,
        feed_forward=600,
        vocabulary=100,
    )
    shapes = {o.name.rsplit(".", 1)[-1]: o.matmul for o in graph.ops if o.matmul}
    assert shapes["q_proj"] == Matmul(1, 4, 256, 512)
    assert shapes["k_proj"] == Matmul(1, 4, 128, 512)
    assert shapes["up_proj"] == Matmul(1, 4, 300, 512)
    assert shapes["lm_head"] == Matmul(1, 1, 50, 512)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"hidden": 500}, "hidden is 500; a multiple of the 64 heads is needed"),
        ({"key_value_heads": 48}, "key_value_heads is 48; a number that divides the 64 heads is needed"),
        ({"vocabulary": 0}, "vocabulary is 0; a whole number of at least 1 is needed"),
        ({"size": "70b", "key_value_heads": 64, "heads": 64, "tensor_parallel": 3}, "tensor_parallel is 3; llama 70b"),
        ({"tensor_parallel": 0}, "tensor_parallel is 0; a whole number of at least 1"),
    ],
)
def test_dimensions_that_do_not_fit_together(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        build(**parameters)


@pytest.mark.parametrize("device", options("device"))
@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_it_lowers_on_every_device(device: str, phase: str) -> None:
    graph = build(layers=2, batch=2, sequence=64, phase=phase)
    problem = lower(graph, device)
    assert problem.n == len(graph.ops)
    assert not problem.warnings


def test_sizes_may_be_written_in_capitals() -> None:
    assert build(size="65B", layers=1) == build(size="65b", layers=1)
