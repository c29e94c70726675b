"""Inception v3 for inference: Szegedy et al., Rethinking the Inception Architecture, CVPR 2016, arXiv 1512.00567.

Laid out as torchvision does (`models/inception.py`): the auxiliary head left out, batch normalisation folded into the
convolutions, whose bias it becomes. With it 27.2 million parameters are published, 23.8 without, and 5.7 billion
multiply-adds an image of 299 x 299.
"""

from __future__ import annotations

from collections.abc import Sequence

from msched.errors import OptionError
from msched.graph import OpGraph
from msched.networks.assembly import Assembly, at_least
from msched.networks.convolutional import FeatureMap, Kernel, Layers

_SMALLEST = 75  # pixels; below, the last grid reduction has nothing left
_BLOCKS = (3, 4, 2)
_POOLED = (32, 64)  # channels of the pooling branch on the first grid; the last entry holds for all further blocks
_WIDTHS = (128, 160, 160, 192)  # of the factorised convolutions on the second grid, likewise


def build(batch: int = 1, image: int = 299, dtype_bytes: int = 2, blocks: Sequence[int] = _BLOCKS) -> OpGraph:
    """94 convolutions, each with its ReLU, 14 poolings, 15 concatenations and the classifier: 218 ops.

    image: pixels along each side. dtype_bytes: of weights and activations.
    blocks: on the grids of 35 x 35, 17 x 17 and 8 x 8. Those (a, b, c) make 38 + 16 a + 22 b + 22 c ops, so that
        (1, 0, 0) has 54, (15, 20, 10) 938 and (1500, 2200, 1250) 99,938. Blocks beyond the published ones repeat the
        last of their grid.

    Raises OptionError: an image below 75 pixels, a figure that is not a positive whole number, or not three `blocks`.
    """
    at_least(1, batch=batch, image=image, dtype_bytes=dtype_bytes)
    if image < _SMALLEST:
        raise OptionError(f"image is {image}; Inception v3 needs at least {_SMALLEST} pixels along each side")
    if not isinstance(blocks, Sequence) or isinstance(blocks, str) or len(blocks) != 3:
        raise OptionError(f"blocks is {blocks!r}; three numbers are needed, as {list(_BLOCKS)}")
    for index, count in enumerate(blocks):
        at_least(0, **{f"blocks[{index}]": count})
    net = Layers(Assembly("inception_v3"), batch, dtype_bytes)
    return net.graph.graph({net.classify(_body(net, net.image("image", image), blocks), 1000)})


def _body(net: Layers, x: FeatureMap, blocks: Sequence[int]) -> FeatureMap:
    x = net.conv("Conv2d_1a", x, 32, (3, 3), stride=2)
    x = net.conv("Conv2d_2a", x, 32, (3, 3))
    x = net.conv("Conv2d_2b", x, 64, (3, 3), pad=1)
    x = net.pool("maxpool1", "MaxPool", x, stride=2)
    x = net.conv("Conv2d_3b", x, 80, (1, 1))
    x = net.conv("Conv2d_4a", x, 192, (3, 3))
    x = net.pool("maxpool2", "MaxPool", x, stride=2)
    for index in range(blocks[0]):
        x = _figure_5(net, f"Mixed_5{_letter(index)}", x, _POOLED[min(index, len(_POOLED) - 1)])
    x = _reduction(net, "Mixed_6a", x)
    for index in range(blocks[1]):
        x = _figure_6(net, f"Mixed_6{_letter(index)}", x, _WIDTHS[min(index, len(_WIDTHS) - 1)])
    x = _second_reduction(net, "Mixed_7a", x)
    for index in range(blocks[2]):
        x = _figure_7(net, f"Mixed_7{_letter(index)}", x)
    return x


def _letter(index: int) -> str:
    """b to z, as torchvision goes on behind a, then numbers."""
    return chr(ord("b") + index) if index < 25 else f"_{index + 2}"


def _chain(net: Layers, name: str, x: FeatureMap, layers: Sequence[tuple[int, Kernel]]) -> FeatureMap:
    """Convolutions that keep the side, numbered from 1; a lone one bears the plain name."""
    for number, (channels, kernel) in enumerate(layers, 1):
        pad = kernel[0] // 2
        x = net.conv(name if len(layers) == 1 else f"{name}_{number}", x, channels, kernel, pad=pad)
    return x


