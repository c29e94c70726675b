"""Folding: zero-cost views and constants leave the graph, and what hung on them is tied together again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from msched.arrays import Int64Array, distinct, frozen_int64
from msched.graph import OpGraph, Tensor
from msched.lowering.placement import Place, Work, plain

_CONSTANT = frozenset(("constant", "constantofshape", "const", "fileconstant", "constplaceholder"))
_SHAPE = frozenset(("shape", "shapen", "size", "rank"))
_FOLDABLE = frozenset(("matrix", "vector", "control"))
_RANDOM = ("rand", "rng", "bernoulli", "multinomial", "mask")
Home = tuple[int, ...]  # the tensors in whose buffers a tensor lies: itself, what it is a view of, or slices of that
MOST_EDGES = 1024  # no network known here comes near it; 32 branches that all wait for 32 others just reach it


@dataclass(frozen=True)
class Folded:
    """What is left: `kept` (k,), op indices in rising order; `tensors` and `edges` (m, 2) number the ops by `kept`.

    barriers: ops left, numbered so, that only keep an order: each with an op before it, and behind the barriers that
        come before it.
    """

    kept: list[int]
    tensors: tuple[Tensor, ...]
    edges: Int64Array
    barriers: dict[int, int] = field(default_factory=dict)


def fold(graph: OpGraph, works: Sequence[Work], most_edges: int | None = None) -> Folded:
    """The graph without its free work; `works` gives the class of each op.

    - A view (any `free` op that reads a tensor) has no buffer of its own: who consumed its output consumes its input,
      and the input is a graph output if the view's was, or if the view has none. Of several inputs, the viewed one has
      the bytes of the output and a producer, if any has; among equals the first. The slices of a tensor
      (`Tensor.part_of`) are one input: what consumed the view consumes them all.
    - A constant (by kind, or an op all of whose inputs are constants, unless it draws random numbers or was measured to
      take time) leaves persistent outputs, and so does a network input or a variable that the graph lists as an op. The
      shape of a tensor without producer is constant too; weights themselves are not, since nothing tells them from
      network inputs.
    - Persistent tensors that only folded ops consumed go with them.

    Whoever came after a folded op comes after what came before it, so that no order is lost: an op behind k others and
    before m others makes way for k m dependencies. Where these are more than `most_edges` (None: never) and than
    2 (k + m), it stays, as a barrier. Then k + m dependencies do, and those of readers on the op whose buffer they
    read: m, where each reads one. Ops fold in topological order: k counts what is left, and m what is still there, so
    that each op that folds adds at most `most_edges`, or twice what it takes away.
    """
    if "free" not in works and not any(plain(kind) in _SHAPE for kind in {op.kind for op in graph.ops}):
        # only a constant, a view or a shape starts a fold
        return Folded(list(range(len(graph.ops))), graph.tensors, graph.edges)
    reads, writes = _ends(graph)
    gone, home = _gone(graph, works, reads, writes)
    if not any(gone):
        return Folded(list(range(len(graph.ops))), graph.tensors, graph.edges)
    through, before = _ties(graph, gone, most_edges)
    kept = [v for v in range(len(graph.ops)) if not gone[v] or v in before]
    index = {v: i for i, v in enumerate(kept)}
    tensors = _tensors(graph, gone, home, index, writes, reads)
    edges = _edges(graph, gone, index, through, tensors if before else ())
    return Folded(kept, tensors, edges, {index[v]: index[u] for v, u in before.items()})


def settled(folded: Folded, place: Sequence[Place]) -> list[Place]:
    """The place of each op left, from that of each op of the graph.

    A barrier is bound to the engine of an op before it, and holds no unit of it.
    """
    result = [place[v] for v in folded.kept]
    for barrier, before in folded.barriers.items():
        result[barrier] = Place("free", ((result[before].needs[0][0], 0),))
    return result


def _ends(graph: OpGraph) -> tuple[list[list[int]], list[list[int]]]:
    """The tensors that each op reads, and that it writes."""
    reads: list[list[int]] = [[] for _ in graph.ops]
    writes: list[list[int]] = [[] for _ in graph.ops]
    for i, tensor in enumerate(graph.tensors):
        if tensor.producer is not None:
            writes[tensor.producer].append(i)
        for v in dict.fromkeys(tensor.consumers):
            reads[v].append(i)
    return reads, writes


def _gone(
    graph: OpGraph, works: Sequence[Work], reads: list[list[int]], writes: list[list[int]]
) -> tuple[list[bool], list[Home]]:
    """Whether each op folds, and the tensor, or the slices of one, in whose buffer each tensor lies."""
    home: list[Home] = [(i,) for i in range(len(graph.tensors))]
    constant = [False] * len(home)
    gone = [False] * len(graph.ops)
    for v in graph.order.tolist():
        op, inputs = graph.ops[v], _inputs(graph.tensors, reads[v], home)
        name, free = plain(op.kind), works[v] == "free"
        if not free and (op.duration_ns or not inputs or works[v] not in _FOLDABLE):
            continue
        fixed = name in _CONSTANT if free else _known(name, inputs, graph.tensors, constant)
        if fixed:
            for i in writes[v]:
                constant[i] = True
        elif inputs and free:
            for i in writes[v]:
                home[i] = _viewed(graph.tensors, inputs, graph.tensors[i].bytes)
        gone[v] = free or fixed
    return gone, home


def _inputs(tensors: Sequence[Tensor], read: Sequence[int], home: Sequence[Home]) -> list[Home]:
    """Where the inputs of an op lie that reads the tensors `read`; the slices of a tensor are one input."""
    result: dict[str | int, dict[int, None]] = {}
    for i in read:
        whole = tensors[i].part_of
        result.setdefault(i if whole is None else whole, {}).update(dict.fromkeys(home[i]))
    return [tuple(buffers) for buffers in result.values()]


def _known(name: str, inputs: list[Home], tensors: Sequence[Tensor], constant: list[bool]) -> bool:
    """Whether an op that reads `inputs` yields the same at every run."""
    static = name in _SHAPE
    known = all(constant[i] or (static and tensors[i].producer is None) for parts in inputs for i in parts)
    return known and not any(part in name for part in _RANDOM)


def _viewed(tensors: Sequence[Tensor], inputs: list[Home], size: int) -> Home:
    def likeness(parts: Home) -> tuple[bool, bool]:
        return sum(tensors[i].bytes for i in parts) == size, any(tensors[i].producer is not None for i in parts)

    return max(inputs, key=likeness)


def _tensors(
    graph: OpGraph,
    gone: list[bool],
    home: list[Home],
    index: dict[int, int],
    writes: list[list[int]],
    reads: list[list[int]],
) -> tuple[Tensor, ...]:
    count = len(home)
    consumers: list[dict[int, None]] = [{} for _ in range(count)]
    output, left = [False] * count, [False] * count
    for i, tensor in enumerate(graph.tensors):
        viewed = home[i] != (i,)
        for at in home[i]:
            output[at] |= tensor.output
            left[at] |= viewed or (tensor.producer is not None and gone[tensor.producer])
            for v in tensor.consumers:
                if not gone[v]:
                    consumers[at][index[v]] = None
                elif writes[v]:
                    left[at] = True
                else:
                    output[at] = True
    result = []
    for i, tensor in enumerate(graph.tensors):
        producer = None if tensor.producer is None or gone[tensor.producer] else index[tensor.producer]
        if home[i] != (i,) or (producer is None and left[i] and not consumers[i] and not output[i]):
            continue
        result.append(
            Tensor(
                name=tensor.name,
                bytes=tensor.bytes,
                producer=producer,
                consumers=tuple(consumers[i]),
                persistent=tensor.persistent or producer is None,
                output=output[i],
            )
        )
    return tuple(result)


def _ties(graph: OpGraph, gone: list[bool], most: int | None) -> tuple[list[tuple[int, int]], dict[int, int]]:
    """Dependencies through folded ops, between ops that stay; and the folded ops that stay as barriers, in topological
    order, each with an op before it."""
    folded = np.array(gone, np.bool_)
    start = np.searchsorted(graph.edges[:, 0], np.arange(len(gone) + 1)).tolist()  # the edges are sorted
    follower = graph.edges[:, 1].tolist()
    into: dict[int, list[int]] = {}
    for u, v in graph.edges[folded[graph.edges[:, 1]]].tolist():
        into.setdefault(v, []).append(u)
    sources: dict[int, list[int]] = {}  # of a folded op: the ops that stay and come before it
    through: list[tuple[int, int]] = []
    barriers: dict[int, int] = {}
    leads: list[bool] | None = None  # only looked at where much hangs on it
    for v in graph.order[folded[graph.order]].tolist():
        ahead = list(dict.fromkeys(s for u in into.get(v, ()) for s in (sources[u] if gone[u] else (u,))))
        after = follower[start[v] : start[v + 1]]
        if most is not None and len(ahead) * len(after) > most:
            leads = leads or _leads_on(graph, gone)
            k, m = len(ahead), sum(leads[w] for w in after)
            if k * m > max(most, 2 * (k + m)):
                through += [(u, v) for u in ahead]
                barriers[v], ahead = ahead[0], [v]
        sources[v] = ahead
        through += [(u, w) for w in after if not gone[w] for u in ahead]
    return through, barriers


def _leads_on(graph: OpGraph, gone: list[bool]) -> list[bool]:
    """Whether each op stays or comes before one that does."""
    leads = [not folded for folded in gone]
    place = np.argsort(graph.order)
    for u, v in graph.edges[np.argsort(-place[graph.edges[:, 0]], kind="stable")].tolist():
        leads[u] = leads[u] or leads[v]
    return leads


def _edges(
    graph: OpGraph,
    gone: list[bool],
    index: dict[int, int],
    through: list[tuple[int, int]],
    tensors: Sequence[Tensor],
) -> Int64Array:
    """Dependencies among the ops left, those `through` folded ops and of `tensors` included, each once and sorted."""
    folded = np.array(gone, np.bool_)
    place = np.full(len(gone), -1, np.int64)
    place[list(index)] = np.arange(len(index))
    direct = graph.edges[~folded[graph.edges].any(axis=1)]
    rows = place[np.concatenate([direct, np.array(through, np.int64).reshape(-1, 2)])]
    data = [(t.producer, v) for t in tensors if t.producer is not None for v in t.consumers]
    rows = np.concatenate([rows, np.array(data, np.int64).reshape(-1, 2)])
    key = distinct(rows[:, 0] * max(len(index), 1) + rows[:, 1])
    return frozen_int64(np.stack(np.divmod(key, max(len(index), 1)), axis=1))
