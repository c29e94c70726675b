"""Layers of decoder-only transformers: one chip's share of a pass under tensor parallelism.

Partition: Shoeybi et al., Megatron-LM, arXiv 1909.08053, section 3: projections by column, then by row, an all-reduce
behind each of the two row-parallel ones; embedding and head by vocabulary. Every op that works token by token says so
in `Op.rows`, so that it can be cut into slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from msched.errors import OptionError
from msched.graph import Matmul, Rows
from msched.networks.assembly import Assembly, at_least

PHASES = {"prefill": "prefill", "decode": "decode"}
LOGITS = {"last": False, "all": True}
# Operations an element, counted from the definitions: x / rms(x) * g; x cos + rot(x) sin; x / (1 + exp(-x)).
RMS_NORM, ROTARY, SILU = 4, 3, 4


@dataclass(frozen=True)
class Model:
    """Dimensions of a dense decoder. `key_value_heads` are shared by groups of query heads (GQA, arXiv 2305.13245).

    bias: whether the four projections of the attention have one.
    """

    layers: int
    hidden: int
    heads: int
    key_value_heads: int
    feed_forward: int
    vocabulary: int
    bias: bool = False

    @property
    def head(self) -> int:
        """Channels of a head."""
        return self.hidden // self.heads

    def changed(self, **dimensions: int | None) -> Model:
        """The model with those of its dimensions that are given. Raises OptionError where they do not fit together."""
        given: dict[str, Any] = {name: value for name, value in dimensions.items() if value is not None}
        at_least(1, **given)
        model = replace(self, **given)
        if model.hidden % model.heads:
            raise OptionError(f"hidden is {model.hidden}; a multiple of the {model.heads} heads is needed")
        if model.heads % model.key_value_heads:
            raise OptionError(
                f"key_value_heads is {model.key_value_heads}; a number that divides the {model.heads} heads is needed"
            )
        return model

    def check_split(self, name: str, ranks: int) -> None:
        """Raise OptionError unless `ranks` chips can share the heads and the feed-forward layer of the model `name`."""
        at_least(1, tensor_parallel=ranks)
        shares = max(self.key_value_heads, ranks) % min(self.key_value_heads, ranks) == 0
        if self.heads % ranks or self.feed_forward % ranks or not shares:
            fitting = [
                r
                for r in range(1, self.heads + 1)
                if self.heads % r == 0
                and self.feed_forward % r == 0
                and max(self.key_value_heads, r) % min(self.key_value_heads, r) == 0
            ]
            raise OptionError(
                f"tensor_parallel is {ranks}; {name} has {self.heads} heads, which it must divide: "
                f"{', '.join(map(str, fitting))}"
            )


@dataclass(frozen=True)
class Pass:
    """Writes one chip's share of one pass into a graph: `new` tokens of each of `batch` requests, `context` cached.

    ranks: chips of tensor parallelism. prefix: of the names of ops, but not of the weights that they read.
    """

    graph: Assembly
    hidden: int
    vocabulary: int
    ranks: int
    batch: int
    new: int
    context: int
    element_bytes: int
    prefix: str = ""
    weights: dict[str, int] = field(default_factory=dict)

    @cached_property
    def rows(self) -> Rows:
        """All new tokens."""
        return Rows(self.batch, self.new)

    @property
    def tokens(self) -> int:
        """Number of new tokens."""
        return self.batch * self.new

    @property
    def pairs(self) -> int:
        """Query-key pairs under the causal mask."""
        return self.batch * (self.new * self.context + self.new * (self.new + 1) // 2)

    def weight(self, name: str, elements: int) -> int:
        """A weight by its name, the same tensor each time."""
        if name not in self.weights:
            self.weights[name] = self.graph.source(name, elements * self.element_bytes)
        return self.weights[name]

    def linear(self, name: str, x: int, wide: int, out: int, rows: Rows | None = None, bias: bool = False) -> int:
        """Product of the rows of `x`, each of `wide` channels, with a weight of (wide, out)."""
        rows = rows or self.rows
        tokens = rows.batch * rows.sequence
        inputs = [x, self.weight(f"{name}.weight", wide * out)]
        if bias:
            inputs.append(self.weight(f"{name}.bias", out))
        return self.graph.op(
            self.prefix + name,
            "MatMul",
            inputs,
            tokens * out * self.element_bytes,
            flops=2 * tokens * out * wide + bias * tokens * out,
            matmul=Matmul(1, tokens, out, wide),
            rows=rows,
        )

    def elementwise(
        self, name: str, kind: str, inputs: Sequence[int], operations: int = 1, rows: Rows | None = None
    ) -> int:
        """An op whose output is of the size of its first input."""
        size = self.graph.bytes(inputs[0])
        flops = operations * (size // self.element_bytes)
        return self.graph.op(self.prefix + name, kind, inputs, size, flops=flops, rows=rows or self.rows)

    def norm(self, name: str, x: int, rows: Rows | None = None) -> int:
        """RMSNorm over the hidden channels."""
        return self.elementwise(name, "RMSNorm", [x, self.weight(f"{name}.weight", self.hidden)], RMS_NORM, rows)

    def all_reduce(self, name: str, x: int) -> int:
        """Sum over the chips of tensor parallelism; `x` itself on a single one."""
        return self._collective(name, "HcomAllReduce", x, self.graph.bytes(x), self.rows)

    def all_gather(self, name: str, x: int, rows: Rows) -> int:
        """Shares of all chips of tensor parallelism; `x` itself on a single one."""
        return self._collective(name, "HcomAllGather", x, self.graph.bytes(x) * self.ranks, rows)

    def _collective(self, name: str, kind: str, x: int, payload: int, rows: Rows) -> int:
        if self.ranks == 1:
            return x
        return self.graph.op(
            self.prefix + name,
            kind,
            [x],
            payload,
            participants=self.ranks,
            payload_bytes=payload,
            communicator="tp",
            rows=rows,
        )

    def token_numbers(self) -> int:
        """The numbers of the new tokens in the vocabulary, an input."""
        return self.graph.source("tokens", self.tokens * 8, token_wise=True)

    def embedding(self, tokens: int) -> int:
        """The residual stream: a look-up that reads the rows of its tokens alone."""
        width = self.hidden * self.element_bytes
        table = self.weight("embedding.weight", -(-self.vocabulary // self.ranks) * self.hidden)
        read = self.tokens * (8 + width)
        inputs, size = [tokens, table], self.tokens * width
        x = self.graph.op("embedding", "Embedding", inputs, size, bytes_read=read, rows=self.rows)
        return self.all_reduce("embedding.all_reduce", x)

    def rotary_table(self, channels: int) -> int:
        """Cosines and sines of the positions of the new tokens, for heads of `channels`."""
        return self.graph.source("rotary.table", self.tokens * channels * self.element_bytes, token_wise=True)

    def cache(self, name: str, new: Sequence[int], channels: int) -> tuple[int, int]:
        """The cache of all tokens, and an empty tensor that says that the `new` ones have been written into it."""
        size = sum(self.graph.bytes(tensor) for tensor in new)
        total = self.batch * (self.context + self.new) * channels * self.element_bytes
        cache = self.graph.source(name, total, token_wise=True)
        write = self.graph.op(
            f"{self.prefix}{name}.write",
            "ScatterUpdate",
            [*new, cache],
            0,
            bytes_read=size,
            bytes_written=size,
            rows=self.rows,
        )
        return cache, write

    def feed_forward(self, name: str, x: int, width: int) -> int:
        """SwiGLU layer of `width` inner channels on this chip; a partial sum where there are several chips."""
        gate, up = self.gates(name, x, width)
        return self.linear(f"{name}.down_proj", self.product(name, gate, up)[1], width, self.hidden)

    def gates(self, name: str, x: int, width: int) -> tuple[int, int]:
        """The two column-parallel projections of a SwiGLU layer."""
        gate = self.linear(f"{name}.gate_proj", x, self.hidden, width)
        return gate, self.linear(f"{name}.up_proj", x, self.hidden, width)

    def product(self, name: str, gate: int, up: int) -> tuple[int, int]:
        """SiLU of the gate, and its product with the other projection."""
        silu = self.elementwise(f"{name}.silu", "Silu", [gate], SILU)
        return silu, self.elementwise(f"{name}.multiply", "Mul", [silu, up])

    def head(self, x: int, every_token: bool) -> int:
        """Logits of every token, or of the last of each request, gathered from all chips."""
        rows, width = self.rows, self.hidden * self.element_bytes
        if not every_token and self.new > 1:
            rows, size = Rows(self.batch, 1), self.batch * width
            x = self.graph.op("last_token", "Gather", [x], size, bytes_read=size, rows=Rows(self.batch, 1, last=True))
        x = self.norm("norm", x, rows)
        x = self.linear("lm_head", x, self.hidden, -(-self.vocabulary // self.ranks), rows)
        return self.all_gather("lm_head.all_gather", x, rows)


class Attention(NamedTuple):
    """Tensors of the first half of a layer that a backward pass needs; `out` is the residual stream behind it."""

    into: int
    normed: int
    query: int
    key: int
    value: int
    mixed: int
    out: int


def attention(p: Pass, model: Model, name: str, x: int, rotation: int, *, cached: bool = True) -> Attention:
    """Norm, causal self-attention and residual addition on the stream `x`.

    cached: whether keys and values are written into a cache, and read from there if it holds a context.
    """
    inner, heads = f"{name}.attention", model.heads // p.ranks
    wide, narrow = heads * model.head, max(model.key_value_heads // p.ranks, 1) * model.head
    normed = p.norm(f"{name}.attention_norm", x)
    query = p.linear(f"{inner}.q_proj", normed, model.hidden, wide, bias=model.bias)
    key = p.linear(f"{inner}.k_proj", normed, model.hidden, narrow, bias=model.bias)
    value = p.linear(f"{inner}.v_proj", normed, model.hidden, narrow, bias=model.bias)
    query = p.elementwise(f"{inner}.q_rotary", "RotaryEmbedding", [query, rotation], ROTARY)
    key = p.elementwise(f"{inner}.k_rotary", "RotaryEmbedding", [key, rotation], ROTARY)
    source: list[int] = [key, value]
    if cached:
        stored = [*p.cache(f"{inner}.k_cache", [key], narrow), *p.cache(f"{inner}.v_cache", [value], narrow)]
        # without a context the new keys and values are all there is, and nobody waits for the cache
        source = stored if p.context else source
    mixed = p.graph.op(
        f"{p.prefix}{inner}.flash",
        "FlashAttention",
        [query, *source],
        p.graph.bytes(query),
        flops=4 * p.pairs * wide,
        matmul=Matmul(p.batch * heads, p.new, p.context + p.new, model.head),
        rows=Rows(p.batch, p.new, tuple(map(p.graph.name_of, source)), p.new > 1),
    )
    projected = p.linear(f"{inner}.o_proj", mixed, wide, model.hidden, bias=model.bias)
    projected = p.all_reduce(f"{inner}.all_reduce", projected)
    out = p.elementwise(f"{name}.attention_add", "Add", [x, projected])
    return Attention(x, normed, query, key, value, mixed, out)


def decoder_layer(p: Pass, model: Model, name: str, x: int, rotation: int) -> int:
    """One layer on the residual stream `x`: 20 ops, or 18 on a single chip."""
    x = attention(p, model, name, x, rotation).out
    normed = p.norm(f"{name}.feed_forward_norm", x)
    fed = p.feed_forward(f"{name}.feed_forward", normed, model.feed_forward // p.ranks)
    fed = p.all_reduce(f"{name}.feed_forward.all_reduce", fed)
    return p.elementwise(f"{name}.feed_forward_add", "Add", [x, fed])


def inference(
    name: str,
    model: Model,
    *,
    tensor_parallel: int,
    phase: str,
    batch: int,
    sequence: int,
    context: int | None,
    dtype_bytes: int,
    every_token: bool,
) -> tuple[Assembly, int]:
    """A forward pass of a dense decoder, its parameters checked, and the tensor of logits: see `llama.build`."""
    at_least(1, batch=batch, sequence=sequence, dtype_bytes=dtype_bytes)
    cached = context if context is not None else 0 if phase == "prefill" else sequence
    at_least(0, context=cached)
    graph, new = Assembly(name), sequence if phase == "prefill" else 1
    p = Pass(graph, model.hidden, model.vocabulary, tensor_parallel, batch, new, cached, dtype_bytes)
    rotation = p.rotary_table(model.head)
    x = p.embedding(p.token_numbers())
    for index in range(model.layers):
        x = decoder_layer(p, model, f"layer{index}", x, rotation)
    return graph, p.head(x, every_token)
