"""One training step of a LLaMA-like decoder: one chip's share under tensor and data parallelism.

Tensor parallelism: Megatron-LM, Shoeybi et al., arXiv 1909.08053, section 3, with its loss over a split vocabulary.
Data parallelism and optimizer: `msched.networks.data_parallel`. Recomputation of whole layers: Korthikanti et al.,
arXiv 2205.05198, section 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from msched.errors import OptionError
from msched.graph import OpGraph
from msched.networks.assembly import Assembly, at_least
from msched.networks.backward import Backward, FeedForward, attention_backward, feed_forward_backward
from msched.networks.data_parallel import Buckets, Gradient
from msched.networks.llama import model_of
from msched.networks.transformer import Attention, Model, Pass, attention

_SINGLE = 4  # bytes
# Operations a logit: comparison; difference, exponential, sum; difference, exponential, quotient.
_MAX, _EXPONENTIALS, _LOSS_GRAD = 1, 3, 3


def build(
    size: str = "7b",
    tensor_parallel: int = 8,
    data_parallel: int = 8,
    batch: int = 1,
    sequence: int = 2048,
    layers: int | None = None,
    recompute: bool = False,
    bucket_bytes: int = 80 * 2**20,
    dtype_bytes: int = 2,
    gradient_bytes: int = 4,
    hidden: int | None = None,
    heads: int | None = None,
    key_value_heads: int | None = None,
    feed_forward: int | None = None,
    vocabulary: int | None = None,
) -> OpGraph:
    """Forward, loss, backward, gradient all-reduce and update: 48 ops a layer, 44 without tensor parallelism.

    size: as in `llama.build`, and so the five dimensions at the end.
    batch: requests of `sequence` tokens on one of `data_parallel` replicas, computed in one go.
    recompute: keeps only the input of each layer, and computes the layer once more, but for its last projection, when
        the backward pass comes to it.
    bucket_bytes: a bucket of gradients is full once it holds at least so many.
    dtype_bytes: of weights and activations. gradient_bytes: of the gradients of weights.

    Activations live until the backward pass has read them. A bucket is updated in place, after the last op that reads
    its weights. The norm of the gradients is not clipped: that would hold every update back to the end.

    Over all chips of one replica the flops come to 6 T (P - V d) in the matrix products, for T tokens and P parameters,
    V d of which are the embedding, and to 3.5 times those of the forward pass in the attention (FlashAttention-2, arXiv
    2307.08691, section 4.1).

    Raises OptionError: an unknown size; chips that do not divide the heads; dimensions that do not fit together.
    """
    size, model = model_of(size)
    model = model.changed(
        layers=layers,
        hidden=hidden,
        heads=heads,
        key_value_heads=key_value_heads,
        feed_forward=feed_forward,
        vocabulary=vocabulary,
    )
    at_least(1, data_parallel=data_parallel, batch=batch, sequence=sequence)
    at_least(1, bucket_bytes=bucket_bytes, dtype_bytes=dtype_bytes, gradient_bytes=gradient_bytes)
    if not isinstance(recompute, bool):
        raise OptionError(f"recompute is {recompute!r}; true or false is needed")
    model.check_split(f"llama {size}", tensor_parallel)
    graph = Assembly(f"training_{size}")
    p = Pass(graph, model.hidden, model.vocabulary, tensor_parallel, batch, sequence, 0, dtype_bytes)
    buckets = Buckets(p, data_parallel, bucket_bytes, gradient_bytes)
    step = _Step(p, model, p.rotary_table(model.head), Backward(p, buckets))
    tokens, saved = p.token_numbers(), []
    x = p.embedding(tokens)
    for index in range(model.layers):
        saved.append(step.forward(f"layer{index}", x))
        x = step.close(f"layer{index}", *saved[-1])
    loss, dy = step.loss(x)
    after: list[tuple[int, int]] = []
    for index in reversed(range(model.layers)):
        name, tensors = f"layer{index}", saved.pop()
        if recompute:
            tensors = step.again().forward(name, tensors[0].into)
            after.append((dy, tensors[0].normed))
        dy = step.backward(name, *tensors, dy)
    step.gradients.embedding(tokens, dy)
    buckets.close()
    updates = buckets.update()
    return _ordered(graph.graph({loss, *(done for _, done in updates)}), p, loss, after, updates)


@dataclass(frozen=True)
class _Step:
    p: Pass
    model: Model
    rotation: int
    gradients: Backward

    @property
    def width(self) -> int:
        return self.model.feed_forward // self.p.ranks

    def again(self) -> _Step:
        """The same, for ops that compute once more what was computed before."""
        return replace(self, p=replace(self.p, prefix="recompute."))

    def forward(self, name: str, x: int) -> tuple[Attention, FeedForward]:
        """A layer up to its last projection: what the backward pass needs."""
        first = attention(self.p, self.model, name, x, self.rotation, cached=False)
        normed = self.p.norm(f"{name}.feed_forward_norm", first.out)
        gate, up = self.p.gates(f"{name}.feed_forward", normed, self.width)
        return first, FeedForward(normed, gate, up, *self.p.product(f"{name}.feed_forward", gate, up))

    def close(self, name: str, first: Attention, second: FeedForward) -> int:
        """The last projection of a layer and its addition to the residual stream."""
        fed = self.p.linear(f"{name}.feed_forward.down_proj", second.product, self.width, self.p.hidden)
        fed = self.p.all_reduce(f"{name}.feed_forward.all_reduce", fed)
        return self.p.elementwise(f"{name}.feed_forward_add", "Add", [first.out, fed])

    def loss(self, x: int) -> tuple[int, int]:
        """The loss and the gradient of the residual stream `x`: cross-entropy over a vocabulary that the chips share.

        As Megatron-LM's fused one: the largest logit, then the sum of exponentials and the logit that was asked for,
        go over all chips; the exponentials are computed again for the gradient.
        """
        p, g = self.p, self.p.graph
        share = -(-p.vocabulary // p.ranks)
        normed = p.norm("norm", x)
        logits = p.linear("lm_head", normed, p.hidden, share)
        labels = g.source("labels", p.tokens * 8, token_wise=True)
        elements, scalar = p.tokens * share, p.tokens * _SINGLE
        most = g.op("loss.max", "ReduceMax", [logits], scalar, flops=_MAX * elements, rows=p.rows)
        most = p.all_reduce("loss.max_all_reduce", most)
        inputs, flops = [logits, most, labels], _EXPONENTIALS * elements
        sums = g.op("loss.sum_exp", "ReduceSum", inputs, 2 * scalar, flops=flops, rows=p.rows)
        sums = p.all_reduce("loss.sum_all_reduce", sums)
        loss = g.op("loss", "CrossEntropyLoss", [sums], _SINGLE, flops=3 * p.tokens)
        dy = p.elementwise("loss.grad", "SoftmaxGrad", [logits, most, sums, labels], _LOSS_GRAD)
        dy = self.gradients.linear("lm_head", normed, dy, p.hidden, share)
        return loss, self.gradients.norm("norm", x, p.all_reduce("lm_head.grad_all_reduce", dy))

    def backward(self, name: str, first: Attention, second: FeedForward, dy: int) -> int:
        """Gradient of the residual stream in front of a layer from that behind it."""
        dy = feed_forward_backward(self.gradients, self.width, name, first.out, second, dy)
        return attention_backward(self.gradients, self.model, name, first, self.rotation, dy)


def _ordered(
    graph: OpGraph,
    p: Pass,
    loss: int,
    after: Sequence[tuple[int, int]],
    updates: Sequence[tuple[Sequence[Gradient], int]],
) -> OpGraph:
    """The graph with what no tensor says: recomputation waits for its gradient, an update for the readers of weights.

    The forward pass lies in front of every gradient, so that only readers behind the loss count.
    """
    made = [-1 if tensor.producer is None else tensor.producer for tensor in graph.tensors]
    control = [(made[u], made[v]) for u, v in after]
    for bucket, done in updates:
        weights = (graph.tensors[p.weights[gradient.weight]] for gradient in bucket)
        readers = {reader for weight in weights for reader in weight.consumers if reader > made[loss]}
        control += [(reader, made[done]) for reader in sorted(readers)]
    return replace(graph, control=tuple(control))
