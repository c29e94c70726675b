"""Backward pass of a dense decoder: gradients of activations (dgrad) and of weights (wgrad) in ops of their own.

Only dgrad lies on the way back to the first layer; nothing but the optimizer waits for wgrad, so that it can run beside
the rest. Under tensor parallelism each half of a layer ends in an all-reduce of the gradient of its input (Megatron-LM,
arXiv 1909.08053, section 3: the operator f), and the all-reduces of the forward pass pass gradients on as they are (g).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from msched.graph import Matmul, Rows
from msched.networks.data_parallel import Buckets, Gradient
from msched.networks.transformer import ROTARY, Attention, Model, Pass

# Operations an element, from the definitions, with r = 1 / rms(x), s = sigmoid(x):
# r (g dy - x r^2 mean(g dy x)), the sum of squares included; the sum of dy x r; dy s (1 + x (1 - s)).
_NORM_DGRAD, _NORM_WGRAD, _SILU_GRAD = 9, 3, 8
# FlashAttention-2, arXiv 2307.08691, section 4.1: five products where the forward pass has two
_FLASH_GRAD = 2.5


class FeedForward(NamedTuple):
    """Tensors of the second half of a layer that a backward pass needs; `product` enters the last projection."""

    normed: int
    gate: int
    up: int
    silu: int
    product: int


@dataclass(frozen=True)
class Backward:
    """Writes gradients into the graph of a forward pass.

    buckets: where those of weights go.
    """

    p: Pass
    buckets: Buckets

    def linear(self, name: str, x: int, dy: int, wide: int, out: int, dy_bytes: int | None = None) -> int:
        """Gradient of the input `x` of a projection, and beside it that of its weight.

        dy_bytes: what is read of `dy`, where it holds more than this gradient.
        """
        g, p = self.p.graph, self.p
        dy_bytes = g.bytes(dy) if dy_bytes is None else dy_bytes
        weight = p.weights[f"{name}.weight"]
        dx = g.op(
            f"{name}.dgrad",
            "MatMul",
            [dy, weight],
            p.tokens * wide * p.element_bytes,
            matmul=Matmul(1, p.tokens, wide, out),
            bytes_read=dy_bytes + g.bytes(weight),
            rows=p.rows,
        )
        self._weight(
            name,
            "MatMul",
            [x, dy],
            wide * out,
            matmul=Matmul(1, wide, out, p.tokens),
            bytes_read=g.bytes(x) + dy_bytes,
        )
        return dx

    def norm(self, name: str, x: int, dy: int) -> int:
        """Gradient of the input of a RMSNorm, and beside it that of its weight."""
        p = self.p
        dx = p.elementwise(f"{name}.dgrad", "RMSNormGrad", [x, dy, p.weights[f"{name}.weight"]], _NORM_DGRAD)
        self._weight(name, "RMSNormGrad", [x, dy], p.hidden, flops=_NORM_WGRAD * p.tokens * p.hidden)
        return dx

    def embedding(self, tokens: int, dy: int) -> None:
        """Gradient of the table: zeros, to which the gradient of each token is added."""
        p = self.p
        elements = -(-p.vocabulary // p.ranks) * p.hidden
        self._weight("embedding", "EmbeddingGrad", [tokens, dy], elements, flops=p.tokens * p.hidden)

    def _weight(
        self,
        name: str,
        kind: str,
        inputs: Sequence[int],
        elements: int,
        flops: int = 0,
        matmul: Matmul | None = None,
        bytes_read: int | None = None,
    ) -> None:
        # a sum over tokens: no rows
        size = elements * self.buckets.gradient_bytes
        gradient = self.p.graph.op(
            f"{name}.wgrad", kind, inputs, size, flops=flops, matmul=matmul, bytes_read=bytes_read
        )
        self.buckets.add(Gradient(f"{name}.weight", elements, gradient))


def feed_forward_backward(b: Backward, width: int, name: str, x: int, saved: FeedForward, dy: int) -> int:
    """Gradient of the residual stream `x` in front of a SwiGLU layer of `width` inner channels on this chip."""
    p, inner, hidden = b.p, f"{name}.feed_forward", b.p.hidden
    product = b.linear(f"{inner}.down_proj", saved.product, dy, width, hidden)
    silu = p.elementwise(f"{inner}.multiply.silu_grad", "Mul", [product, saved.up])
    up = p.elementwise(f"{inner}.multiply.up_grad", "Mul", [product, saved.silu])
    gate = p.elementwise(f"{inner}.silu.grad", "SiluGrad", [silu, saved.gate], _SILU_GRAD)
    parts = [
        b.linear(f"{inner}.gate_proj", saved.normed, gate, hidden, width),
        b.linear(f"{inner}.up_proj", saved.normed, up, hidden, width),
    ]
    normed = p.all_reduce(f"{inner}.grad_all_reduce", p.elementwise(f"{inner}.grad_sum", "Add", parts))
    dx = b.norm(f"{name}.feed_forward_norm", x, normed)
    return p.elementwise(f"{name}.feed_forward_grad_add", "Add", [dx, dy])


def attention_backward(b: Backward, model: Model, name: str, saved: Attention, rotation: int, dy: int) -> int:
    """Gradient of the residual stream in front of the attention of a layer."""
    p, g, inner, heads = b.p, b.p.graph, f"{name}.attention", model.heads // b.p.ranks
    wide, hidden = heads * model.head, model.hidden
    mixed = b.linear(f"{inner}.o_proj", saved.mixed, dy, wide, hidden)
    inputs = [saved.query, saved.key, saved.value, saved.mixed, mixed]
    wide_bytes, narrow_bytes = g.bytes(saved.query), g.bytes(saved.key)
    # a key's gradient needs all queries behind it, so that a request can be cut from others, but not within
    grads = g.op(
        f"{inner}.flash.grad",
        "FlashAttentionGrad",
        inputs,
        wide_bytes + 2 * narrow_bytes,
        flops=int(_FLASH_GRAD * 4 * p.pairs * wide),
        matmul=Matmul(p.batch * heads, p.new, p.new, model.head),
        rows=Rows(p.batch, p.new, tuple(map(g.name_of, inputs))),
    )
    query = _rotary_backward(p, f"{inner}.q_rotary.grad", grads, rotation, wide_bytes)
    key = _rotary_backward(p, f"{inner}.k_rotary.grad", grads, rotation, narrow_bytes)
    narrow = narrow_bytes // (p.tokens * p.element_bytes)
    parts = [
        b.linear(f"{inner}.q_proj", saved.normed, query, hidden, wide),
        b.linear(f"{inner}.k_proj", saved.normed, key, hidden, narrow),
        b.linear(f"{inner}.v_proj", saved.normed, grads, hidden, narrow, narrow_bytes),
    ]
    normed = p.all_reduce(f"{inner}.grad_all_reduce", p.elementwise(f"{inner}.grad_sum", "AddN", parts, 2))
    dx = b.norm(f"{name}.attention_norm", saved.into, normed)
    return p.elementwise(f"{name}.attention_grad_add", "Add", [dx, dy])


def _rotary_backward(p: Pass, name: str, grads: int, rotation: int, size: int) -> int:
    """The rotation back of one of the three gradients that the attention yields in one tensor."""
    read = size + p.graph.bytes(rotation)
    flops = ROTARY * (size // p.element_bytes)
    return p.graph.op(name, "RotaryEmbedding", [grads, rotation], size, flops=flops, bytes_read=read, rows=p.rows)
