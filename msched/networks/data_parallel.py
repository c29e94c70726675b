"""Gradients of weights over data-parallel replicas, and the update of the weights, bucket by bucket.

Buckets are filled in the order in which the backward pass yields gradients, and all-reduced once they are full: Li
et al., PyTorch Distributed, arXiv 2006.15704, section 3.2. The optimizer is AdamW (Loshchilov and Hutter, arXiv
1711.05101, algorithm 2) on weights and moments in single precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from msched.networks.transformer import Pass

_STATE = 3 * 4  # bytes of a weight and its two moments in single precision
# Operations a weight: two moving averages and a square, 7; root, sum, quotient, 3; decay, sum, two products, 4.
_ADAMW = 14


@dataclass(frozen=True)
class Gradient:
    """The gradient of a weight: the weight's name and elements, and the tensor."""

    weight: str
    elements: int
    tensor: int


@dataclass(frozen=True)
class Buckets:
    """Gradients on their way to the optimizer.

    replicas: chips that hold the same weights. least_bytes: a bucket is full once it holds at least so many.
    gradient_bytes: of an element.
    """

    p: Pass
    replicas: int
    least_bytes: int
    gradient_bytes: int
    _waiting: list[Gradient] = field(default_factory=list)
    _full: list[tuple[list[Gradient], list[int]]] = field(default_factory=list)

    def add(self, gradient: Gradient) -> None:
        """Put a gradient into the bucket that is being filled."""
        self._waiting.append(gradient)
        if sum(g.elements for g in self._waiting) * self.gradient_bytes >= self.least_bytes:
            self.close()

    def close(self) -> None:
        """All-reduce what waits, in place: an empty tensor says that it is done."""
        if not self._waiting:
            return
        bucket, tensors = list(self._waiting), [g.tensor for g in self._waiting]
        self._waiting.clear()
        size = sum(g.elements for g in bucket) * self.gradient_bytes
        if self.replicas > 1:
            reduced = self.p.graph.op(
                f"bucket{len(self._full)}.all_reduce",
                "HcomAllReduce",
                tensors,
                0,
                bytes_written=size,
                participants=self.replicas,
                payload_bytes=size,
                communicator="dp",
            )
            tensors.append(reduced)
        self._full.append((bucket, tensors))

    def update(self) -> Sequence[tuple[list[Gradient], int]]:
        """Update the weights of every bucket in place; each bucket with the empty tensor that says that it is done."""
        return [(bucket, self._adamw(f"bucket{i}.adamw", bucket, t)) for i, (bucket, t) in enumerate(self._full)]

    def _adamw(self, name: str, bucket: list[Gradient], tensors: list[int]) -> int:
        elements = sum(g.elements for g in bucket)
        state = self.p.graph.source(f"{name}.state", elements * _STATE)
        written = elements * (_STATE + self.p.element_bytes)
        return self.p.graph.op(name, "AdamW", [*tensors, state], 0, flops=_ADAMW * elements, bytes_written=written)
