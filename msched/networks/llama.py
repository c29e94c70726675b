"""LLaMA and Llama 3: one chip's share of a forward pass under tensor parallelism.

Dimensions: LLaMA, Touvron et al., arXiv 2302.13971, table 2 (feed-forward widths are 2/3 of 4 d, rounded up to a
multiple of 256, section 2.2); Llama 3, Grattafiori et al., arXiv 2407.21783, table 3 (vocabulary as released).
Layers and partition: `msched.networks.transformer`.
"""

from __future__ import annotations

from msched.graph import OpGraph
from msched.networks.assembly import one_of
from msched.networks.transformer import LOGITS, PHASES, Model, inference

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


def model_of(size: str) -> tuple[str, Model]:
    """Name in small letters and dimensions of a published size. Raises OptionError for an unknown one."""
    size = size.lower() if isinstance(size, str) else size
    return size, one_of("size", size, MODELS)


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
    hidden: int | None = None,
    heads: int | None = None,
    key_value_heads: int | None = None,
    feed_forward: int | None = None,
    vocabulary: int | None = None,
) -> OpGraph:
    """One chip of `tensor_parallel` in one forward pass: 20 ops a layer (18 on a single chip), and up to 6 around them.

    size: 7b, 13b, 30b (= 33b), 65b of LLaMA; 8b, 70b, 405b of Llama 3.
    phase: "prefill" computes `sequence` tokens of each of `batch` requests, "decode" one token each.
    context: tokens that are cached already; 0 at prefill and `sequence` at decode unless given.
    layers: fewer or more of them than the model has. dtype_bytes: of weights, activations and cache.
    logits: of the "last" token of each request, or of "all".
    hidden, heads, key_value_heads, feed_forward, vocabulary: other dimensions than those of the size.

    Over all chips the flops come to 2 T (P - V d) in the matrix products, for T tokens and P parameters, V d of which
    are the embedding, a mere look-up (the head counts for as many tokens as have logits), and to 4 L d K in the
    attention, where K = batch (new context + new (new + 1) / 2) is the number of query-key pairs under the causal mask.

    Raises OptionError: an unknown size, phase or logits; chips that do not divide the heads; dimensions that do not fit
    together.
    """
    size, model = model_of(size)
    one_of("phase", phase, PHASES)
    every_token = one_of("logits", logits, LOGITS)
    model = model.changed(
        layers=layers,
        hidden=hidden,
        heads=heads,
        key_value_heads=key_value_heads,
        feed_forward=feed_forward,
        vocabulary=vocabulary,
    )
    model.check_split(f"llama {size}", tensor_parallel)
    graph, output = inference(
        f"llama_{size}_{phase}",
        model,
        tensor_parallel=tensor_parallel,
        phase=phase,
        batch=batch,
        sequence=sequence,
        context=context,
        dtype_bytes=dtype_bytes,
        every_token=every_token,
    )
    return graph.graph({output})
