"""Slicing: collectives and the ops around them, cut along tokens so that one slice communicates while another computes.

The cut of Wang et al., Overlap Communication with Dependent Computation via Decomposition in Large Deep Learning Models
(ASPLOS 2023), and of micro-batches inside a layer, as a transformation of graphs: an op becomes `slices` ops of its
rows, and a slice depends on those slices of its inputs that hold rows which it needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Literal, get_args

import msgspec
import numpy as np

from msched.errors import GraphError, OptionError
from msched.graph import Op, OpGraph, Rows, Tensor
from msched.lowering.cut import Axis, Cut, Reach, has_rows_of, is_weight, needed
from msched.lowering.placement import work_of
from msched.lowering.rows import regions, rows_of

Along = Literal["auto", "batch", "sequence"]
Around = Literal["collectives", "any"]
Slices = int | Mapping[str, int]


def slice_graph(
    graph: OpGraph, slices: Slices = 2, *, along: Along = "auto", around: Around = "collectives"
) -> OpGraph:
    """The graph with its ops cut into slices; `slices=1` gives back the graph itself.

    slices: of every op that can be cut, or of those whose names match a pattern (`{"layer0.*": 2, "*": 4}`, the first
        that fits, as in fnmatch); ops that match none stay whole. Where two regions meet, a slice depends on all slices
        that share rows with it.
    along: "batch" cuts between requests, "sequence" inside each; "auto" takes the batch where every op that is cut has
        as many requests as slices, or a multiple, or where no sequence is long enough, else the sequence.
    around: "collectives" cuts only ops that are tied to a collective through others that can be cut; "any" cuts all.

    Which ops can be cut: those that say so (`Op.rows`). In a graph in which none does, those that `rows_of` knows to
    work row by row. All others need all slices of their inputs.

    What a slice needs: its own rows; of the tensors that it attends to, all rows of its request, or under a causal mask
    those up to its last. Cut between requests (the batch), it needs none of the others. What keeps the last token of a
    request needs the last slice along the sequence. A control dependency carries no rows: all slices of the one op come
    before all of the other. Flops, bytes, workspace and payload of the slices add up to those of the whole, but for
    what each reads again: weights (of a grouped product those of the experts that it meets), and keys and values of
    rows before it. Matrix shapes keep their columns and depth, so that tiles and waves follow. A measured duration is
    divided by rows.

    An op with fewer rows than slices stays whole. In a graph that has been cut, slices of attention, and what stands
    where regions meet, cannot be cut again.

    Raises OptionError: fewer than one slice, more than every op has rows, a pattern that no op falls to. Raises
    GraphError where another op has the name that a slice would get (`op.slice0`).
    """
    wanted = _wanted(graph, slices, along, around)
    if max(wanted, default=1) == 1:
        return graph
    rows = rows_of(graph)
    count = [1 if row is None else k for k, row in zip(wanted, rows, strict=True)]
    if around == "collectives":
        count = _beside_collectives(graph, count)
    if max(count) == 1:
        return _whole(graph, "no op that can be cut is tied to a collective" if around != "any" else "no op can be cut")
    axis = _axis(count, rows, along)
    cuts = [Cut(k, axis, row) if row is not None and k > 1 else None for k, row in zip(count, rows, strict=True)]
    left = _divisible(graph, cuts, along)
    short = [op.name for op, cut, kept in zip(graph.ops, cuts, left, strict=True) if cut is not kept]
    return _cut(graph, left, short)


def _wanted(graph: OpGraph, slices: Slices, along: str, around: str) -> list[int]:
    """Slices that the caller asks for, an op."""
    if not isinstance(graph, OpGraph):
        raise OptionError(f"graph is {graph!r}; an OpGraph is needed, as msched.read or msched.network gives")
    for option, value, known in (("along", along, Along), ("around", around, Around)):
        if value not in get_args(known):
            raise OptionError(f"{option} is {value!r}; it must be one of: {', '.join(get_args(known))}")
    patterns = slices if isinstance(slices, Mapping) else {"*": slices}
    for pattern, k in patterns.items():
        if not isinstance(pattern, str):
            raise OptionError(f"slices: {pattern!r} is no pattern of the names of ops; give it as text")
        if not isinstance(k, int) or isinstance(k, bool) or not 1 <= k < 2**31:
            where = f" of {pattern!r}" if isinstance(slices, Mapping) else ""
            search = (
                " ('auto' is a search with a solver: msched.solve_slices, or msched run)" if str(k) == "auto" else ""
            )
            raise OptionError(f"slices{where} is {k!r}; a whole number of at least 1 is needed{search}")
    if list(patterns) == ["*"]:
        return [patterns["*"]] * len(graph.ops)
    chosen = [next(((p, k) for p, k in patterns.items() if fnmatchcase(op.name, p)), (None, 1)) for op in graph.ops]
    if unused := [p for p in patterns if p not in {pattern for pattern, _ in chosen}]:
        raise OptionError(f"slices: no op of {graph.name!r} falls to the pattern {unused[0]!r}")
    return [k for _, k in chosen]


def _beside_collectives(graph: OpGraph, count: list[int]) -> list[int]:
    """`count`, with 1 for ops that no chain of ops to be cut ties to a collective that is cut."""
    cut = np.array(count) > 1
    tied = graph.edges[cut[graph.edges].all(axis=1)]
    talks = [bool(cut[v]) and work_of(op.kind) == "collective" for v, op in enumerate(graph.ops)]
    region = regions(len(count), tied.tolist())
    with_collective = {region[v] for v, talking in enumerate(talks) if talking}
    return [k if at in with_collective else 1 for k, at in zip(count, region, strict=True)]


def _axis(count: Sequence[int], rows: Sequence[Rows | None], along: Along) -> Axis:
    """The axis that every op is cut along."""
    if along != "auto":
        return along
    cut = [(k, row) for k, row in zip(count, rows, strict=True) if k > 1 and row is not None]
    even = all(row.batch % k == 0 for k, row in cut)
    short = not any(row.sequence >= k for k, row in cut) and any(row.batch >= k for k, row in cut)
    return "batch" if even or short else "sequence"


def _divisible(graph: OpGraph, cuts: Sequence[Cut | None], along: Along) -> list[Cut | None]:
    """`cuts` without those of ops that have too few rows, as those behind the choice of the last token of a request.

    Raises OptionError if then none is left.
    """
    left = [cut if cut is not None and cut.slices <= cut.extent else None for cut in cuts]
    if any(left):
        return left
    v, cut = max(((v, cut) for v, cut in enumerate(cuts) if cut is not None), key=lambda c: (c[1].extent, -c[0]))
    where = "" if along == "auto" else " between requests," if cut.axis == "batch" else " inside requests,"
    size = f"{_counted(cut.rows.batch, 'request')} of {_counted(cut.rows.sequence, 'token')}"
    raise OptionError(
        f"slices is {cut.slices},{where} but no op has as many rows: {graph.ops[v].name!r} has {size}. "
        "Give fewer slices, or a larger batch or sequence"
    )


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _cut(graph: OpGraph, cuts: Sequence[Cut | None], short: Sequence[str]) -> OpGraph:
    """The graph of the slices; `short` are the ops that had too few rows."""
    count = [1 if cut is None else cut.slices for cut in cuts]
    first = [0]
    for k in count:
        first.append(first[-1] + k)
    # what reads slices of another number has rows that no longer line up with those of its inputs
    meets = {v for u, v in graph.edges.tolist() if count[u] != count[v] and not _takes_last(graph.ops[v])}
    reads, whole, silent = _moved(graph, cuts)
    ops: list[Op] = []
    for v, (op, cut) in enumerate(zip(whole, cuts, strict=True)):
        if cut is None:
            ops.append(msgspec.structs.replace(op, rows=None) if v in meets else op)
            continue
        if v in meets:
            cut = replace(cut, again=False)
        ops += [cut.sliced(op, i, reads[v]) for i in range(cut.slices)]
    _check_names(graph, cuts, ops)
    tensors = [part for tensor in _with_rows(graph, whole, cuts) for part in _tensors(tensor, graph, cuts, first)]
    control = [(first[u] + i, first[v] + j) for u, v in graph.control for j in range(count[v]) for i in range(count[u])]
    again = sum(op.bytes_read for op in ops) - sum(op.bytes_read for op in whole)
    notes = [
        f"{sum(k > 1 for k in count)} of {len(count)} ops are cut into up to {max(count)} slices, which read {again} "
        "bytes more than the whole (weights once a slice, keys and values of rows before it)"
    ]
    if short:
        notes.append(f"{len(short)} ops have fewer rows than slices and stay whole; the first is {short[0]!r}")
    notes += _assumed(graph, cuts, silent)
    name = f"{graph.name}_{max(count)}_slices"
    return OpGraph(name, tuple(ops), tuple(tensors), tuple(control), (*graph.warnings, *notes))


def _moved(graph: OpGraph, cuts: Sequence[Cut | None]) -> tuple[list[list[Tensor]], list[Op], list[str]]:
    """What each op reads; the ops, those that are cut and say nothing of their bytes with those of their tensors, of
    which a slice has its part; and the names of those whose price rests on that."""
    reads: list[list[Tensor]] = [[] for _ in graph.ops]
    written = [0] * len(graph.ops)
    for tensor in graph.tensors:
        if tensor.producer is not None:
            written[tensor.producer] += tensor.bytes
        for v in dict.fromkeys(tensor.consumers):
            reads[v].append(tensor)
    whole, silent = list(graph.ops), []
    for v, op in enumerate(graph.ops):
        if cuts[v] is None or op.bytes_read or op.bytes_written:
            continue
        read = sum(tensor.bytes for tensor in reads[v])
        whole[v] = msgspec.structs.replace(op, bytes_read=read, bytes_written=written[v])
        if (read or written[v]) and op.duration_ns is None and not op.payload_bytes:
            silent.append(op.name)
    return reads, whole, silent


def _assumed(graph: OpGraph, cuts: Sequence[Cut | None], silent: Sequence[str]) -> list[str]:
    """A warning for each kind of figure of slices that had to be assumed."""
    cut = [(op, c.slices) for op, c in zip(graph.ops, cuts, strict=True) if c is not None]
    measured = sum(op.duration_ns is not None for op, _ in cut)
    few = [op.name for op, k in cut if op.matmul is not None and op.matmul.batch * op.matmul.m < k]
    notes = []
    if measured:
        notes.append(f"{measured} measured durations are divided among slices by their rows: assumed")
    if silent:
        notes.append(
            f"{len(silent)} of the ops that are cut say nothing of the bytes that they move: taken to read and write "
            f"each of their tensors once; the first is {silent[0]!r}"
        )
    if few:
        notes.append(
            f"{len(few)} products have fewer rows than slices, as those of single experts: every slice is charged a "
            f"row and the whole weight, though some have none; the first is {few[0]!r}"
        )
    return notes


def _check_names(graph: OpGraph, cuts: Sequence[Cut | None], ops: Sequence[Op]) -> None:
    """Raise GraphError where an op has the name of a slice of another."""
    if len({op.name for op in ops}) == len(ops):
        return
    made = {
        f"{op.name}.slice{i}": op.name
        for op, cut in zip(graph.ops, cuts, strict=True)
        if cut
        for i in range(cut.slices)
    }
    name = next(op.name for op in graph.ops if op.name in made)
    raise GraphError(f"op {name!r} has the name that a slice of {made[name]!r} would get; rename one of the two")


def _takes_last(op: Op) -> bool:
    return op.rows is not None and op.rows.last


def _with_rows(graph: OpGraph, whole: Sequence[Op], cuts: Sequence[Cut | None]) -> list[Tensor]:
    """The tensors, those marked as token-wise of which slices of ops read their rows for want of a word on it."""
    result = []
    for tensor in graph.tensors:
        readers = [whole[v] for v in dict.fromkeys(tensor.consumers) if cuts[v] is not None]
        if any(has_rows_of(op, tensor) for op in readers) and not any(is_weight(op, tensor) for op in readers):
            tensor = msgspec.structs.replace(tensor, token_wise=True)
        result.append(tensor)
    return result


def _tensors(tensor: Tensor, graph: OpGraph, cuts: Sequence[Cut | None], first: Sequence[int]) -> list[Tensor]:
    """One tensor for each slice of its producer, with the slices of ops that need a row of it."""
    producer = tensor.producer
    source = None if producer is None else cuts[producer]
    k = 1 if source is None else source.slices
    consumers: list[list[int]] = [[] for _ in range(k)]
    for v in tensor.consumers:
        cut = cuts[v]
        reach: Reach = "own"
        if cut is not None and cut.attends(tensor):
            reach = "before" if cut.rows.causal else "all"
        if source is not None and source.axis == "sequence" and _takes_last(graph.ops[v]):
            consumers[-1].append(first[v])  # along the sequence it has one row, and is whole
            continue
        for j in range(1 if cut is None else cut.slices):
            for i in needed(source, cut, j, reach):
                consumers[i].append(first[v] + j)
    if source is None:
        whole = None if producer is None else first[producer]
        return [msgspec.structs.replace(tensor, producer=whole, consumers=tuple(consumers[0]))]
    assert producer is not None
    return [
        msgspec.structs.replace(
            tensor,
            name=f"{tensor.name}.slice{i}",
            bytes=source.share(tensor.bytes, i),
            producer=first[producer] + i,
            consumers=tuple(consumers[i]),
            part_of=tensor.part_of or tensor.name,
        )
        for i in range(k)
    ]


def _whole(graph: OpGraph, why: str) -> OpGraph:
    return OpGraph(graph.name, graph.ops, graph.tensors, graph.control, (*graph.warnings, f"nothing is sliced: {why}"))
