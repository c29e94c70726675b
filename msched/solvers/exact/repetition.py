"""Repeated blocks of a network, the layers of a transformer or the cells of a vision network, found by structure alone.

Ops get colours that say what they are and what lies around them (Weisfeiler and Leman 1968, colour refinement), and
levels, the longest path to them in steps. In a network of repeated blocks the colours of level l are those of level
l + h, with h the height of a block: the period of a string. What the string suggests is checked on the dependencies.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from msched.arrays import BoolArray, Int64Array
from msched.problem import Problem

_ROUNDS = (3, 2, 1, 0)  # of refinement; fewer see less of the ends of a run, more tell the ops of a block apart better
_PERIODS = 16  # that are tried, the most frequent distances of like levels
_LEAST_BLOCKS = 3
_LEAST_OPS = 2  # of a block: a chain of like ops has nothing to overlap
_FIRST_BLOCKS = 8  # that may differ from the rest before a run is given up
_OUTSIDE = -1

_Edge = tuple[int, int, int, int]  # position before, position after, blocks between them, delay


@dataclass(frozen=True)
class Repetition:
    """K blocks of q ops that correspond to each other in duration, demand and dependencies.

    blocks (K, q): the op at position p of block k. edges (r, 3): dependencies (before, after, distance), from a
    position to one that lies so many blocks later. delay (r,): ns of each. A block may also depend on ops outside.
    n: ops of the problem.
    """

    blocks: Int64Array
    edges: Int64Array
    delay: Int64Array
    n: int

    @cached_property
    def block(self) -> Int64Array:
        """The block of each op, -1 for those outside: shape (n,)."""
        result = np.full(self.n, _OUTSIDE, np.int64)
        result[self.blocks] = np.arange(len(self.blocks))[:, None]
        return result

    def lags(self, of_edge: dict[tuple[int, int], int]) -> Int64Array:
        """For each dependency of `edges` the figure of one that it stands for: shape (r,)."""
        last, rows = self.blocks[-1].tolist(), self.blocks.tolist()
        return np.array([of_edge[rows[-1 - k][u], last[v]] for u, v, k in self.edges.tolist()], np.int64)


def repetitions(problem: Problem) -> tuple[Repetition, ...]:
    """The runs of three or more repeated blocks of two or more ops, by rising level; none where nothing repeats.

    Levels belong to one run at most, the one that covers most ops first: a training step has a run of forward layers
    and one of backward layers. O(n log n + m) for each run, on networks.
    """
    if problem.n == 0:
        return ()
    level = _levels(problem)
    best: tuple[Repetition, ...] = ()
    for rounds in _ROUNDS:
        found = _runs(problem, _colours(problem, rounds), level)
        best = max(best, found, key=lambda runs: sum(run.blocks.size for run in runs))
    return best


def _runs(problem: Problem, colour: Int64Array, level: Int64Array) -> tuple[Repetition, ...]:
    free = np.ones(int(level.max()) + 1, np.bool_)
    found: list[tuple[int, Repetition]] = []
    while (run := _longest_run(colour, level, free)) is not None:
        first, height, count = run
        free[first : first + height * count] = False
        result = _checked(problem, _positions(problem, colour, level, first, height, count))
        if result is not None:
            found.append((first, result))
    return tuple(result for _, result in sorted(found, key=lambda pair: pair[0]))


def largest_repetition(problem: Problem) -> Repetition | None:
    """The run of `repetitions` that holds most ops; None where nothing repeats."""
    return max(repetitions(problem), key=lambda found: found.blocks.size, default=None)


def _colours(problem: Problem, rounds: int) -> Int64Array:
    """A number for each op, equal where it and what lies within so many steps of it are alike: shape (n,)."""
    columns = [problem.duration, problem.engine, problem.label >= 0, problem.communicator >= 0, problem.workspace]
    rows = np.column_stack([*columns, problem.demand]).astype(np.int64)
    colour = _dense(_mixed(rows))
    modes = np.zeros(problem.n, np.uint64)
    np.add.at(modes, problem.mode_op, _mixed(np.column_stack([problem.mode_duration, problem.mode_demand])))
    colour = _dense(_mixed(np.column_stack([colour, modes.view(np.int64)])))
    before, after = problem.edges.T
    for _ in range(rounds):
        around = np.zeros((2, problem.n), np.uint64)
        np.add.at(around[0], after, _mixed(np.column_stack([colour[before], problem.delay])))
        np.add.at(around[1], before, _mixed(np.column_stack([colour[after], problem.delay])))
        colour = _dense(_mixed(np.column_stack([colour, around.view(np.int64).T])))
    return colour


def _mixed(rows: Int64Array) -> np.typing.NDArray[np.uint64]:
    """A hash of each row, by the finalizer of SplitMix64 (Steele, Lea and Flood 2014); sums of them are of multisets.

    A collision costs a repetition that would have been found, never a false one.
    """
    result = np.full(len(rows), 0x9E3779B97F4A7C15, np.uint64)
    for column in rows.T:
        result ^= column.astype(np.int64).view(np.uint64)
        result = (result ^ (result >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        result = (result ^ (result >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        result ^= result >> np.uint64(31)
    return result


def _dense(values: np.typing.NDArray[np.uint64]) -> Int64Array:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _levels(problem: Problem) -> Int64Array:
    """Steps on the longest path to each op; trees of inputs that nothing else uses stand right before their use."""
    start, successor = problem.successor_start.tolist(), problem.successor.tolist()
    level, single = [0] * problem.n, [True] * problem.n
    order = problem.topological_order.tolist()
    for u in order:
        after = successor[start[u] : start[u + 1]]
        for v in after:
            level[v] = max(level[v], level[u] + 1)
            single[v] &= single[u] and len(after) == 1
    for u in reversed(order):
        after = successor[start[u] : start[u + 1]]
        if single[u] and after:
            level[u] = min(level[v] for v in after) - 1
    return np.array(level, np.int64)


def _longest_run(colour: Int64Array, level: Int64Array, free: BoolArray) -> tuple[int, int, int] | None:
    """First level, height of a block and number of blocks of the run of like levels that covers most ops."""
    height = free.size
    crowd = np.zeros(height, np.uint64)
    np.add.at(crowd, level, _mixed(colour[:, None]))
    symbol = _dense(crowd)
    symbol[~free] = -1 - np.flatnonzero(~free)
    ops = np.concatenate([[0], np.cumsum(np.bincount(level, minlength=height))])
    order = np.argsort(symbol, kind="stable")
    gaps = np.diff(order)[(np.diff(symbol[order]) == 0)]
    distances, count = np.unique(gaps, return_counts=True)
    best: tuple[int, int, int, int] | None = None
    for period in distances[np.lexsort((distances, -count))][:_PERIODS].tolist():
        alike = np.concatenate([[False], symbol[period:] == symbol[:-period], [False]])
        edges = np.flatnonzero(alike[1:] != alike[:-1])
        for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            blocks = (last - first) // period + 1
            if blocks >= _LEAST_BLOCKS:
                covered = int(ops[first + blocks * period] - ops[first])
                best = max(best or (0, 0, 0, 0), (covered, -period, -first, blocks))
    return None if best is None else (-best[2], -best[1], best[3])


def _positions(
    problem: Problem, colour: Int64Array, level: Int64Array, first: int, height: int, count: int
) -> Int64Array:
    """Ops by block and position, shape (count, q): by level in the block, then colour, then places of predecessors."""
    inside = np.flatnonzero((level >= first) & (level < first + height * count))
    inside = inside[np.lexsort((inside, colour[inside], level[inside]))]
    start, before = problem.predecessor_start.tolist(), problem.predecessor.tolist()
    place: dict[int, tuple[int, int]] = {}
    rows: list[list[int]] = [[] for _ in range(count)]
    cuts = np.flatnonzero(np.diff(level[inside]) | np.diff(colour[inside])) + 1
    for group in np.split(inside, cuts):
        k = int(level[group[0]] - first) // height

        def places(v: int, k: int = k) -> list[tuple[int, int]]:
            known = (place.get(u) for u in before[start[v] : start[v + 1]])
            return sorted((k - at[0], at[1]) for at in known if at is not None)

        for v in sorted(group.tolist(), key=lambda v: (places(v), v)):
            place[v] = (k, len(rows[k]))
            rows[k].append(v)
    return np.array(rows, np.int64)


def _checked(problem: Problem, blocks: Int64Array) -> Repetition | None:
    """The longest run of blocks whose dependencies are alike, or None for fewer than three.

    The first blocks of a run depend on blocks before it, which lie outside: there only the others are compared.
    """
    count, size = blocks.shape
    block, position = np.full(problem.n, _OUTSIDE, np.int64), np.zeros(problem.n, np.int64)
    block[blocks], position[blocks] = np.arange(count)[:, None], np.arange(size)[None, :]
    into: list[set[_Edge]] = [set() for _ in range(count)]
    before, after = problem.edges.T
    rows = np.column_stack([position[before], position[after], block[after] - block[before], problem.delay])
    both = (block[before] >= 0) & (block[after] >= 0)
    for k, row in zip(block[after][both].tolist(), rows[both].tolist(), strict=True):
        into[k].add((row[0], row[1], row[2], row[3]))
    best = (0, 0)
    for first in range(min(_FIRST_BLOCKS, count)):
        best = max(best, (_alike(into, first) - first, first), key=lambda run: run[0])
    length, first = best
    if length < _LEAST_BLOCKS or size < _LEAST_OPS:
        return None
    edges = sorted(into[first + length - 1], key=lambda edge: (edge[1], edge[2], edge[0]))
    edges = [edge for edge in edges if edge[2] < length]
    table = np.array(edges, np.int64).reshape(-1, 4)
    return Repetition(blocks[first : first + length].copy(), table[:, :3].copy(), table[:, 3].copy(), problem.n)


def _alike(into: list[set[_Edge]], first: int) -> int:
    """The end of the run of blocks from `first` on in which each depends on the others alike."""
    known: set[_Edge] = set()
    for k in range(first, len(into)):
        mine = {edge for edge in into[k] if edge[2] <= k - first}
        if {edge for edge in mine if edge[2] < k - first} != known:
            return k
        known = mine
    return len(into)
