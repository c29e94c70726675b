"""Erdos-Renyi graphs, ordered: of every two ops the later depends on the earlier by chance.

Method G(n, p) of Cordeiro, Mounie, Perarnau, Trystram, Vincent and Wagner, Random graph generation for scheduling
simulations, SIMUTools 2010; what such graphs look like is analysed by Canon, El Sayah and Heam, A comparison of random
task graph generation methods for scheduling problems, Euro-Par 2019 (arXiv 1902.05808). The pairs are drawn by the
gaps between them: Batagelj and Brandes, Efficient generation of large random networks, Physical Review E 71 (2005),
algorithm 1.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from msched.arrays import Int64Array
from msched.errors import OptionError
from msched.graph import OpGraph
from msched.networks.assembly import at_least
from msched.networks.random_work import draw, generator, tied


def build(
    ops: int = 100,
    degree: float = 4,
    seed: int = 0,
    mix: Mapping[str, float] | None = None,
    median_ns: int = 50_000,
    spread: float = 0.8,
) -> OpGraph:
    """A graph of `ops` ops, the same for the same arguments.

    degree: expected number of predecessors and successors of an op together, at most `ops` - 1. Each of the
        ops (ops - 1) / 2 pairs is a dependency with probability degree / (ops - 1), which makes ops x degree / 2 of
        them on average, some implied by others.
    mix, median_ns, spread: of the work, as in `msched.networks.random_work.draw`.

    Raises OptionError for a figure out of range or a class of work that is none.
    """
    rng = generator(seed)
    at_least(1, ops=ops)
    if not isinstance(degree, int | float) or isinstance(degree, bool) or not 0 <= degree <= ops - 1:
        raise OptionError(f"degree is {degree!r}; a number from 0 to ops - 1, {ops - 1} here, is needed")
    pair = _drawn(rng, ops * (ops - 1) // 2, degree / max(ops - 1, 1))
    later = np.arange(ops)
    first = later * (later - 1) // 2  # pairs are numbered by the later op, then by the earlier
    after = np.searchsorted(first, pair, side="right") - 1
    return tied(f"erdos_renyi_{ops}", draw(rng, ops, mix, median_ns, spread), pair - first[after], after)


def _drawn(rng: np.random.Generator, count: int, probability: float) -> Int64Array:
    """Which of `count` things are drawn if each is with the same probability: rising numbers."""
    if not probability:
        return np.zeros(0, np.int64)
    mean = count * probability
    parts, last = [], -1
    while last < count:
        gap = np.minimum(rng.geometric(probability, int(mean + 4 * mean**0.5) + 1), count + 1)
        parts.append(last + np.cumsum(gap))
        last = int(parts[-1][-1])
    position = np.concatenate(parts)
    return position[position < count]
