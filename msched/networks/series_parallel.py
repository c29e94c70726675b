"""Series-parallel graphs, by random recursive composition.

Two-terminal series-parallel as in Valdes, Tarjan and Lawler, The recognition of series parallel digraphs, SIAM Journal
on Computing 11 (1982): one op, or two graphs of which the sink of one leads to the source of the other, or several
between one op that forks and one that joins. Drawn from the whole to the parts, as the nested fork-join tasks of
Melani, Bertogna, Bonifaci, Marchetti-Spaccamela and Buttazzo, Response-time analysis of conditional DAG tasks in
multiprocessor systems, ECRTS 2015, but for a given number of ops.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np

from msched.arrays import Int64Array, pairs
from msched.graph import OpGraph
from msched.networks.assembly import at_least
from msched.networks.random_work import draw, generator, number, tied


def build(
    ops: int = 100,
    parallel: float = 0.5,
    branches: int = 4,
    seed: int = 0,
    mix: Mapping[str, float] | None = None,
    median_ns: int = 50_000,
    spread: float = 0.8,
) -> OpGraph:
    """A graph of `ops` ops with one source, op 0, and one sink, the last op; the same for the same arguments.

    parallel: probability that a part of four or more ops is a fork, its branches and a join, rather than two parts one
        after the other. Smaller parts are chains.
    branches: most branches of a fork; there are 2 to so many, all equally likely. Where a part is cut is uniform.
    mix, median_ns, spread: of the work, as in `msched.networks.random_work.draw`.

    Raises OptionError for a figure out of range or a class of work that is none.
    """
    rng = generator(seed)
    at_least(1, ops=ops)
    at_least(2, branches=branches)
    number("parallel", parallel, 0, 1)
    edges = _edges(_uniform(rng), ops, parallel, branches)
    return tied(f"series_parallel_{ops}", draw(rng, ops, mix, median_ns, spread), edges[:, 0], edges[:, 1])


def _edges(uniform: Iterator[float], n: int, parallel: float, branches: int) -> Int64Array:
    """Pairs (before, after), each once. A part is a range of ops whose first is its source and whose last its sink."""
    edges: list[tuple[int, int]] = []
    parts = [(0, n)]
    while parts:
        start, stop = parts.pop()
        size = stop - start
        if size < 4:
            edges.extend((v, v + 1) for v in range(start, stop - 1))
        elif next(uniform) >= parallel:
            cut = start + 1 + int(next(uniform) * (size - 1))
            edges.append((cut - 1, cut))
            parts += (start, cut), (cut, stop)
        else:
            count = 2 + int(next(uniform) * (min(branches, size - 2) - 1))
            cuts: set[int] = set()
            while len(cuts) < count - 1:
                cuts.add(start + 2 + int(next(uniform) * (size - 3)))
            bounds = [start + 1, *sorted(cuts), stop - 1]
            for first, end in pairwise(bounds):
                edges += (start, first), (end - 1, stop - 1)
                parts.append((first, end))
    return pairs(edges)


def _uniform(rng: np.random.Generator) -> Iterator[float]:
    """Numbers from 0 to below 1, without end."""
    while True:
        yield from rng.random(1024).tolist()
