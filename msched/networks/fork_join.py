"""Fork-join graphs: stages of parallel branches between barriers.

The synchronous tasks of Saifullah, Li, Agrawal, Lu and Gill, Multi-core real-time scheduling for generalized parallel
task models, Real-Time Systems 49 (2013): a segment of parallel threads begins when all of the segment before are done.
The barriers are ops here, as in loops between which one thread prepares the next.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from msched.graph import OpGraph
from msched.networks.assembly import at_least
from msched.networks.random_work import draw, generator, tied


def build(
    stages: int = 4,
    branches: int = 8,
    length: int = 3,
    seed: int = 0,
    mix: Mapping[str, float] | None = None,
    median_ns: int = 50_000,
    spread: float = 0.8,
) -> OpGraph:
    """A barrier, then `stages` times `branches` chains of `length` ops side by side and the next barrier.

    These are stages (branches x length + 1) + 1 ops and stages x branches (length + 1) dependencies, the same for the
    same arguments.
    mix, median_ns, spread: of the work, barriers included, as in `msched.networks.random_work.draw`.

    Raises OptionError for a figure out of range or a class of work that is none.
    """
    at_least(1, stages=stages, branches=branches, length=length)
    step = branches * length + 1
    barrier = np.arange(stages + 1) * step
    inner = barrier[:-1, None, None] + 1 + np.arange(branches * length).reshape(branches, length)
    chain = np.concatenate(
        [
            np.broadcast_to(barrier[:-1, None, None], (stages, branches, 1)),
            inner,
            np.broadcast_to(barrier[1:, None, None], (stages, branches, 1)),
        ],
        axis=2,
    )
    count = stages * step + 1
    ops = draw(generator(seed), count, mix, median_ns, spread)
    return tied(f"fork_join_{count}", ops, chain[:, :, :-1].ravel(), chain[:, :, 1:].ravel())
