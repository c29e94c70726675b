"""An attention layer small enough to cut by hand: 2 requests of 4 tokens, 8 channels in 2 heads, 2 bytes each."""

from __future__ import annotations

from msched.graph import Matmul, OpGraph, Rows
from msched.networks.assembly import Assembly

REQUESTS, TOKENS, CHANNELS, HEADS, SIZE = 2, 4, 8, 2, 2
WEIGHT = CHANNELS * CHANNELS * SIZE  # 128 bytes, by chance as many as the 8 tokens have


def attention_layer(*, causal: bool = True, requests: int = REQUESTS, tokens: int = TOKENS) -> OpGraph:
    """q, k, v -> flash -> o -> all-reduce -> add."""
    graph, plain = Assembly("layer"), Rows(requests, tokens)
    count = requests * tokens
    data = count * CHANNELS * SIZE
    x = graph.source("x", data, token_wise=True)

    def linear(name: str, source: int) -> int:
        weight = graph.source(f"{name}.weight", WEIGHT)
        shape = Matmul(1, count, CHANNELS, CHANNELS)
        return graph.op(name, "MatMul", [source, weight], data, matmul=shape, rows=plain, workspace_bytes=count)

    q, k, v = (linear(name, x) for name in ("q", "k", "v"))
    # a pair of a query and a key costs 2 products of 8 channels
    pairs = requests * (tokens * (tokens + 1) // 2 if causal else tokens * tokens)
    mixed = graph.op(
        "flash",
        "FlashAttention",
        [q, k, v],
        data,
        flops=pairs * 2 * 2 * CHANNELS,
        matmul=Matmul(requests * HEADS, tokens, tokens, CHANNELS // HEADS),
        rows=Rows(requests, tokens, ("k", "v"), causal),
    )
    projected = linear("o", mixed)
    reduced = graph.op(
        "reduce",
        "HcomAllReduce",
        [projected],
        data,
        participants=8,
        payload_bytes=data,
        communicator="tp",
        rows=plain,
    )
    return graph.graph({graph.op("add", "Add", [x, reduced], data, flops=count * CHANNELS, rows=plain)})


def chained(*, rows: tuple[int, int] = (1, 12), attends: bool = False, causal: bool = True) -> OpGraph:
    """Two ops, the second of which reads, or attends to, the first."""
    graph = Assembly("chain")
    a = graph.op("a", "Relu", [graph.source("x", 12, token_wise=True)], 12, flops=12, rows=Rows(*rows))
    second = Rows(*rows, ("a",), causal) if attends else Rows(*rows)
    return graph.graph({graph.op("b", "Attention" if attends else "Relu", [a], 12, flops=12, rows=second)})


def named_edges(graph: OpGraph) -> set[tuple[str, str]]:
    """Edges by the names of their ends."""
    return {(graph.ops[u].name, graph.ops[v].name) for u, v in graph.edges.tolist()}


def short_edges(graph: OpGraph) -> set[str]:
    """Edges as `k0 f1` for those of `k.slice0` and `f.slice1`."""
    short = {op.name: op.name.replace(".slice", "") for op in graph.ops}
    return {f"{short[u]} {short[v]}" for u, v in named_edges(graph)}
