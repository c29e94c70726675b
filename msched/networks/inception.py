"""Inception v3 for inference: Szegedy et al., Rethinking the Inception Architecture, CVPR 2016, arXiv 1512.00567.

Laid out as torchvision does (`models/inception.py`): the auxiliary head left out, batch normalisation folded into the
convolutions, whose bias it becomes. With it 27.2 million parameters are published, 23.8 without, and 5.7 billion
multiply-adds an image of 299 x 299.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from msched.errors import OptionError
from msched.graph import Matmul, OpGraph
from msched.networks.assembly import Assembly, at_least

_SMALLEST = 75  # pixels; below, the last grid reduction has nothing left


@dataclass(frozen=True)
class _Map:
    """A feature map: its tensor, channels, and pixels along each side."""

    tensor: int
    channels: int
    side: int


def build(batch: int = 1, image: int = 299, dtype_bytes: int = 2) -> OpGraph:
    """94 convolutions, each with its ReLU, 14 poolings, 15 concatenations and the classifier.

    image: pixels along each side. dtype_bytes: of weights and activations.

    Raises OptionError: an image below 75 pixels, or a figure that is not a positive whole number.
    """
    at_least(1, batch=batch, image=image, dtype_bytes=dtype_bytes)
    if image < _SMALLEST:
        raise OptionError(f"image is {image}; Inception v3 needs at least {_SMALLEST} pixels along each side")
    net = _Network(Assembly("inception_v3"), batch, dtype_bytes)
    x = _Map(net.graph.source("image", batch * 3 * image * image * dtype_bytes), 3, image)
    return net.graph.graph({net.classify(_body(net, x), 1000)})


def _body(net: _Network, x: _Map) -> _Map:
    x = net.conv("Conv2d_1a", x, 32, (3, 3), stride=2)
    x = net.conv("Conv2d_2a", x, 32, (3, 3))
    x = net.conv("Conv2d_2b", x, 64, (3, 3), pad=1)
    x = net.pool("maxpool1", "MaxPool", x, stride=2)
    x = net.conv("Conv2d_3b", x, 80, (1, 1))
    x = net.conv("Conv2d_4a", x, 192, (3, 3))
    x = net.pool("maxpool2", "MaxPool", x, stride=2)
    for name, features in (("Mixed_5b", 32), ("Mixed_5c", 64), ("Mixed_5d", 64)):
        x = _figure_5(net, name, x, features)
    x = _reduction(net, "Mixed_6a", x)
    for name, width in (("Mixed_6b", 128), ("Mixed_6c", 160), ("Mixed_6d", 160), ("Mixed_6e", 192)):
        x = _figure_6(net, name, x, width)
    x = _second_reduction(net, "Mixed_7a", x)
    for name in ("Mixed_7b", "Mixed_7c"):
        x = _figure_7(net, name, x)
    return x


@dataclass(frozen=True)
class _Network:
    """Writes layers of a convolutional network into a graph."""

    graph: Assembly
    batch: int
    element_bytes: int

    def conv(
        self, name: str, x: _Map, channels: int, kernel: tuple[int, int], stride: int = 1, pad: int | None = None
    ) -> _Map:
        """Convolution and ReLU. `pad` is on all four borders; a kernel that is not square keeps the side as it is."""
        side = x.side if kernel[0] != kernel[1] else (x.side + 2 * (pad or 0) - kernel[0]) // stride + 1
        depth, rows = x.channels * prod(kernel), self.batch * side * side
        size = rows * channels * self.element_bytes
        weights = self.graph.source(f"{name}.weight", channels * depth * self.element_bytes)
        bias = self.graph.source(f"{name}.bias", channels * self.element_bytes)
        inputs = [x.tensor, weights, bias]
        tensor = self.graph.op(name, "Conv", inputs, size, matmul=Matmul(1, rows, channels, depth))
        tensor = self.graph.op(f"{name}.relu", "Relu", [tensor], size, flops=rows * channels)
        return _Map(tensor, channels, side)

    def chain(self, name: str, x: _Map, layers: Sequence[tuple[int, tuple[int, int]]]) -> _Map:
        """Convolutions that keep the side, numbered from 1; a lone one bears the plain name."""
        for number, (channels, kernel) in enumerate(layers, 1):
            pad = kernel[0] // 2
            x = self.conv(name if len(layers) == 1 else f"{name}_{number}", x, channels, kernel, pad=pad)
        return x

    def pool(self, name: str, kind: str, x: _Map, stride: int = 1) -> _Map:
        """3 x 3 pooling: padded where it keeps the side (stride 1), not where it halves it (stride 2)."""
        side = x.side if stride == 1 else (x.side - 3) // 2 + 1
        elements = self.batch * side * side * x.channels
        tensor = self.graph.op(name, kind, [x.tensor], elements * self.element_bytes, flops=9 * elements)
        return _Map(tensor, x.channels, side)

    def concat(self, name: str, branches: Sequence[_Map]) -> _Map:
        """Branches side by side along the channels."""
        channels, side = sum(b.channels for b in branches), branches[0].side
        size = self.batch * side * side * channels * self.element_bytes
        return _Map(self.graph.op(name, "Concat", [b.tensor for b in branches], size), channels, side)

    def classify(self, x: _Map, classes: int) -> int:
        """Global pooling and the fully connected layer; the tensor of logits."""
        elements, width = self.batch * x.channels, self.element_bytes
        flops = elements * x.side * x.side
        pooled = self.graph.op("avgpool", "GlobalAveragePool", [x.tensor], elements * width, flops=flops)
        weight = self.graph.source("fc.weight", classes * x.channels * width)
        bias = self.graph.source("fc.bias", classes * width)
        shape = Matmul(1, self.batch, classes, x.channels)
        return self.graph.op("fc", "Gemm", [pooled, weight, bias], self.batch * classes * width, matmul=shape)


def _figure_5(net: _Network, name: str, x: _Map, features: int) -> _Map:
    """Figure 5 of the paper: the 5 x 5 branch of old beside two stacked 3 x 3 (the 35 x 35 grid)."""
    branches = [
        net.chain(f"{name}.branch1x1", x, [(64, (1, 1))]),
        net.chain(f"{name}.branch5x5", x, [(48, (1, 1)), (64, (5, 5))]),
        net.chain(f"{name}.branch3x3dbl", x, [(64, (1, 1)), (96, (3, 3)), (96, (3, 3))]),
        net.chain(f"{name}.branch_pool", net.pool(f"{name}.pool", "AveragePool", x), [(features, (1, 1))]),
    ]
    return net.concat(name, branches)


def _reduction(net: _Network, name: str, x: _Map) -> _Map:
    """Figure 10 of the paper: convolutions and a pooling of stride 2 side by side."""
    double = net.chain(f"{name}.branch3x3dbl", x, [(64, (1, 1)), (96, (3, 3))])
    branches = [
        net.conv(f"{name}.branch3x3", x, 384, (3, 3), stride=2),
        net.conv(f"{name}.branch3x3dbl_3", double, 96, (3, 3), stride=2),
        net.pool(f"{name}.pool", "MaxPool", x, stride=2),
    ]
    return net.concat(name, branches)


def _figure_6(net: _Network, name: str, x: _Map, width: int) -> _Map:
    """Figure 6 of the paper with n = 7: 7 x 7 as 1 x 7 and 7 x 1 (the 17 x 17 grid)."""
    row, column = (1, 7), (7, 1)
    double = [(width, (1, 1)), (width, column), (width, row), (width, column), (192, row)]
    branches = [
        net.chain(f"{name}.branch1x1", x, [(192, (1, 1))]),
        net.chain(f"{name}.branch7x7", x, [(width, (1, 1)), (width, row), (192, column)]),
        net.chain(f"{name}.branch7x7dbl", x, double),
        net.chain(f"{name}.branch_pool", net.pool(f"{name}.pool", "AveragePool", x), [(192, (1, 1))]),
    ]
    return net.concat(name, branches)


def _second_reduction(net: _Network, name: str, x: _Map) -> _Map:
    narrow = net.chain(f"{name}.branch3x3_1", x, [(192, (1, 1))])
    wide = net.chain(f"{name}.branch7x7x3", x, [(192, (1, 1)), (192, (1, 7)), (192, (7, 1))])
    branches = [
        net.conv(f"{name}.branch3x3_2", narrow, 320, (3, 3), stride=2),
        net.conv(f"{name}.branch7x7x3_4", wide, 192, (3, 3), stride=2),
        net.pool(f"{name}.pool", "MaxPool", x, stride=2),
    ]
    return net.concat(name, branches)


def _figure_7(net: _Network, name: str, x: _Map) -> _Map:
    """Figure 7 of the paper: filter banks that part again (the 8 x 8 grid)."""

    def parted(branch: str, stem: _Map, number: int) -> _Map:
        halves = [net.chain(f"{branch}_{number}{s}", stem, [(384, k)]) for s, k in (("a", (1, 3)), ("b", (3, 1)))]
        return net.concat(branch, halves)

    single, double = f"{name}.branch3x3", f"{name}.branch3x3dbl"
    branches = [
        net.chain(f"{name}.branch1x1", x, [(320, (1, 1))]),
        parted(single, net.chain(f"{single}_1", x, [(384, (1, 1))]), 2),
        parted(double, net.chain(double, x, [(448, (1, 1)), (384, (3, 3))]), 3),
        net.chain(f"{name}.branch_pool", net.pool(f"{name}.pool", "AveragePool", x), [(192, (1, 1))]),
    ]
    return net.concat(name, branches)
