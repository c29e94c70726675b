"""A vision pipeline on camera frames: JPEG decoding and resizing, object detection, non-maximum suppression.

Each engine of an Ascend part has its share: DVPP decodes and resizes, vector cores normalise, AI Core runs the detector
(`msched.networks.retinanet`), AI CPU suppresses the boxes that overlap. Images have nothing to do with one another but
for the batch that they are detected in.

Formats are those of DVPP (CANN user guide, media data processing): JPEGD writes YUV 4:2:0 of 12 bits a pixel; that VPC
makes RGB of 8 bits a channel while it resizes is assumed.
"""

from __future__ import annotations

from collections.abc import Sequence

from msched.errors import OptionError
from msched.graph import OpGraph
from msched.networks.assembly import Assembly, at_least
from msched.networks.convolutional import FeatureMap, Layers
from msched.networks.retinanet import INDEX_BYTES, Predictions, backbone, predict, pyramid

# Operations for the overlap of two boxes of known areas: corners of the intersection (4), its sides (2), not below zero
# (2), its area (1), the union (2), the quotient (1) and the comparison (1).
_OVERLAP = 13


def build(
    images: int = 4,
    batch: int = 1,
    image: int = 800,
    frame_width: int = 1920,
    frame_height: int = 1080,
    bits_per_pixel: int = 2,
    classes: int = 91,
    candidates: int = 1000,
    detections: int = 300,
    dtype_bytes: int = 2,
) -> OpGraph:
    """5 ops an image and 242 a batch, 243 where it has several images: 988 ops.

    images: frames, a multiple of `batch`, the number that is detected together. image: pixels along each side of what
        the detector sees. frame_width, frame_height: of a frame in pixels.
    bits_per_pixel: of a JPEG file; 1.5 to 2 usually cannot be told from the original (Wallace, The JPEG still picture
        compression standard, CACM 1991, section 4).
    classes: with the background. candidates: the most boxes of each of the five maps of an image. detections: boxes
        that are kept. dtype_bytes: of weights and activations.

    Suppression is greedy (Neubeck and Van Gool, ICPR 2006); it is counted as if every candidate were compared with each
    of the boxes that are kept.

    Raises OptionError: a figure that is not a positive whole number, or images that do not fill their batches.
    """
    at_least(1, images=images, batch=batch, frame_width=frame_width, frame_height=frame_height, image=image)
    at_least(1, bits_per_pixel=bits_per_pixel, classes=classes, candidates=candidates, detections=detections)
    at_least(1, dtype_bytes=dtype_bytes)
    if images % batch:
        raise OptionError(f"images is {images}; a multiple of the batch of {batch} is needed")
    graph, weights, outputs = Assembly("vision"), dict[str, int](), set[int]()
    pixels = frame_width * frame_height
    for first in range(0, images, batch):
        numbers = range(first, first + batch)
        ready = [_prepared(graph, f"image{i}", pixels, bits_per_pixel, image, dtype_bytes) for i in numbers]
        net = Layers(graph, batch, dtype_bytes, f"inference{first // batch}.", weights)
        x = ready[0] if batch == 1 else graph.op(f"{net.prefix}stack", "Stack", ready, batch * graph.bytes(ready[0]))
        maps = pyramid(net, backbone(net, FeatureMap(x, 3, image)))
        found = [predict(net, level, y, classes, candidates) for level, y in enumerate(maps, 3)]
        outputs |= {_suppressed(graph, f"image{i}", found, batch, detections) for i in numbers}
    return graph.graph(outputs)


def _prepared(graph: Assembly, name: str, pixels: int, bits_per_pixel: int, side: int, element_bytes: int) -> int:
    """Three channels of `side` x `side` pixels, normalised."""
    x = graph.source(f"{name}.jpeg", -(-pixels * bits_per_pixel // 8))
    x = graph.op(f"{name}.decode", "DecodeJpeg", [x], -(-pixels * 12 // 8))
    elements = 3 * side * side
    x = graph.op(f"{name}.resize", "Resize", [x], elements)
    return graph.op(f"{name}.normalise", "Normalize", [x], elements * element_bytes, flops=2 * elements)


def _suppressed(graph: Assembly, name: str, found: Sequence[Predictions], batch: int, detections: int) -> int:
    """The boxes of one image of a batch that are left: each with four corners, a score and a class of 4 bytes."""
    inputs = [tensor for level in found for tensor in (level.scores, level.boxes)]
    size, boxes = sum(graph.bytes(t) for t in inputs) // batch, sum(level.number for level in found)
    gathered = graph.op(f"{name}.candidates", "Concat", inputs, size, bytes_read=size)
    kept = min(detections, boxes)
    return graph.op(
        f"{name}.suppress", "NonMaxSuppression", [gathered], kept * 6 * INDEX_BYTES, flops=_OVERLAP * boxes * kept
    )
