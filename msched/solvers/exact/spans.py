"""Which intervals of the precedence order are worth a proof: from one gate to another, a few blocks apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from msched.arrays import Int64Array
from msched.bounds import heads_and_tails, shortest_durations
from msched.problem import Problem
from msched.solvers.exact.repetition import Repetition, repetitions

_LENGTHS = (1, 2, 4, 8)  # blocks, or gates, between the two ends
_MOST_GATES = 256


@dataclass(frozen=True)
class Span:
    """The ops (k,) that lie after a and before b; None stands for the start and the end of the plan.

    rank (k,): places that correspond in like spans.
    """

    a: int | None
    b: int | None
    ops: Int64Array
    rank: Int64Array

    @property
    def whole(self) -> bool:
        """Whether it is the problem from start to end."""
        return self.a is None and self.b is None


def spans(problem: Problem, most_ops: int) -> Iterator[list[Span]]:
    """Spans of two to `most_ops` ops, in groups by rising length; at last the whole, where it is no larger.

    O(n m / 64) for the order of all pairs of ops.
    """
    order = _Order(problem)
    chains = [_gates(order), *(chain for run in repetitions(problem) for chain in _of_run(order, run))]
    chains = [chain for chain in chains if chain]
    seen: set[tuple[int | None, int | None]] = set()
    for length in _LENGTHS:
        group = []
        for chain in chains:
            ends: list[tuple[int | None, int | None]] = [
                (first, last) for (first, _), (_, last) in zip(chain, chain[length:], strict=False)
            ]
            ends += [(None, last) for _, last in chain[length - 1 : length]]
            ends += [(first, None) for first, _ in chain[-length:][:1]]
            for a, b in ends:
                if (a, b) not in seen and 2 <= (inside := order.between(a, b)).bit_count() <= most_ops:
                    seen.add((a, b))
                    ops = order.ops(inside)
                    group.append(Span(a, b, ops, order.rank[ops]))
        if group:
            yield group
    if problem.n <= most_ops:
        yield [Span(None, None, np.arange(problem.n), order.rank)]


class _Order:
    """The ancestors and descendants of each op as bits, and a rank that runs through like blocks alike."""

    def __init__(self, problem: Problem) -> None:
        n = problem.n
        self.problem = problem
        self.before, self.after = [0] * n, [0] * n
        rows, near = problem.predecessor_start.tolist(), problem.predecessor.tolist()
        for v in problem.topological_order.tolist():
            for u in near[rows[v] : rows[v + 1]]:
                self.before[v] |= self.before[u] | (1 << u)
        rows, near = problem.successor_start.tolist(), problem.successor.tolist()
        for v in reversed(problem.topological_order.tolist()):
            for w in near[rows[v] : rows[v + 1]]:
                self.after[v] |= self.after[w] | (1 << w)
        self.all = (1 << n) - 1
        self.rank = np.argsort(problem.topological_order)
        for run in repetitions(problem):
            # Blocks take the ranks that their ops have, in the sequence of blocks and positions.
            self.rank[run.blocks.ravel()] = np.sort(self.rank[run.blocks.ravel()])
        self.head = heads_and_tails(problem)[0]

    def between(self, a: int | None, b: int | None) -> int:
        """Ops after a and before b, as bits; none where b does not come after a."""
        if a is not None and b is not None and not self.after[a] >> b & 1:
            return 0
        return (self.all if a is None else self.after[a]) & (self.all if b is None else self.before[b])

    def ops(self, bits: int) -> Int64Array:
        raw = np.frombuffer(bits.to_bytes(-(-self.problem.n // 8), "little"), np.uint8)
        return np.flatnonzero(np.unpackbits(raw, bitorder="little")).astype(np.int64)


def _gates(order: _Order) -> list[tuple[int, int]]:
    """Ops that come before or after every other one; where there are hardly any, those nearest to that."""
    n = order.problem.n
    comparable = np.array([order.before[v].bit_count() + order.after[v].bit_count() + 1 for v in range(n)])
    gates = np.flatnonzero(comparable == n)
    if gates.size < 2:
        gates = np.argsort(-comparable, kind="stable")[: min(_MOST_GATES, n // 8)]
    gates = gates[np.lexsort((gates, order.head[gates]))]
    chain: list[tuple[int, int]] = []
    for v in gates.tolist():
        if not chain or (order.after[chain[-1][0]] >> v & 1 and order.between(chain[-1][0], v).bit_count() >= 2):
            chain.append((v, v))
    return chain


def _of_run(order: _Order, run: Repetition) -> Iterator[list[tuple[int, int]]]:
    """Two ends a block, as (where spans begin, where they end): the pair that leaves fewest ops out, per time, and the
    best that is one op, so that spans can follow each other."""
    k = max(0, len(run.blocks) // 2 - 1)
    here, there = run.blocks[k].tolist(), run.blocks[k + 1].tolist()
    duration = shortest_durations(order.problem)

    def density(p: int, q: int) -> float:
        a, b = here[p], there[q]
        time = int(order.head[b] - order.head[a] - duration[a])
        return order.between(a, b).bit_count() / max(1, time)

    places = range(len(here))
    for pairs in (((p, p) for p in places), ((p, q) for p in places for q in places)):
        p, q = max(pairs, key=lambda pair: (density(*pair), -pair[0], -pair[1]))
        if density(p, q) > 0:
            yield list(zip(run.blocks[:, p].tolist(), run.blocks[:, q].tolist(), strict=True))
