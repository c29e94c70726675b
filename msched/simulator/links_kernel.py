"""What a plan makes each op wait for and hold, as compiled arrays in which an op is its issue position."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from msched.arrays import Int64Array
from msched.compiled import compiled


class Links(NamedTuple):
    """What the dispatch rules read of a plan; ops are issue positions.

    first (n + 1,), target (k,), lag (k,): orderings between streams as CSR by the earlier op, and the ns that each
    takes. following (n,): the op after each in its stream, -1 for none. pending (n,): how many orderings, those of its
    stream included, each op waits for.
    held (n + 1,), engine (h,), units (h,): what each op holds as CSR; the engine beyond the last is the queue of free
    ops.
    """

    first: Int64Array
    target: Int64Array
    lag: Int64Array
    following: Int64Array
    pending: Int64Array
    held: Int64Array
    engine: Int64Array
    units: Int64Array


@compiled
def links_of(
    order: Int64Array,
    stream: Int64Array,
    duration: Int64Array,
    demand: Int64Array,
    edges: Int64Array,
    delay: Int64Array,
    fences: Int64Array,
    sync: int,
) -> Links:
    """The links of a plan, from its arrays and those of its problem; sync: ns of record and wait."""
    first, target, lag, pending = _crossings(positions(order), stream, edges, delay, fences, sync)
    following = _next_in_stream(order, stream, pending)
    held, engine, units = _holdings(order, duration, demand)
    return Links(first, target, lag, following, pending, held, engine, units)


@compiled
def positions(order: Int64Array) -> Int64Array:
    """Issue position of each op: shape (n,)."""
    position = np.empty(order.size, np.int64)
    for p in range(order.size):
        position[order[p]] = p
    return position


@compiled
def _crossings(
    position: Int64Array, stream: Int64Array, edges: Int64Array, delay: Int64Array, fences: Int64Array, sync: int
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """Orderings between streams as CSR by issue position of the earlier op; and how many each later op waits for."""
    n = position.size
    pending = np.zeros(n, np.int64)
    first = np.zeros(n + 1, np.int64)
    for k in range(edges.shape[0]):
        u, v = edges[k, 0], edges[k, 1]
        if stream[u] != stream[v]:
            first[position[u] + 1] += 1
            pending[position[v]] += 1
    for k in range(fences.shape[0]):
        u, v = fences[k, 0], fences[k, 1]
        if stream[u] != stream[v]:
            first[position[u] + 1] += 1
            pending[position[v]] += 1
    for p in range(n):
        first[p + 1] += first[p]
    fill = first[:-1].copy()
    target = np.empty(first[n], np.int64)
    lag = np.empty(first[n], np.int64)
    for k in range(edges.shape[0]):
        u, v = edges[k, 0], edges[k, 1]
        if stream[u] != stream[v]:
            at = fill[position[u]]
            target[at] = position[v]
            lag[at] = sync + delay[k]
            fill[position[u]] = at + 1
    for k in range(fences.shape[0]):
        u, v = fences[k, 0], fences[k, 1]
        if stream[u] != stream[v]:
            at = fill[position[u]]
            target[at] = position[v]
            lag[at] = sync
            fill[position[u]] = at + 1
    return first, target, lag, pending


@compiled
def _next_in_stream(order: Int64Array, stream: Int64Array, pending: Int64Array) -> Int64Array:
    """The op after each in its stream, -1 for none, by issue position; counts it in `pending`."""
    n = order.size
    following = np.full(n, -1, np.int64)
    last = np.full((stream.max() if n else 0) + 1, -1, np.int64)
    for p in range(n):
        s = stream[order[p]]
        if last[s] >= 0:
            following[last[s]] = p
            pending[p] += 1
        last[s] = p
    return following


@compiled
def _holdings(order: Int64Array, duration: Int64Array, demand: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Engines and units of each op as CSR by issue position; the engine beyond the last is the queue of free ops."""
    n, engines = demand.shape
    first = np.zeros(n + 1, np.int64)
    entries = 0
    for p in range(n):
        v = order[p]
        held = 0
        if duration[v] > 0:
            for e in range(engines):
                if demand[v, e] > 0:
                    held += 1
        entries += max(held, 1)
        first[p + 1] = entries
    engine = np.full(entries, engines, np.int64)
    units = np.zeros(entries, np.int64)
    for p in range(n):
        v = order[p]
        at = first[p]
        if duration[v] > 0:
            for e in range(engines):
                if demand[v, e] > 0:
                    engine[at] = e
                    units[at] = demand[v, e]
                    at += 1
    return first, engine, units