def _figure_5(net: Layers, name: str, x: FeatureMap, features: int) -> FeatureMap:
    """Figure 5 of the paper: the 5 x 5 branch of old beside two stacked 3 x 3 (the 35 x 35 grid)."""
    branches = [
        _chain(net, f"{name}.branch1x1", x, [(64, (1, 1))]),
        _chain(net, f"{name}.branch5x5", x, [(48, (1, 1)), (64, (5, 5))]),
        _chain(net, f"{name}.branch3x3dbl", x, [(64, (1, 1)), (96, (3, 3)), (96, (3, 3))]),
        _chain(net, f"{name}.branch_pool", net.pool(f"{name}.pool", "AveragePool", x), [(features, (1, 1))]),
    ]
    return net.concat(name, branches)


def _reduction(net: Layers, name: str, x: FeatureMap) -> FeatureMap:
    """Figure 10 of the paper: convolutions and a pooling of stride 2 side by side."""
    double = _chain(net, f"{name}.branch3x3dbl", x, [(64, (1, 1)), (96, (3, 3))])
    branches = [
        net.conv(f"{name}.branch3x3", x, 384, (3, 3), stride=2),
        net.conv(f"{name}.branch3x3dbl_3", double, 96, (3, 3), stride=2),
        net.pool(f"{name}.pool", "MaxPool", x, stride=2),
    ]
    return net.concat(name, branches)


def _figure_6(net: Layers, name: str, x: FeatureMap, width: int) -> FeatureMap:
    """Figure 6 of the paper with n = 7: 7 x 7 as 1 x 7 and 7 x 1 (the 17 x 17 grid)."""
    row, column = (1, 7), (7, 1)
    double = [(width, (1, 1)), (width, column), (width, row), (width, column), (192, row)]
    branches = [
        _chain(net, f"{name}.branch1x1", x, [(192, (1, 1))]),
        _chain(net, f"{name}.branch7x7", x, [(width, (1, 1)), (width, row), (192, column)]),
        _chain(net, f"{name}.branch7x7dbl", x, double),
        _chain(net, f"{name}.branch_pool", net.pool(f"{name}.pool", "AveragePool", x), [(192, (1, 1))]),
    ]
    return net.concat(name, branches)


def _second_reduction(net: Layers, name: str, x: FeatureMap) -> FeatureMap:
    narrow = _chain(net, f"{name}.branch3x3_1", x, [(192, (1, 1))])
    wide = _chain(net, f"{name}.branch7x7x3", x, [(192, (1, 1)), (192, (1, 7)), (192, (7, 1))])
    branches = [
        net.conv(f"{name}.branch3x3_2", narrow, 320, (3, 3), stride=2),
        net.conv(f"{name}.branch7x7x3_4", wide, 192, (3, 3), stride=2),
        net.pool(f"{name}.pool", "MaxPool", x, stride=2),
    ]
    return net.concat(name, branches)


def _figure_7(net: Layers, name: str, x: FeatureMap) -> FeatureMap:
    """Figure 7 of the paper: filter banks that part again (the 8 x 8 grid)."""

    def parted(branch: str, stem: FeatureMap, number: int) -> FeatureMap:
        halves = [_chain(net, f"{branch}_{number}{s}", stem, [(384, k)]) for s, k in (("a", (1, 3)), ("b", (3, 1)))]
        return net.concat(branch, halves)

    single, double = f"{name}.branch3x3", f"{name}.branch3x3dbl"
    branches = [
        _chain(net, f"{name}.branch1x1", x, [(320, (1, 1))]),
        parted(single, _chain(net, f"{single}_1", x, [(384, (1, 1))]), 2),
        parted(double, _chain(net, double, x, [(448, (1, 1)), (384, (3, 3))]), 3),
        _chain(net, f"{name}.branch_pool", net.pool(f"{name}.pool", "AveragePool", x), [(192, (1, 1))]),
    ]
    return net.concat(name, branches)
