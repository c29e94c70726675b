"""LLaMA and Llama 3: one chip's share of a forward pass under tensor parallelism.

Dimensions: LLaMA, Touvron et al., arXiv 2302.13971, table 2 (feed-forward widths are 2/3 of 4 d, rounded up to a
multiple of 256, section 2.2); Llama 3, Grattafiori et al., arXiv 2407.21783, table 3 (vocabulary as released).
Partition: Shoeybi et al., Megatron-LM, arXiv 1909.08053, section 3: projections by column, then by row, an all-reduce
behind each of the two row-parallel ones; embedding and head by vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msched.errors import OptionError
from msched.graph import Matmul, OpGraph
from msched.networks.assembly import Assembly, at_least, one_of


@dataclass(frozen=True)
class Model:
    """Published dimensions. `key_value_heads` are shared by groups of query heads (GQA, arXiv 2305.13245)."""

    layers: int
    hidden: int
    heads: int
    key_value_heads: int
    feed_forward: int
    vocabulary: int


MODELS = {
    "7b": Model(32, 4096, 32, 32, 11008, 32000),
    "13b": Model(40, 5120, 40, 40, 13824, 32000),
    "30b": Model(60, 6656, 52, 52, 17920, 32000),  # the paper says 33B, the released files 30B
    "33b": Model(60, 6656, 52, 52, 17920, 32000),
    "65b": Model(80, 8192, 64, 64, 22016, 32000),
    "8b": Model(32, 4096, 32, 8, 14336, 128256),  # from here on Llama 3
    "70b": Model(80, 8192, 64, 8, 28672, 128256),
    "405b": Model(126, 16384, 128, 8, 53248, 128256),
}
_PHASES = {"prefill": "prefill", "decode": "decode"}
_LOGITS = {"last": False, "all": True}
# Operations an element, counted from the definitions: x / rms(x) * g; x cos + rot(x) sin; x / (1 + exp(-x)).
_RMS_NORM, _ROTARY, _SILU = 4, 3, 4


@dataclass(frozen=True)
class _Pass:
    """What one chip sees of one forward pass: `new` tokens of each of `batch` sequences, `context` tokens cached."""

    graph: Assembly
    model: Model
    ranks: int
    batch: int
    new: int
    context: int
    element_bytes: int

    @property
    def rows(self) -> int:
        return self.batch * self.new

    @property
    def head(self) -> int:
        return self.model.hidden // self.model.heads

    @property
    def query_width(self) -> int:
        return self.model.hidden // self.ranks

    @property
    def key_width(self) -> int:
        return max(self.model.key_value_heads // self.ranks, 1) * self.head

    def linear(self, name: str, x: int, wide: int, out: int, rows: int) -> int:
        weight = self.graph.source(f"{name}.weight", wide * out * self.element_bytes)
        return self.graph.op(
            name, "MatMul", [x, weight], rows * out * self.element_bytes, matmul=Matmul(1, rows, out, wide)
        )

    def elementwise(self, name: str, kind: str, inputs: Sequence[int], operations: int = 1) -> int:
        """An op whose output is of the size of its first input."""
        size = self.graph.bytes(inputs[0])
        return self.graph.op(name, kind, inputs, size, flops=operations * (size // self.element_bytes))

    def norm(self, name: str, x: int) -> int:
        weight = self.graph.source(f"{name}.weight", self.model.hidden * self.element_bytes)
        return self.elementwise(name, "RMSNorm", [x, weight], _RMS_NORM)

    def all_reduce(self, name: str, x: int) -> int:
        return self._collective(name, "HcomAllReduce", x, self.graph.bytes(x))

    def all_gather(self, name: str, x: int) -> int:
        return self._collective(name, "HcomAllGather", x, self.graph.bytes(x) * self.ranks)

    def _collective(self, name: str, kind: str, x: int, payload: int) -> int:
        if self.ranks == 1:
            return x
        return self.graph.op(
            name, kind, [x], payload, participants=self.ranks, payload_bytes=payload, communicator="tp"
        )


def build(
    size: str = "65b",
    tensor_parallel: int = 8,
    phase: str = "prefill",
    batch: int = 1,
    sequence: int = 2048,
    context: int | None = None,
    layers: int | None = None,
    dtype_bytes: int = 2,
    logits: str = "last",
) -> OpGraph:
    """One chip of `tensor_parallel` in one forward pass: 20 ops a layer (18 on a single chip), and up to 6 around them.

    size: 7b, 13b, 30b (= 33b), 65b of LLaMA; 8b, 70b, 405b of Llama 3.
    phase: "prefill" computes `sequence` tokens of each of `batch` requests, "decode" one token each.
    context: tokens that are cached already; 0 at prefill and `sequence` at decode unless given.
    layers: fewer or more of them than the model has. dtype_bytes: of weights, activations and cache.
    logits: of the "last" token of each request, or of "all".

    Over all chips the flops come to 2 T (P - V d) in the matrix products, for T tokens and P parameters, V d of which
    are the embedding, a mere look-up (the head counts for as many tokens as have logits), and to 4 L d K in the
    attention, where K = batch (new context + new (new + 1) / 2) is the number of query-key pairs under the causal mask.

    Raises OptionError: an unknown size, phase or logits; chips that do not divide the heads.
    """
    model = one_of("size", size.lower() if isinstance(size, str) else size, MODELS)
    prefill = one_of("phase", phase, _PHASES) == "prefill"
    every_token = one_of("logits", logits, _LOGITS)
    at_least(1, tensor_parallel=tensor_parallel, batch=batch, sequence=sequence, dtype_bytes=dtype_bytes)
    depth = model.layers if layers is None else layers
    cached = context if context is not None else 0 if prefill else sequence
    at_least(1, layers=depth)
    at_least(0, context=cached)
    _check_split(size, model, tensor_parallel)
    graph = Assembly(f"llama_{size.lower()}_{phase}")
    p = _Pass(graph, model, tensor_parallel, batch, sequence if prefill else 1, cached, dtype_bytes)
    rotation = graph.source("rotary.table", p.new * p.head * dtype_bytes)
    x = _embedding(p)
    for index in range(depth):
        x = _layer(p, f"layer{index}", x, rotation)
    return graph.graph({_head(p, x, every_token)})


def _check_split(size: str, model: Model, ranks: int) -> None:
    shares = max(model.key_value_heads, ranks) % min(model.key_value_heads, ranks) == 0
    if model.heads % ranks or model.feed_forward % ranks or not shares:
        fitting = [r for r in range(1, model.heads + 1) if model.heads % r == 0 and model.feed_forward % r == 0]
        raise OptionError(
            f"tensor_parallel is {ranks}; llama {size} has {model.heads} heads, which it must divide: "
            f"{', '.join(map(str, fitting))}"
        )


def _embedding(p: _Pass) -> int:
    g, width = p.graph, p.model.hidden * p.element_bytes
    tokens = g.source("tokens", p.rows * 8)
    table = g.source("embedding.weight", -(-p.model.vocabulary // p.ranks) * width)
    x = g.op("embedding", "Embedding", [tokens, table], p.rows * width, bytes_read=p.rows * (8 + width))
    return p.all_reduce("embedding.all_reduce", x)


def _layer(p: _Pass, name: str, x: int, rotation: int) -> int:
    """One decoder layer on the residual stream `x`. All token counts come from `p`: a slice is another `_Pass`."""
    mixed = _attention(p, f"{name}.attention", p.norm(f"{name}.attention_norm", x), rotation)
    x = p.elementwise(f"{name}.attention_add", "Add", [x, mixed])
    fed = _feed_forward(p, f"{name}.feed_forward", p.norm(f"{name}.feed_forward_norm", x))
    return p.elementwise(f"{name}.feed_forward_add", "Add", [x, fed])


def _attention(p: _Pass, name: str, x: int, rotation: int) -> int:
    g, hidden, heads = p.graph, p.model.hidden, p.model.heads // p.ranks
    query = p.linear(f"{name}.q_proj", x, hidden, p.query_width, p.rows)
    key = p.linear(f"{name}.k_proj", x, hidden, p.key_width, p.rows)
    value = p.linear(f"{name}.v_proj", x, hidden, p.key_width, p.rows)
    query = p.elementwise(f"{name}.q_rotary", "RotaryEmbedding", [query, rotation], _ROTARY)
    key = p.elementwise(f"{name}.k_rotary", "RotaryEmbedding", [key, rotation], _ROTARY)
    key_cache, key_written = _cache(p, f"{name}.k_cache", key)
    value_cache, value_written = _cache(p, f"{name}.v_cache", value)
    # without a context the new keys and values are all there is, and nobody waits for the cache
    source = [key_cache, key_written, value_cache, value_written] if p.context else [key, value]
    pairs = p.batch * (p.new * p.context + p.new * (p.new + 1) // 2)
    mixed = g.op(
        f"{name}.flash",
        "FlashAttention",
        [query, *source],
        g.bytes(query),
        flops=4 * pairs * heads * p.head,
        matmul=Matmul(p.batch * heads, p.new, p.context + p.new, p.head),
    )
    mixed = p.linear(f"{name}.o_proj", mixed, p.query_width, hidden, p.rows)
    return p.all_reduce(f"{name}.all_reduce", mixed)


def _cache(p: _Pass, name: str, new: int) -> tuple[int, int]:
    """The cache of all tokens, and an empty tensor that says that the new ones have been written into it."""
    size = p.graph.bytes(new)
    cache = p.graph.source(name, p.batch * (p.context + p.new) * p.key_width * p.element_bytes)
    write = p.graph.op(f"{name}.write", "ScatterUpdate", [new, cache], 0, bytes_read=size, bytes_written=size)
    return cache, write


def _feed_forward(p: _Pass, name: str, x: int) -> int:
    hidden, share = p.model.hidden, p.model.feed_forward // p.ranks
    gate = p.linear(f"{name}.gate_proj", x, hidden, share, p.rows)
    up = p.linear(f"{name}.up_proj", x, hidden, share, p.rows)
    gate = p.elementwise(f"{name}.silu", "Silu", [gate], _SILU)
    product = p.elementwise(f"{name}.multiply", "Mul", [gate, up])
    down = p.linear(f"{name}.down_proj", product, share, hidden, p.rows)
    return p.all_reduce(f"{name}.all_reduce", down)


def _head(p: _Pass, x: int, every_token: bool) -> int:
    rows, width = p.rows, p.model.hidden * p.element_bytes
    if not every_token and p.new > 1:
        rows = p.batch
        x = p.graph.op("last_token", "Gather", [x], rows * width, bytes_read=rows * width)
    x = p.norm("norm", x)
    x = p.linear("lm_head", x, p.model.hidden, -(-p.model.vocabulary // p.ranks), rows)
    return p.all_gather("lm_head.all_gather", x)
