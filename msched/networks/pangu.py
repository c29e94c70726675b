"""A dense Pangu-like model of 71 billion parameters: one chip's share of a forward pass under tensor parallelism.

The article on multi-stream parallelism of the Ascend community (hiascend.com, techArticles 20240701-1) reports a gain
on a model of the Pangu series with 71 billion parameters whose dimensions are not public. Assumed here: the layers of
the public dense Pangu models (openPangu-Embedded-1B and 7B, configuration_openpangu_dense.py: RMSNorm, SwiGLU, rotary
positions, grouped-query attention with 8 key heads of 128 channels, projections of the attention with a bias, a
vocabulary of 153,376), and the 80 layers of 8,192 and 28,672 channels of the one published dense decoder of that size
(Llama 3 70B, arXiv 2407.21783, table 3), with which the parameters come to 71.0 billion.
"""

from __future__ import annotations

from dataclasses import replace

from msched.graph import OpGraph
from msched.networks.assembly import one_of
from msched.networks.transformer import LOGITS, PHASES, Model, inference

MODEL = Model(80, 8192, 64, 8, 28672, 153376, bias=True)
ASSUMED = (
    "pangu: the dimensions of the 71 B model are not public; assumed: 80 layers, hidden 8192, 64 heads, 8 key heads, "
    "feed-forward 28672, vocabulary 153376, of which any can be given"
)


def build(
    tensor_parallel: int = 8,
    phase: str = "prefill",
    batch: int = 1,
    sequence: int = 2048,
    context: int | None = None,
    layers: int = MODEL.layers,
    dtype_bytes: int = 2,
    logits: str = "last",
    hidden: int = MODEL.hidden,
    heads: int = MODEL.heads,
    key_value_heads: int = MODEL.key_value_heads,
    feed_forward: int = MODEL.feed_forward,
    vocabulary: int = MODEL.vocabulary,
) -> OpGraph:
    """One chip of `tensor_parallel` in one forward pass, op for op that of `llama.build`, which explains the options.

    A warning in the graph says that the dimensions are assumed.

    Raises OptionError: an unknown phase or logits; chips that do not divide the heads; dimensions that do not fit
    together.
    """
    one_of("phase", phase, PHASES)
    every_token = one_of("logits", logits, LOGITS)
    model = MODEL.changed(
        layers=layers,
        hidden=hidden,
        heads=heads,
        key_value_heads=key_value_heads,
        feed_forward=feed_forward,
        vocabulary=vocabulary,
    )
    model.check_split("pangu", tensor_parallel)
    graph, output = inference(
        f"pangu_{phase}",
        model,
        tensor_parallel=tensor_parallel,
        phase=phase,
        batch=batch,
        sequence=sequence,
        context=context,
        dtype_bytes=dtype_bytes,
        every_token=every_token,
    )
    return replace(graph.graph({output}), warnings=(ASSUMED,))
