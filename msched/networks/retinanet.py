"""RetinaNet for inference: Lin et al., Focal Loss for Dense Object Detection, ICCV 2017, arXiv 1708.02002.

Behind ResNet-50 (He et al., arXiv 1512.03385, table 1) and a feature pyramid (Lin et al., arXiv 1612.03144). Laid out
as in torchvision, `models/detection/retinanet.py`: strides in the 3 x 3 convolutions; P6 made from P5 of the pyramid,
where the paper takes C5 of the backbone, and P7 from P6; 91 classes. torchvision publishes 4.09 billion multiply-adds
for ResNet-50 at 224 x 224, and for the detector 34,014,999 parameters and 151.54 billion multiply-adds at 800 x 800.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msched.networks.convolutional import FeatureMap, Layers

_STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))  # blocks, and channels of their 3 x 3 convolution
_WIDTH = 256  # channels of the pyramid and of the heads
_HEAD_LAYERS = 4
ANCHORS = 9  # three sizes, three aspect ratios
_DECODE = 14  # operations a box: its centre (4), its sides (4, the exponential as one), its corners (6)
INDEX_BYTES = 4


class Predictions(NamedTuple):
    """The candidates of one map of the pyramid: tensors of their scores and of their boxes, and their number."""

    scores: int
    boxes: int
    number: int


def backbone(net: Layers, x: FeatureMap) -> list[FeatureMap]:
    """ResNet-50 up to its last block: 119 ops. The outputs of its last three stages, of strides 8, 16 and 32."""
    x = net.conv("backbone.conv1", x, 64, (7, 7), stride=2, pad=3)
    x = net.pool("backbone.maxpool", "MaxPool", x, stride=2, pad=1)
    outputs = []
    for stage, (blocks, width) in enumerate(_STAGES, 1):
        for block in range(blocks):
            stride = 2 if stage > 1 and block == 0 else 1
            x = _bottleneck(net, f"backbone.layer{stage}.{block}", x, width, stride)
        outputs.append(x)
    return outputs[1:]


def pyramid(net: Layers, inputs: Sequence[FeatureMap]) -> list[FeatureMap]:
    """Five maps of 256 channels, of strides 8 to 128: 13 ops."""
    merged: list[FeatureMap] = []
    for level, x in reversed(list(enumerate(inputs, 3))):
        lateral = net.conv(f"pyramid.lateral{level}", x, _WIDTH, (1, 1), relu=False)
        if merged:
            coarser = net.upsample(f"pyramid.upsample{level}", merged[-1], lateral.side)
            lateral = net.add(f"pyramid.add{level}", [lateral, coarser])
        merged.append(lateral)
    maps = [
        net.conv(f"pyramid.p{level}", x, _WIDTH, (3, 3), pad=1, relu=False)
        for level, x in enumerate(reversed(merged), 3)
    ]
    maps.append(net.conv("pyramid.p6", maps[-1], _WIDTH, (3, 3), stride=2, pad=1, relu=False))
    active = net.relu("pyramid.p7.relu", maps[-1])
    return [*maps, net.conv("pyramid.p7", active, _WIDTH, (3, 3), stride=2, pad=1, relu=False)]


def predict(net: Layers, level: int, x: FeatureMap, classes: int, candidates: int) -> Predictions:
    """Both heads on one map of the pyramid, the best candidates of each image and their boxes: 22 ops."""
    cells = x.side * x.side * ANCHORS
    chosen = min(candidates, cells * classes)
    width, rows = net.element_bytes, net.rows
    name = f"{net.prefix}p{level}"
    logits = _head(net, "class", level, x, ANCHORS * classes)
    deltas = _head(net, "box", level, x, ANCHORS * 4)
    total = net.batch * cells * classes
    scores = net.graph.op(f"{name}.sigmoid", "Sigmoid", [logits], total * width, flops=4 * total, rows=rows)
    size = net.batch * chosen * (width + INDEX_BYTES)
    best = net.graph.op(f"{name}.top", "TopK", [scores], size, flops=total, rows=rows)
    size = net.batch * chosen * 4 * width
    read = size + net.batch * chosen * INDEX_BYTES
    taken = net.graph.op(f"{name}.gather", "Gather", [deltas, best], size, bytes_read=read, rows=rows)
    flops = _DECODE * net.batch * chosen
    return Predictions(best, net.graph.op(f"{name}.decode", "Fusion", [taken], size, flops=flops, rows=rows), chosen)


def _bottleneck(net: Layers, name: str, x: FeatureMap, width: int, stride: int) -> FeatureMap:
    """Figure 5, right, of the ResNet paper: 7 ops, or 8 where the shortcut changes the shape."""
    y = net.conv(f"{name}.conv1", x, width, (1, 1))
    y = net.conv(f"{name}.conv2", y, width, (3, 3), stride=stride, pad=1)
    y = net.conv(f"{name}.conv3", y, 4 * width, (1, 1), relu=False)
    if x.channels != y.channels:
        x = net.conv(f"{name}.downsample", x, 4 * width, (1, 1), stride=stride, relu=False)
    return net.relu(f"{name}.relu", net.add(f"{name}.add", [y, x]))


def _head(net: Layers, kind: str, level: int, x: FeatureMap, channels: int) -> int:
    """Four convolutions and the one that predicts, of the same weights on all maps: the tensor of predictions."""
    for layer in range(_HEAD_LAYERS):
        x = net.conv(f"p{level}.{kind}.{layer}", x, _WIDTH, (3, 3), pad=1, shared=f"head.{kind}.{layer}")
    name, shared = f"p{level}.{kind}", f"head.{kind}"
    return net.conv(name, x, channels, (3, 3), pad=1, relu=False, shared=shared).tensor
