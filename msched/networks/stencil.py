"""Stencils: a line of points that takes steps in time, each op reading its neighbours of the step before.

The patterns stencil_1d and stencil_1d_periodic of Slaughter et al., Task Bench: a parameterized benchmark for
evaluating parallel runtime performance, SC 2020 (arXiv 1908.05790).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from msched.graph import OpGraph
from msched.networks.assembly import at_least
from msched.networks.random_work import draw, flag, generator, tied


def build(
    steps: int = 10,
    width: int = 10,
    radius: int = 1,
    periodic: bool = False,
    seed: int = 0,
    mix: Mapping[str, float] | None = None,
    median_ns: int = 50_000,
    spread: float = 0.8,
) -> OpGraph:
    """`steps` x `width` ops; op t x width + x is point x of step t. The same for the same arguments.

    radius: a point reads those of the step before that lie at most so far from it, its own among them.
    periodic: whether the last point is a neighbour of the first.
    mix, median_ns, spread: of the work, as in `msched.networks.random_work.draw`.

    Raises OptionError for a figure out of range or a class of work that is none.
    """
    at_least(1, steps=steps, width=width)
    at_least(0, radius=radius)
    flag("periodic", periodic)
    point = np.arange(width)
    reach = min(radius, width)  # farther there is nobody
    neighbour = point[:, None] + np.arange(-reach, reach + 1)
    inside = np.ones(neighbour.shape, np.bool_) if periodic else (neighbour >= 0) & (neighbour < width)
    here, there = np.broadcast_to(point[:, None], neighbour.shape)[inside], neighbour[inside] % width
    now = np.arange(1, steps)[:, None] * width
    ops = draw(generator(seed), steps * width, mix, median_ns, spread)
    return tied(f"stencil_{steps}x{width}", ops, (now - width + there).ravel(), (now + here).ravel())
