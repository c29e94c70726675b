"""A mixture-of-experts layer: one chip's share under tensor and expert parallelism.

DeepSeekMoE, arXiv 2405.04434, section 2.2: shared experts beside routed ones, to which an all-to-all sends each token
and from which another brings it back. The shared experts depend on neither. Every expert is cut over the chips of
tensor parallelism, as Megatron-Core does it (expert tensor parallelism).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msched.graph import Matmul
from msched.networks.transformer import Pass

# Operations an element, from the definitions: sigmoid and product; a score of the gate, compared once; product and sum.
_SWIGLU, _GATE, _WEIGHTED_SUM = 5, 5, 2


@dataclass(frozen=True)
class Mixture:
    """A layer of `routed` and `shared` experts of `width`, of which a token takes `active` and all.

    ranks: groups of chips that the routed experts are spread over. grouped: whether the experts of a chip are computed
    in one grouped product, or each in ops of its own.
    """

    width: int
    routed: int
    shared: int
    active: int
    ranks: int
    grouped: bool


def mixture(p: Pass, layer: Mixture, name: str, x: int) -> int:
    """Shared beside routed experts; a partial sum where several chips share each expert.

    Tokens spread evenly over the experts: the chip sends and receives tokens x active copies.
    """
    g, size, ranks = p.graph, p.element_bytes, layer.ranks
    copies = p.tokens * layer.active
    scores = p.linear(f"{name}.router", x, p.hidden, layer.routed)
    # a weight and the number of an expert, of 4 bytes each
    choice = g.op(
        f"{name}.top_k", "MoeGatingTopK", [scores], copies * 8, flops=_GATE * p.tokens * layer.routed, rows=p.rows
    )
    sent = g.op(f"{name}.permute", "MoeInitRouting", [x, choice], copies * p.hidden * size, rows=p.rows)
    if ranks > 1:
        sent = _exchange(p, f"{name}.dispatch", sent, ranks)
        sent = p.elementwise(f"{name}.sort", "Permute", [sent], 0)
    fed = _experts(p, layer, f"{name}.experts", sent, copies)
    if ranks > 1:
        fed = [g.op(f"{name}.unsort", "Permute", fed, copies * p.hidden * size, rows=p.rows)]
        fed = [_exchange(p, f"{name}.combine", fed[0], ranks)]
    routed = g.op(
        f"{name}.finalize",
        "MoeFinalizeRouting",
        [*fed, choice],
        p.tokens * p.hidden * size,
        flops=_WEIGHTED_SUM * copies * p.hidden,
        rows=p.rows,
    )
    if not layer.shared:
        return routed
    width = layer.shared * layer.width // p.ranks
    return p.elementwise(f"{name}.add", "Add", [p.feed_forward(f"{name}.shared", x, width), routed])


def _exchange(p: Pass, name: str, x: int, ranks: int) -> int:
    payload = p.graph.bytes(x)
    return p.graph.op(
        name,
        "HcomAllToAll",
        [x],
        payload,
        participants=ranks,
        payload_bytes=payload,
        communicator="ep",
        rows=p.rows,
    )


def _experts(p: Pass, layer: Mixture, name: str, x: int, copies: int) -> Sequence[int]:
    """The outputs of the experts of this chip for `copies` of tokens, in one tensor or in one an expert."""
    width, local = layer.width // p.ranks, layer.routed // layer.ranks
    busy = min(local, copies)
    if layer.grouped:
        up = _product(p, f"{name}.gate_up", x, (local, busy), copies, p.hidden, 2 * width)
        up = _swiglu(p, f"{name}.swiglu", up, copies * width)
        return [_product(p, f"{name}.down", up, (local, busy), copies, width, p.hidden)]
    result = []
    for index in range(local):
        inner = f"{name}{index}"
        share = copies // busy + (index < copies % busy)
        if index < busy:
            up = _product(p, f"{inner}.gate_up", x, (1, 1), share, p.hidden, 2 * width)
            up = _swiglu(p, f"{inner}.swiglu", up, share * width)
            result.append(_product(p, f"{inner}.down", up, (1, 1), share, width, p.hidden))
        else:
            p.weight(f"{inner}.gate_up.weight", p.hidden * 2 * width)
            p.weight(f"{inner}.down.weight", width * p.hidden)
    return result


def _product(p: Pass, name: str, x: int, experts: tuple[int, int], copies: int, wide: int, out: int) -> int:
    """`copies` of tokens by the weights (wide, out) of their experts: of the two numbers, all and those that meet any.

    The weights of the others are not read.
    """
    local, busy = experts
    weight = p.weight(f"{name}.weight", local * wide * out)
    return p.graph.op(
        name,
        "MatMul" if local == 1 else "GroupedMatMul",
        [x, weight],
        copies * out * p.element_bytes,
        flops=2 * copies * wide * out,
        matmul=Matmul(busy, -(-copies // busy), out, wide),
        bytes_read=(copies + busy * out) * wide * p.element_bytes,
        rows=p.rows,
    )


def _swiglu(p: Pass, name: str, x: int, elements: int) -> int:
    return p.graph.op(name, "SwiGlu", [x], elements * p.element_bytes, flops=_SWIGLU * elements, rows=p.rows)
