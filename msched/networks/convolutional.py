"""Layers of convolutional networks, batch normalisation folded into the convolutions, whose bias it becomes.

A batch of more than one image can be cut along it: then every op says in `Op.rows` that it has a row an image.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import NamedTuple

from msched.graph import Matmul, Rows
from msched.networks.assembly import Assembly

Kernel = tuple[int, int]


class FeatureMap(NamedTuple):
    """A feature map: its tensor, channels, and pixels along each side."""

    tensor: int
    channels: int
    side: int


@dataclass(frozen=True)
class Layers:
    """Writes layers of a convolutional network into a graph, for a batch of images.

    Names of ops begin with `prefix`, those of weights do not: layers of the same name share their weights.
    """

    graph: Assembly
    batch: int
    element_bytes: int
    prefix: str = ""
    weights: dict[str, int] = field(default_factory=dict)

    @cached_property
    def rows(self) -> Rows | None:
        """A row an image, where there are several."""
        return Rows(self.batch, 1) if self.batch > 1 else None

    def image(self, name: str, side: int) -> FeatureMap:
        """An input of the network: three channels of `side` x `side` pixels."""
        size = self.batch * 3 * side * side * self.element_bytes
        return FeatureMap(self.graph.source(name, size, token_wise=self.batch > 1), 3, side)

    def conv(
        self,
        name: str,
        x: FeatureMap,
        channels: int,
        kernel: Kernel,
        stride: int = 1,
        pad: int | None = None,
        *,
        relu: bool = True,
        shared: str | None = None,
    ) -> FeatureMap:
        """Convolution, and a ReLU behind it unless `relu` is false.

        `pad` is on all four borders; a kernel that is not square keeps the side as it is. `shared` names the weights,
        where other layers have the same.
        """
        side = x.side if kernel[0] != kernel[1] else (x.side + 2 * (pad or 0) - kernel[0]) // stride + 1
        depth, rows = x.channels * prod(kernel), self.batch * side * side
        weights = self._weight(f"{shared or name}.weight", channels * depth)
        bias = self._weight(f"{shared or name}.bias", channels)
        size = rows * channels * self.element_bytes
        inputs, shape = [x.tensor, weights, bias], Matmul(1, rows, channels, depth)
        tensor = self.graph.op(self.prefix + name, "Conv", inputs, size, matmul=shape, rows=self.rows)
        made = FeatureMap(tensor, channels, side)
        return self.relu(f"{name}.relu", made) if relu else made

    def separable(self, name: str, x: FeatureMap, channels: int, kernel: int, stride: int = 1) -> FeatureMap:
        """A convolution of each channel by itself, padded, then one of 1 x 1 over them (Chollet, arXiv 1610.02357)."""
        side = -(-x.side // stride)
        elements, taps = self.batch * side * side * x.channels, kernel * kernel
        inputs = [x.tensor, self._weight(f"{name}.depthwise.weight", x.channels * taps)]
        size, flops = elements * self.element_bytes, 2 * elements * taps
        tensor = self.graph.op(
            f"{self.prefix}{name}.depthwise", "DepthwiseConv", inputs, size, flops=flops, rows=self.rows
        )
        return self.conv(f"{name}.pointwise", FeatureMap(tensor, x.channels, side), channels, (1, 1), relu=False)

    def relu(self, name: str, x: FeatureMap) -> FeatureMap:
        """Rectified linear unit."""
        return self._elementwise(name, "Relu", [x], 1)

    def add(self, name: str, summands: Sequence[FeatureMap]) -> FeatureMap:
        """Sum of maps of one shape."""
        return self._elementwise(name, "Add", summands, len(summands) - 1)

    def weighted_sum(self, name: str, summands: Sequence[FeatureMap]) -> FeatureMap:
        """Sum of maps of one shape, each times a learned weight of its own."""
        weights = self._weight(f"{name}.weight", len(summands))
        return self._elementwise(name, "Sum", summands, 2 * len(summands) - 1, [weights])

    def mean(self, name: str, summands: Sequence[FeatureMap]) -> FeatureMap:
        """Mean of maps of one shape."""
        return self._elementwise(name, "Mean", summands, len(summands))

    def pool(
        self, name: str, kind: str, x: FeatureMap, stride: int = 1, kernel: int = 3, pad: int | None = None
    ) -> FeatureMap:
        """Pooling. Without `pad`, it is padded where it keeps the side (stride 1), and not where it does not."""
        border = pad if pad is not None else kernel // 2 if stride == 1 else 0
        side = (x.side + 2 * border - kernel) // stride + 1
        elements = self.batch * side * side * x.channels
        size, flops = elements * self.element_bytes, kernel * kernel * elements
        tensor = self.graph.op(self.prefix + name, kind, [x.tensor], size, flops=flops, rows=self.rows)
        return FeatureMap(tensor, x.channels, side)

    def upsample(self, name: str, x: FeatureMap, side: int) -> FeatureMap:
        """The nearest pixel of a smaller map for each of `side` x `side`."""
        size = self.batch * side * side * x.channels * self.element_bytes
        tensor = self.graph.op(self.prefix + name, "Upsample", [x.tensor], size, rows=self.rows)
        return FeatureMap(tensor, x.channels, side)

    def concat(self, name: str, branches: Sequence[FeatureMap]) -> FeatureMap:
        """Branches side by side along the channels."""
        channels, side = sum(b.channels for b in branches), branches[0].side
        size = self.batch * side * side * channels * self.element_bytes
        inputs = [b.tensor for b in branches]
        return FeatureMap(self.graph.op(self.prefix + name, "Concat", inputs, size, rows=self.rows), channels, side)

    def classify(self, x: FeatureMap, classes: int) -> int:
        """Global pooling and the fully connected layer; the tensor of logits."""
        elements, width = self.batch * x.channels, self.element_bytes
        size, flops = elements * width, elements * x.side * x.side
        pooled = self.graph.op(
            f"{self.prefix}avgpool", "GlobalAveragePool", [x.tensor], size, flops=flops, rows=self.rows
        )
        inputs = [pooled, self._weight("fc.weight", classes * x.channels), self._weight("fc.bias", classes)]
        shape, size = Matmul(1, self.batch, classes, x.channels), self.batch * classes * width
        return self.graph.op(f"{self.prefix}fc", "Gemm", inputs, size, matmul=shape, rows=self.rows)

    def _elementwise(
        self, name: str, kind: str, maps: Sequence[FeatureMap], operations: int, weights: Sequence[int] = ()
    ) -> FeatureMap:
        first = maps[0]
        elements = self.batch * first.side * first.side * first.channels
        inputs, size = [*(m.tensor for m in maps), *weights], elements * self.element_bytes
        tensor = self.graph.op(self.prefix + name, kind, inputs, size, flops=operations * elements, rows=self.rows)
        return FeatureMap(tensor, first.channels, first.side)

    def _weight(self, name: str, elements: int) -> int:
        if name not in self.weights:
            self.weights[name] = self.graph.source(name, elements * self.element_bytes)
        return self.weights[name]
