"""DeepSeek-style mixture of experts: one chip's share of a forward pass under tensor and expert parallelism.

Architecture: DeepSeek-V2, arXiv 2405.04434, section 2 (multi-head latent attention, MLA; shared beside routed experts),
DeepSeek-V3, arXiv 2412.19437, section 2. Dimensions: section 3.1.2 and appendix B of the first, section 4.2 of the
second, and for what they leave out (dense width, vocabulary) the configurations released with the models.

Partition: chips form groups of `tensor_parallel`, each with tokens of its own, and `expert_parallel` groups share the
routed experts. Inside a group heads, dense layers and every expert are cut as Megatron-LM does (arXiv 1909.08053,
section 3; for experts Megatron-Core's expert tensor parallelism); what MLA compresses is computed on every chip.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from msched.errors import OptionError
from msched.graph import Matmul, OpGraph, Rows
from msched.networks.assembly import Assembly, at_least, one_of
from msched.networks.mixture import Mixture, mixture
from msched.networks.transformer import LOGITS, PHASES, RMS_NORM, ROTARY, Pass


@dataclass(frozen=True)
class Model:
    """Published dimensions.

    query_rank, latent: of the compressed queries (0: not compressed) and of the compressed keys and values.
    plain, rotary, value: channels of a head without and with position, and of its values.
    feed_forward: width of the first `dense_layers`; expert: that of one of `routed` and `shared` experts, of which a
    token takes `active` and all.
    """

    layers: int
    dense_layers: int
    hidden: int
    heads: int
    query_rank: int
    latent: int
    plain: int
    rotary: int
    value: int
    feed_forward: int
    expert: int
    routed: int
    shared: int
    active: int
    vocabulary: int


MODELS = {
    "v2-lite": Model(27, 1, 2048, 16, 0, 512, 128, 64, 128, 10944, 1408, 64, 2, 6, 102400),
    "v2": Model(60, 1, 5120, 128, 1536, 512, 128, 64, 128, 12288, 1536, 160, 2, 6, 102400),
    "v3": Model(61, 3, 7168, 128, 1536, 512, 128, 64, 128, 18432, 2048, 256, 1, 8, 129280),
}
_FROM_ZERO = ("dense_layers", "query_rank", "shared")
_EXPERTS = {"grouped": True, "single": False}


def build(
    size: str = "v2-lite",
    tensor_parallel: int = 2,
    expert_parallel: int = 8,
    phase: str = "prefill",
    batch: int = 1,
    sequence: int = 2048,
    experts: str = "grouped",
    dtype_bytes: int = 2,
    logits: str = "last",
    layers: int | None = None,
    dense_layers: int | None = None,
    hidden: int | None = None,
    heads: int | None = None,
    query_rank: int | None = None,
    latent: int | None = None,
    plain: int | None = None,
    rotary: int | None = None,
    value: int | None = None,
    feed_forward: int | None = None,
    expert: int | None = None,
    routed: int | None = None,
    shared: int | None = None,
    active: int | None = None,
    vocabulary: int | None = None,
) -> OpGraph:
    """One chip of `tensor_parallel` x `expert_parallel` in one forward pass of a model of DeepSeek's.

    size: v2-lite (16 B parameters), v2 (236 B) or v3 (671 B, without its multi-token prediction).
    phase: "prefill" computes `sequence` tokens of each of `batch` requests and expands keys and values from their
        latents, "decode" one token each behind `sequence` cached ones, with the expansion absorbed into queries and
        outputs (DeepSeek-V2, section 2.1.2).
    batch: requests of one group of `tensor_parallel` chips; every group has as many.
    experts: "grouped" computes the experts of a chip in one grouped product, "single" each in ops of its own.
    logits: of the "last" token of each request, or of "all". dtype_bytes: of weights, activations and cache.
    layers, ...: other dimensions than those of the size (`Model`).

    Tokens are taken to spread evenly over the experts: a chip sends and receives tokens x active copies, which meet as
    many of its experts as there are copies, at most all. Collectives of the two groups have the communicators "tp" and
    "ep"; the shared experts depend on neither dispatch nor combine.

    Raises OptionError: an unknown size, phase, experts or logits; degrees that do not divide what they share.
    """
    size = size.lower() if isinstance(size, str) else size
    model = _changed(
        one_of("size", size, MODELS),
        layers=layers,
        dense_layers=dense_layers,
        hidden=hidden,
        heads=heads,
        query_rank=query_rank,
        latent=latent,
        plain=plain,
        rotary=rotary,
        value=value,
        feed_forward=feed_forward,
        expert=expert,
        routed=routed,
        shared=shared,
        active=active,
        vocabulary=vocabulary,
    )
    prefill = one_of("phase", phase, PHASES) == "prefill"
    grouped = one_of("experts", experts, _EXPERTS)
    every_token = one_of("logits", logits, LOGITS)
    at_least(1, tensor_parallel=tensor_parallel, expert_parallel=expert_parallel)
    at_least(1, batch=batch, sequence=sequence, dtype_bytes=dtype_bytes)
    _check_split(model, tensor_parallel, expert_parallel)
    graph, new, context = Assembly(f"moe_{size}_{phase}"), *((sequence, 0) if prefill else (1, sequence))
    p = Pass(graph, model.hidden, model.vocabulary, tensor_parallel, batch, new, context, dtype_bytes)
    layer = Mixture(model.expert, model.routed, model.shared, model.active, expert_parallel, grouped)
    rotation = p.rotary_table(model.rotary)
    x = p.embedding(p.token_numbers())
    for index in range(model.layers):
        name = f"layer{index}"
        x = _attention(p, model, name, x, rotation, absorbed=not prefill)
        normed = p.norm(f"{name}.feed_forward_norm", x)
        if index < model.dense_layers:
            fed = p.feed_forward(f"{name}.feed_forward", normed, model.feed_forward // p.ranks)
        else:
            fed = mixture(p, layer, f"{name}.feed_forward", normed)
        fed = p.all_reduce(f"{name}.feed_forward.all_reduce", fed)
        x = p.elementwise(f"{name}.feed_forward_add", "Add", [x, fed])
    return graph.graph({p.head(x, every_token)})


def _changed(model: Model, **dimensions: int | None) -> Model:
    given: dict[str, Any] = {name: value for name, value in dimensions.items() if value is not None}
    at_least(0, **{name: value for name, value in given.items() if name in _FROM_ZERO})
    at_least(1, **{name: value for name, value in given.items() if name not in _FROM_ZERO})
    model = replace(model, **given)
    if model.active > model.routed:
        raise OptionError(f"active is {model.active}; at most the {model.routed} routed experts can be")
    return model


def _check_split(model: Model, tensor_parallel: int, expert_parallel: int) -> None:
    shared = {"heads": model.heads, "feed_forward": model.feed_forward, "expert": model.expert}
    for option, value in shared.items():
        if value % tensor_parallel:
            raise OptionError(f"tensor_parallel is {tensor_parallel}; a divisor of {option}, {value}, is needed")
    if model.routed % expert_parallel:
        raise OptionError(
            f"expert_parallel is {expert_parallel}; a divisor of the {model.routed} routed experts is needed"
        )


def _attention(p: Pass, model: Model, name: str, x: int, rotation: int, *, absorbed: bool) -> int:
    """Norm, multi-head latent attention (DeepSeek-V2, equations 37 to 47) and residual addition."""
    inner, g, size, heads = f"{name}.attention", p.graph, p.element_bytes, model.heads // p.ranks
    normed, wide = p.norm(f"{name}.attention_norm", x), heads * (model.plain + model.rotary)
    if model.query_rank:
        low = p.linear(f"{inner}.q_a_proj", normed, model.hidden, model.query_rank)
        weight = p.weight(f"{inner}.q_norm.weight", model.query_rank)
        low = p.elementwise(f"{inner}.q_norm", "RMSNorm", [low, weight], RMS_NORM)
        query = p.linear(f"{inner}.q_b_proj", low, model.query_rank, wide)
    else:
        query = p.linear(f"{inner}.q_proj", normed, model.hidden, wide)
    turned = _part(p, f"{inner}.q_rotary", "RotaryEmbedding", query, rotation, heads * model.rotary, ROTARY)
    both = p.linear(f"{inner}.kv_a_proj", normed, model.hidden, model.latent + model.rotary)
    weight = p.weight(f"{inner}.kv_norm.weight", model.latent)
    latent = _part(p, f"{inner}.kv_norm", "RMSNorm", both, weight, model.latent, RMS_NORM)
    key = _part(p, f"{inner}.k_rotary", "RotaryEmbedding", both, rotation, model.rotary, ROTARY)
    stored = p.cache(f"{inner}.latent_cache", [latent, key], model.latent + model.rotary)
    if absorbed:
        query = _per_head(p, f"{inner}.q_absorb", query, heads, model.plain, model.latent)
        inputs, source = [query, turned, *stored], stored
        width, channels = model.latent, 2 * model.latent + model.rotary
        # one latent serves all heads, whose queries are the rows of one product (FlashMLA)
        shape = Matmul(p.batch, heads * p.new, p.context + p.new, model.latent + model.rotary)
    else:
        expanded = p.linear(f"{inner}.kv_b_proj", latent, model.latent, heads * (model.plain + model.value))
        source = (expanded, key)
        inputs = [query, turned, *source]
        width, channels = model.value, model.plain + model.rotary + model.value
        shape = Matmul(p.batch * heads, p.new, p.context + p.new, model.plain + model.rotary)
    # of a query that is not absorbed, the rotated part is read from its own tensor alone
    again = 0 if absorbed else g.bytes(turned)
    mixed = g.op(
        f"{inner}.flash",
        "FlashAttention",
        inputs,
        p.tokens * heads * width * size,
        flops=2 * p.pairs * heads * channels,
        matmul=shape,
        bytes_read=sum(map(g.bytes, inputs)) - again,
        rows=Rows(p.batch, p.new, tuple(map(g.name_of, source)), p.new > 1),
    )
    if absorbed:
        mixed = _per_head(p, f"{inner}.v_up", mixed, heads, model.latent, model.value)
    projected = p.linear(f"{inner}.o_proj", mixed, heads * model.value, model.hidden)
    projected = p.all_reduce(f"{inner}.all_reduce", projected)
    return p.elementwise(f"{name}.attention_add", "Add", [x, projected])


def _part(p: Pass, name: str, kind: str, x: int, other: int, channels: int, operations: int) -> int:
    """An elementwise op on `channels` of the channels of `x`."""
    elements = p.tokens * channels
    size = elements * p.element_bytes
    read = size + p.graph.bytes(other)
    return p.graph.op(name, kind, [x, other], size, flops=operations * elements, bytes_read=read, rows=p.rows)


def _per_head(p: Pass, name: str, x: int, heads: int, wide: int, out: int) -> int:
    """Products of the first `wide` channels of each head with a weight (wide, out) of its own."""
    weight = p.weight(f"{name}.weight", heads * wide * out)
    return p.graph.op(
        name,
        "BatchMatMul",
        [x, weight],
        p.tokens * heads * out * p.element_bytes,
        bytes_read=p.tokens * heads * wide * p.element_bytes + p.graph.bytes(weight),
        matmul=Matmul(heads, p.tokens, out, wide),
        rows=p.rows,
    )
