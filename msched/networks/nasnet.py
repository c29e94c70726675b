"""NASNet-A for inference: Zoph et al., Learning Transferable Architectures, CVPR 2018, arXiv 1707.07012.

Cells as in figure 4 of the paper, stacked as in figure 2 and in appendix A.4: N normal cells, a reduction cell and so
forth, filters doubled at each reduction; in front of them, for ImageNet, a convolution and two reduction cells. What
the figures leave open (the first input of each cell, stems, borders) is laid out as in the authors' slim code and in
Keras, `applications/nasnet.py`. Each separable convolution is applied twice, ReLU in front (appendix A.4); batch
normalisation is folded into the convolution before it, whose bias it becomes; the auxiliary head is left out.

Published (table 2): mobile, "4 @ 1056": 564 million multiply-adds and 5.3 million parameters; large, "6 @ 4032": 23.8
billion and 88.9 million.
"""

from __future__ import annotations

from typing import NamedTuple

from msched.errors import OptionError
from msched.graph import OpGraph
from msched.networks.assembly import Assembly, at_least, one_of
from msched.networks.convolutional import FeatureMap, Layers

_CLASSES = 1000


class Model(NamedTuple):
    """A published model: normal cells a stage, filters of the last cell as published, channels and pixels of the image.

    skips: whether the cell behind a reduction reads the same earlier cell as the reduction did, not the cell before it.
    """

    cells: int
    filters: int
    stem_filters: int
    image: int
    skips: bool


MODELS = {"mobile": Model(4, 1056, 32, 224, False), "large": Model(6, 4032, 96, 331, True)}


def build(
    size: str = "mobile",
    batch: int = 1,
    image: int | None = None,
    cells: int | None = None,
    filters: int | None = None,
    stages: int = 3,
    stem_reductions: int = 2,
    dtype_bytes: int = 2,
) -> OpGraph:
    """710 ops for mobile, 968 for large; with the other defaults 194 + 129 `cells`.

    size: mobile or large, whose figures hold where the following are not given.
    image: pixels along each side. cells: normal cells in each stage. filters: of the last cell, over its six branches.
    stages: of normal cells, with a reduction cell between two. stem_reductions: reduction cells in front; the paper
        has none for small images (CIFAR-10).
    dtype_bytes: of weights and activations.

    So sizes from 50 to 100,000 ops: `stages=1, stem_reductions=0, cells=1` makes 47, and `cells=773` 99,911.

    Raises OptionError: an unknown size, a figure that is not a whole number in range, or filters that cannot be halved
    as often as there are reductions.
    """
    model = one_of("size", size, MODELS)
    image = model.image if image is None else image
    cells = model.cells if cells is None else cells
    filters = model.filters if filters is None else filters
    at_least(1, batch=batch, filters=filters, stages=stages, dtype_bytes=dtype_bytes)
    at_least(0, cells=cells, stem_reductions=stem_reductions)
    at_least(3, image=image)  # the first convolution has no border
    halvings = stages - 1 + stem_reductions
    if halvings > 31 or filters % (6 << halvings):
        raise OptionError(
            f"filters is {filters}; a multiple of 6 x 2^{halvings} is needed for {stages} stages and "
            f"{stem_reductions} reductions in the stem"
        )
    net = Layers(Assembly(f"nasnet_{size}"), batch, dtype_bytes)
    x = net.conv("stem", net.image("image", image), model.stem_filters, (3, 3), stride=2, relu=False)
    before, width = None, filters // (6 << halvings)
    for index in range(stem_reductions):
        x, before = _reduction_cell(net, f"stem_cell{index}", x, before, width), x
        width *= 2
    for stage in range(stages):
        if stage:
            width *= 2
            reduced = _reduction_cell(net, f"reduction{stage}", x, before, width)
            x, before = reduced, before if model.skips and cells else x
        for index in range(cells):
            x, before = _normal_cell(net, f"stage{stage}.cell{index}", x, before, width), x
    return net.graph.graph({net.classify(net.relu("relu", x), _CLASSES)})


def _normal_cell(net: Layers, name: str, x: FeatureMap, before: FeatureMap | None, width: int) -> FeatureMap:
    """Figure 4, left, on the outputs of the last cell (`x`) and of the one before: six branches of `width` channels."""
    p = _adjusted(net, f"{name}.before", x if before is None else before, x.side, width)
    h = _projected(net, f"{name}.last", x, width)

    def pooled(branch: str, y: FeatureMap) -> FeatureMap:
        return net.pool(f"{name}.{branch}", "AveragePool", y)

    branches = [
        (_twice(net, f"{name}.left1", h, width, 5), _twice(net, f"{name}.right1", p, width, 3)),
        (_twice(net, f"{name}.left2", p, width, 5), _twice(net, f"{name}.right2", p, width, 3)),
        (pooled("left3", h), p),
        (pooled("left4", p), pooled("right4", p)),
        (_twice(net, f"{name}.left5", h, width, 3), h),
    ]
    sums = [net.add(f"{name}.add{number}", pair) for number, pair in enumerate(branches, 1)]
    return net.concat(name, [p, *sums])


def _reduction_cell(net: Layers, name: str, x: FeatureMap, before: FeatureMap | None, width: int) -> FeatureMap:
    """Figure 4, right: four branches of `width` channels and half the side."""
    p = x if before is None else _adjusted(net, f"{name}.before", before, x.side, width)
    h = _projected(net, f"{name}.last", x, width)

    def halved(branch: str, kind: str) -> FeatureMap:
        return net.pool(f"{name}.{branch}", kind, h, stride=2, pad=1)

    left, right = _twice(net, f"{name}.left1", h, width, 5, 2), _twice(net, f"{name}.right1", p, width, 7, 2)
    first = net.add(f"{name}.add1", [left, right])
    second = net.add(f"{name}.add2", [halved("left2", "MaxPool"), _twice(net, f"{name}.right2", p, width, 7, 2)])
    third = net.add(f"{name}.add3", [halved("left3", "AveragePool"), _twice(net, f"{name}.right3", p, width, 5, 2)])
    fourth = net.add(f"{name}.add4", [net.pool(f"{name}.left4", "AveragePool", first), second])
    fifth = net.add(f"{name}.add5", [_twice(net, f"{name}.left5", first, width, 3), halved("right5", "MaxPool")])
    return net.concat(name, [second, third, fourth, fifth])


def _twice(net: Layers, name: str, x: FeatureMap, width: int, kernel: int, stride: int = 1) -> FeatureMap:
    """ReLU and separable convolution, twice; the first has the stride."""
    for number, step in ((1, stride), (2, 1)):
        x = net.separable(f"{name}.{number}", net.relu(f"{name}.{number}.relu", x), width, kernel, step)
    return x


def _projected(net: Layers, name: str, x: FeatureMap, width: int) -> FeatureMap:
    return net.conv(f"{name}.conv", net.relu(f"{name}.relu", x), width, (1, 1), relu=False)


def _adjusted(net: Layers, name: str, before: FeatureMap, side: int, width: int) -> FeatureMap:
    """An earlier output with the side and the channels of the cell that reads it."""
    if before.side == side:
        return before if before.channels == width else _projected(net, name, before, width)
    # two halves, one of them shifted by a pixel, so that every pixel is seen: a pooling of 1 x 1 picks every other
    active, halves = net.relu(f"{name}.relu", before), []
    for number in (1, 2):
        picked = net.pool(f"{name}.pool{number}", "AveragePool", active, stride=2, kernel=1)
        halves.append(net.conv(f"{name}.conv{number}", picked, width // 2, (1, 1), relu=False))
    return net.concat(f"{name}.concat", halves)
