"""The stream allocator of GE, the graph engine of Ascend CANN, in its classic form (release r1.5.0).

After the description of `graph_partition.cc` (clusters of one engine) and `logical_stream_allocator.cc` (the passes by
label, independent engine, dependency, node and skipped engine) of mindspore-ai/graphengine r1.5.0, Apache-2.0. Left
out, since a problem carries no such attributes: parallel groups, all-reduce parallelism, runtime labels, subgraphs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from msched.arrays import Int64Array, compressed_rows
from msched.errors import OptionError
from msched.problem import Problem
from msched.solvers.base import Budget
from msched.solvers.stream_pool import within_limits

NO_STREAM = -1


@dataclass(frozen=True)
class EngineRule:
    """How GE treats an engine.

    independent: its ops have streams of their own, which nothing follows onto. attach: its ops may ride on the stream
    of any predecessor. skip: its ops need no stream unless they have inputs. parallel: most streams it takes by
    itself (`max_parallel_num`).
    """

    independent: bool = False
    attach: bool = False
    skip: bool = False
    parallel: int = 1


@dataclass(frozen=True)
class Ge:
    """Clusters of one engine, placed by label, by independent engine, then by what they depend on.

    max_parallel_num: engine name to its number of streams (1 where not given). independent, attach, skip: names of
    engines with these rules. Names that a problem lacks are ignored, so that one configuration serves many devices.
    GE lists the predecessors of a cluster in no fixed order; here they come by first op. An op that GE leaves without
    a stream (skipped engine, no inputs) rides with its first successor that has one, since a plan places every op.

    Raises OptionError for a number of streams below 1.
    """

    max_parallel_num: Mapping[str, int] = field(default_factory=dict)
    independent: Sequence[str] = ()
    attach: Sequence[str] = ()
    skip: Sequence[str] = ()

    def __post_init__(self) -> None:
        for engine, most in self.max_parallel_num.items():
            if most < 1:
                raise OptionError(f"ge: max_parallel_num of engine {engine!r} is {most}; it must be at least 1")

    def assign(self, problem: Problem, budget: Budget) -> Int64Array:
        """Streams as GE numbers them, without holes, shape (n,).

        Raises UnassignableError: more streams than there are, several engines on a stream that is bound to one, a
        label that spans an independent engine (r1.5.0 moves that engine's part to a stream of its own).
        """
        order = problem.topological_order
        edges = np.argsort(order)[problem.edges]
        engine = [problem.engine_names[e] for e in problem.engine[order]]
        label = ["" if k < 0 else str(k) for k in problem.label[order].tolist()]
        rules = {
            name: EngineRule(
                name in self.independent, name in self.attach, name in self.skip, self.max_parallel_num.get(name, 1)
            )
            for name in problem.engine_names
        }
        placed = allocate(engine, label, edges, engine_clusters(engine, label, edges), rules)
        stream = np.empty(problem.n, np.int64)
        stream[order] = _ride(placed, edges)
        return within_limits(problem, stream)


def engine_clusters(engine: Sequence[str], label: Sequence[str], edges: Int64Array) -> Int64Array:
    """The cluster of each op, shape (n,), numbered by first op. Ops and `edges` (m, 2) are in topological order.

    A cluster is of one engine and one label, and the clusters have no cycle. In O(n (n + m)) at worst: each question
    for a second path may have to walk what lies between an op and its parent.
    """
    from msched.solvers.assign.ge_kernel import clusters

    names: dict[tuple[str, str], int] = {}
    key = np.array([names.setdefault(pair, len(names)) for pair in zip(engine, label, strict=True)], np.int64)
    into, entry = compressed_rows(edges[:, 1], key.size)
    out, leaving = compressed_rows(edges[:, 0], key.size)
    root = clusters(key, into, np.ascontiguousarray(edges[entry, 0]), out, np.ascontiguousarray(edges[leaving, 1]))
    return np.unique(root, return_inverse=True)[1].astype(np.int64)


def allocate(
    engine: Sequence[str], label: Sequence[str], edges: Int64Array, cluster: Int64Array, rules: Mapping[str, EngineRule]
) -> Int64Array:
    """The stream of each op, shape (n,), numbered without holes; NO_STREAM for an op that needs none.

    engine, label ("" for none): of each op, in topological order. edges (m, 2). cluster (n,): of each op, numbered by
    first op; the unit that is placed as one. rules: of every engine.
    """
    n = len(engine)
    inputs, outputs = _neighbours(edges, n)
    _, lead = np.unique(cluster, return_index=True)
    crossing = np.unique(cluster[edges[cluster[edges[:, 0]] != cluster[edges[:, 1]]]], axis=0)
    of_cluster = _place([engine[v] for v in lead], [label[v] for v in lead], crossing, rules)
    skipped = [rules[engine[v]].skip for v in range(n)]
    stream = [NO_STREAM if skipped[v] and not inputs[v] else of_cluster[cluster[v]] for v in range(n)]
    for v in range(n):
        if skipped[v] and not label[v]:
            before = {stream[u] for u in inputs[v]} - {NO_STREAM}
            around = before | {stream[w] for w in outputs[v]} - {NO_STREAM}
            if not before:
                stream[v] = NO_STREAM
            elif len(around) == 1:
                (stream[v],) = around
    used = sorted({*stream} - {NO_STREAM})
    number = {NO_STREAM: NO_STREAM} | {s: k for k, s in enumerate(used)}
    return np.array([number[s] for s in stream], np.int64)


def _place(
    engine: Sequence[str], label: Sequence[str], edges: Int64Array, rules: Mapping[str, EngineRule]
) -> list[int]:
    """The stream of each cluster: by label, then by independent engine, then by dependency."""
    count = len(engine)
    inputs, outputs = _neighbours(edges, count)
    by_label: dict[str, int] = {}
    by_engine: dict[tuple[str, str], int] = {}
    for name in filter(None, label):
        by_label.setdefault(name, len(by_label))
    for pair in zip(engine, label, strict=True):
        if rules[pair[0]].independent:
            by_engine.setdefault(pair, len(by_label) + len(by_engine))
    fixed = [by_engine.get(pair, by_label.get(pair[1], NO_STREAM)) for pair in zip(engine, label, strict=True)]

    leader = list(range(count))  # the cluster whose stream this one takes
    opened = [NO_STREAM] * count  # streams of an engine count from 0 until all are known
    turn = dict.fromkeys(sorted(set(engine)), 0)
    width = dict.fromkeys(turn, 0)

    def may_follow(c: int, p: int) -> bool:
        if rules[engine[p]].independent or label[p]:
            return False
        if any(s != c and engine[s] == engine[p] for s in outputs[p]):
            return False  # the stream is left to the successor of its own engine
        return rules[engine[c]].attach or engine[c] in (engine[p], engine[leader[p]])

    def open_stream(c: int) -> None:
        name = engine[c]
        opened[c] = turn[name] if turn[name] < rules[name].parallel else 0
        turn[name] = opened[c] + 1
        width[name] = max(width[name], turn[name])

    for c in range(count):
        if fixed[c] != NO_STREAM or opened[c] != NO_STREAM:
            continue
        host = next((p for p in inputs[c] if may_follow(c, p)), None)
        if host is None:
            open_stream(c)
            continue
        if leader[host] == host and opened[host] == NO_STREAM:
            open_stream(host)  # clusters count by first op, so a predecessor may come later
        leader[c] = leader[host]

    base = len(by_label) + len(by_engine)
    begin = {}
    for name, streams in width.items():
        begin[name] = base
        base += streams
    return [f if f != NO_STREAM else begin[engine[k]] + opened[k] for f, k in zip(fixed, leader, strict=True)]


def _neighbours(edges: Int64Array, n: int) -> tuple[list[list[int]], list[list[int]]]:
    """Inputs and outputs of each of n vertices, in the order of their numbers."""
    inputs: list[list[int]] = [[] for _ in range(n)]
    outputs: list[list[int]] = [[] for _ in range(n)]
    for u, v in sorted(map(tuple, edges.tolist())):
        inputs[v].append(u)
        outputs[u].append(v)
    return inputs, outputs


def _ride(stream: Int64Array, edges: Int64Array) -> Int64Array:
    """`stream` with every op that has none on that of its first successor which has one, or else on stream 0."""
    result = stream.copy()
    _, outputs = _neighbours(edges, stream.size)
    for v in np.flatnonzero(stream == NO_STREAM)[::-1]:
        result[v] = next((result[w] for w in outputs[v] if result[w] != NO_STREAM), NO_STREAM)
    return np.maximum(result, 0)
