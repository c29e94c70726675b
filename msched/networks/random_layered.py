"""Random layered graphs: the usual test bed of list scheduling, with engines, partial demands and tensors.

Layer by layer as in Tobita and Kasahara, A standard task graph set, Journal of Scheduling 5 (2002), section 2
("layrpred"): every op behind the first layer has a predecessor in the layer before it, and more by chance.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from msched.arrays import Int64Array
from msched.graph import OpGraph
from msched.networks.assembly import at_least
from msched.networks.random_work import draw, generator, number, tied


def build(
    ops: int = 100,
    width: int = 8,
    seed: int = 0,
    edge_probability: float = 0.2,
    mix: Mapping[str, float] | None = None,
    median_ns: int = 50_000,
    spread: float = 0.8,
) -> OpGraph:
    """A graph of `ops` ops in layers of 1 to 2 `width` - 1 ops, the same for the same arguments.

    edge_probability: that an op depends on a given op of the layer before it besides the one that it always depends on;
        one such edge in four comes from the layer before that.
    mix, median_ns, spread: of the work, as in `msched.networks.random_work.draw`.

    Raises OptionError for a figure out of range or a class of work that is none.
    """
    rng = generator(seed)
    at_least(1, ops=ops, width=width)
    number("edge_probability", edge_probability, 0, 1)
    before, after = _edges(rng, ops, width, edge_probability)
    return tied(f"random_layered_{ops}", draw(rng, ops, mix, median_ns, spread), before, after)


def _edges(rng: np.random.Generator, n: int, width: int, probability: float) -> tuple[Int64Array, Int64Array]:
    """The two ends of the dependencies, some of them twice."""
    first = np.cumsum(np.concatenate([[0], rng.integers(1, 2 * width, n)]))  # first op of each layer
    layer = np.searchsorted(first, np.arange(n), side="right") - 1
    later = np.flatnonzero(layer > 0)
    if later.size == 0:
        return later, later
    size = np.diff(first)
    extra = np.repeat(later, rng.binomial(size[layer[later] - 1], probability))
    back = np.minimum(np.where(rng.random(extra.size) < 0.25, 2, 1), layer[extra])
    after = np.concatenate([later, extra])
    source = np.concatenate([layer[later] - 1, layer[extra] - back])
    return first[source] + rng.integers(0, size[source]), after
