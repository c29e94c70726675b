"""RandWire for inference: Xie et al., Exploring Randomly Wired Neural Networks, ICCV 2019, arXiv 1904.01569.

Stages of table 1 of the paper, each wired at random by the model WS(k, p) of Watts and Strogatz (Nature 393, 1998), its
edges directed from the lower node of the ring to the higher (section 3.3). A node sums its inputs, each times a learned
weight, and then applies ReLU, a 3 x 3 separable convolution and normalisation, which is folded into the convolution
(section 3.2). Nodes that nobody in the stage precedes read the output of the stage before, with a stride of 2; the
output of a stage is the mean of the nodes that nobody in it reads.

Published for WS(4, 0.75) with 32 nodes, means over five networks: small (table 2), 78 channels, 583 million
multiply-adds and 5.6 million parameters; regular (table 3), 109 channels, 4.0 billion and 31.9 million, and with 154
channels 7.9 billion and 61.5 million.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from msched.errors import OptionError
from msched.graph import OpGraph
from msched.networks.assembly import Assembly, at_least, one_of
from msched.networks.convolutional import FeatureMap, Layers
from msched.networks.random_work import number

_CLASSES, _FEATURES = 1000, 1280
_CHANNELS = {"small": 78, "regular": 109}


def build(
    size: str = "small",
    seed: int = 0,
    nodes: int = 32,
    neighbours: int = 4,
    rewiring: float = 0.75,
    channels: int | None = None,
    batch: int = 1,
    image: int = 224,
    dtype_bytes: int = 2,
) -> OpGraph:
    """Three random stages of `nodes` nodes, the same for the same arguments: 3 or 4 ops a node, up to 10 around them.

    size: small or regular, which has a further random stage of half the nodes in front. channels: of the first stage,
        78 or 109 unless given; those of each later one are twice as many.
    neighbours: of a node in the ring before rewiring, an even number. rewiring: probability that an edge gets another
        end. image: pixels along each side. dtype_bytes: of weights and activations.

    So sizes from 50 to 100,000 ops: `nodes=5` makes 61 and `nodes=9300` 99,813.

    Raises OptionError: an unknown size, a figure out of range, or as many neighbours as nodes.
    """
    channels = one_of("size", size, _CHANNELS) if channels is None else channels
    one_of("size", size, _CHANNELS)
    at_least(2, channels=channels, nodes=nodes, neighbours=neighbours)
    at_least(1, batch=batch, image=image, dtype_bytes=dtype_bytes)
    counts = [nodes] * 3 if size == "small" else [nodes // 2, *[nodes] * 3]
    if neighbours % 2 or neighbours >= min(counts):
        raise OptionError(
            f"neighbours is {neighbours}; an even number below the {min(counts)} nodes of the smallest stage is needed"
        )
    at_least(0, seed=seed)
    number("rewiring", rewiring, 0, 1)
    net, rng = Layers(Assembly(f"randwire_{size}"), batch, dtype_bytes), random.Random(seed)
    x = net.conv("conv1", net.image("image", image), channels // 2, (3, 3), stride=2, pad=1, relu=False)
    if size == "small":
        x = net.conv("conv2", net.relu("conv2.relu", x), channels, (3, 3), stride=2, pad=1, relu=False)
    for index, count in enumerate(counts):
        inputs = _wiring(count, neighbours, rewiring, rng)
        x = _stage(net, f"conv{index + 6 - len(counts)}", x, channels << index, inputs)
    x = net.conv("conv6", net.relu("conv6.relu", x), _FEATURES, (1, 1), relu=False)
    return net.graph.graph({net.classify(x, _CLASSES)})


def _wiring(nodes: int, neighbours: int, rewiring: float, rng: random.Random) -> list[list[int]]:
    """The nodes that each node reads: edges of a small world lead from lower to higher numbers.

    The same draws as `networkx.watts_strogatz_graph`, and so the same graphs, in a third of the time.
    """
    beside: list[set[int]] = [set() for _ in range(nodes)]
    for step in range(1, neighbours // 2 + 1):
        for u in range(nodes):
            v = (u + step) % nodes
            beside[u].add(v)
            beside[v].add(u)
    everyone = range(nodes)
    for step in range(1, neighbours // 2 + 1):
        for u in everyone:
            if rng.random() >= rewiring:
                continue
            v, new = (u + step) % nodes, rng.choice(everyone)
            while new == u or new in beside[u]:
                new = rng.choice(everyone)
                if len(beside[u]) >= nodes - 1:
                    break
            else:
                beside[u].remove(v)
                beside[v].remove(u)
                beside[u].add(new)
                beside[new].add(u)
    return [sorted(v for v in others if v < u) for u, others in enumerate(beside)]


def _stage(net: Layers, name: str, x: FeatureMap, channels: int, inputs: Sequence[Sequence[int]]) -> FeatureMap:
    made: list[FeatureMap] = []
    for node, read in enumerate(inputs):
        label = f"{name}.node{node}"
        summands = [made[other] for other in read] or [x]
        y = summands[0] if len(summands) == 1 else net.weighted_sum(f"{label}.sum", summands)
        made.append(net.separable(label, net.relu(f"{label}.relu", y), channels, 3, 1 if read else 2))
    last = sorted(set(range(len(inputs))) - {other for read in inputs for other in read})
    return made[last[0]] if len(last) == 1 else net.mean(name, [made[node] for node in last])
