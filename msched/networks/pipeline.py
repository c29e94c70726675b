"""Pipeline parallelism: a network cut into stages, through which the micro-batches of a batch pass one after the other.

Huang et al., GPipe, arXiv 1811.06965, section 2.3 and figure 2c. Where all ops take one step, a pass of K stages over M
micro-batches takes M + K - 1 of them, K - 1 of which each stage stands idle.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from msched.arrays import Int64Array
from msched.graph import Op, OpGraph
from msched.networks.assembly import at_least
from msched.networks.random_work import draw, flag, generator, tied


def build(
    stages: int = 8,
    micro_batches: int = 12,
    backward: bool = False,
    seed: int = 0,
    mix: Mapping[str, float] | None = None,
    median_ns: int = 50_000,
    spread: float = 0.8,
) -> OpGraph:
    """`stages` x `micro_batches` ops, twice as many with `backward`; the same for the same arguments.

    A stage does the same for every micro-batch, with the same duration, and takes them in order: that order is a
    control dependency. With `backward` they come back from the last stage to the first, the last micro-batch first,
    and each reads what its forward op left; a stage's work backward is drawn by itself. The update of the weights is
    left out.
    mix, median_ns, spread: of the work of the stages, as in `msched.networks.random_work.draw`.

    Raises OptionError for a figure out of range or a class of work that is none.
    """
    at_least(1, stages=stages, micro_batches=micro_batches)
    flag("backward", backward)
    work = draw(generator(seed), 2 * stages, mix, median_ns, spread)
    ops = _passes("forward", work[:stages], range(stages), range(micro_batches))
    forward = np.arange(len(ops)).reshape(micro_batches, stages)  # rows and columns in the order in which they run
    before, after = [forward[:, :-1].ravel()], [forward[:, 1:].ravel()]
    control = _pairs(forward)
    if backward:
        ops += _passes("backward", work[stages:], range(stages)[::-1], range(micro_batches)[::-1])
        back = forward + forward.size
        before += back[:, :-1].ravel(), forward.ravel()
        after += back[:, 1:].ravel(), back[::-1, ::-1].ravel()
        control += _pairs(back)
    name = f"pipeline_{stages}x{micro_batches}"
    return tied(name, ops, np.concatenate(before), np.concatenate(after), control)


def _passes(direction: str, work: list[Op], stages: range, batches: range) -> list[Op]:
    return [msgspec.structs.replace(work[s], name=f"{direction}{m}.stage{s}") for m in batches for s in stages]


def _pairs(grid: Int64Array) -> list[tuple[int, int]]:
    """From each op of a grid (micro-batches, stages) to the next micro-batch on its stage."""
    return list(zip(grid[:-1].ravel().tolist(), grid[1:].ravel().tolist(), strict=True))
