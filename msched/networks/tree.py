"""In-trees and out-trees: reductions and broadcasts.

In-trees of unit ops are the case that Hu, Parallel sequencing and assembly line problems, Operations Research 9 (1961),
solves by levels. Random ones are recursive trees: every op hangs on one of those before it, all equally likely
(Smythe and Mahmoud, A survey of recursive trees, Theory of Probability and Mathematical Statistics 51, 1995).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from msched.graph import OpGraph
from msched.networks.assembly import at_least, one_of
from msched.networks.random_work import draw, generator, tied

_DIRECTIONS = {"in": True, "out": False}


def build(
    ops: int = 100,
    direction: str = "in",
    arity: int | None = None,
    seed: int = 0,
    mix: Mapping[str, float] | None = None,
    median_ns: int = 50_000,
    spread: float = 0.8,
) -> OpGraph:
    """A tree of `ops` ops and `ops` - 1 dependencies, the same for the same arguments.

    direction: "in" for dependencies that run to the root, the last op; "out" for those that run from it, the first op.
    arity: children of an op in a tree that is full level by level; None for a random recursive tree.
    mix, median_ns, spread: of the work, as in `msched.networks.random_work.draw`.

    Raises OptionError for a figure out of range, a direction that is neither, or a class of work that is none.
    """
    rng = generator(seed)
    at_least(1, ops=ops)
    inward = one_of("direction", direction, _DIRECTIONS)
    child = np.arange(1, ops)
    if arity is None:
        parent = rng.integers(0, child)
    else:
        at_least(1, arity=arity)
        parent = (child - 1) // arity
    before, after = (ops - 1 - child, ops - 1 - parent) if inward else (parent, child)
    return tied(f"{direction}_tree_{ops}", draw(rng, ops, mix, median_ns, spread), before, after)
