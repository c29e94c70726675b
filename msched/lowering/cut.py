"""What one slice of an op does: its share of rows, flops, bytes, blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import msgspec

from msched.graph import Matmul, Op, Rows, Tensor
from msched.lowering.placement import plain, work_of

Axis = Literal["batch", "sequence"]
Reach = Literal["own", "before", "all"]
_GROUPED = "grouped"  # a product for each expert, whose rows are tokens of all requests
_LOOK_UPS = ("embedding", "gather")  # they read the rows that they look up, not the whole table


@dataclass(frozen=True)
class Cut:
    """An op cut into `slices` along an axis: slice i has the rows from floor(i R / slices) up, of R along that axis.

    again: whether its slices could be cut once more.
    """

    slices: int
    axis: Axis
    rows: Rows
    again: bool = True

    @property
    def extent(self) -> int:
        """Requests, or tokens a request, that are shared out."""
        return self.rows.batch if self.axis == "batch" else self.rows.sequence

    def ends(self, i: int) -> tuple[int, int]:
        """First row of slice `i`, and the first behind it."""
        return i * self.extent // self.slices, (i + 1) * self.extent // self.slices

    def holder(self, row: int) -> int:
        """The slice that holds a row."""
        return ((row + 1) * self.slices - 1) // self.extent

    def share(self, amount: int, i: int) -> int:
        """What falls to slice `i` of an amount that is spread evenly over rows; the shares add up to it."""
        begin, end = self.ends(i)
        return amount * end // self.extent - amount * begin // self.extent

    def attends(self, tensor: Tensor) -> bool:
        """Whether a slice needs rows of `tensor` that are not its own."""
        return self.axis == "sequence" and tensor.name in self.rows.attends

    def sliced(self, op: Op, i: int, reads: Sequence[Tensor]) -> Op:
        """Slice `i` of `op`, which reads the tensors `reads`."""
        begin, end = self.ends(i)
        weights = 0
        if not any(name in plain(op.kind) for name in _LOOK_UPS):
            weights = sum(t.bytes for t in reads if is_weight(op, t))
        mixes = self.axis == "sequence" and bool(self.rows.attends)
        seen, keys = self._keys(op, end) if mixes else (1, 1)
        shape = op.matmul
        if shape is not None:
            shape = self._shape(op, shape, i, a_request=weights == 0)
            shape = self._attending(op, shape, seen) if mixes else shape
        flops = self._attention_flops(op, begin, end) if mixes and self.rows.causal else self.share(op.flops, i)
        return msgspec.structs.replace(
            op,
            name=f"{op.name}.slice{i}",
            flops=flops,
            bytes_read=self._bytes_read(op, i, reads, weights, Fraction(seen, keys)),
            bytes_written=self.share(op.bytes_written, i),
            workspace_bytes=self.share(op.workspace_bytes, i),
            payload_bytes=self.share(op.payload_bytes, i),
            duration_ns=None if op.duration_ns is None else -(-op.duration_ns * (end - begin) // self.extent),
            matmul=shape,
            rows=self._rows(end - begin),
        )

    def _rows(self, extent: int) -> Rows | None:
        # a slice that attends to slices before it has rows that begin somewhere inside those
        if self.rows.attends or not self.again:
            return None
        if self.axis == "batch":
            return Rows(extent, self.rows.sequence, last=self.rows.last)
        return Rows(self.rows.batch, extent)

    def _shape(self, op: Op, shape: Matmul, i: int, *, a_request: bool) -> Matmul:
        """The part of a product; `a_request` where none of its operands is a weight, so that each request has its own.

        Those of a grouped product are the experts: few rows meet few of them.
        """
        begin, end = self.ends(i)
        if _GROUPED in plain(op.kind):
            rows = -(-shape.batch * shape.m * (end - begin) // self.extent)
            batch = min(shape.batch, rows)
            return msgspec.structs.replace(shape, batch=batch, m=-(-rows // batch))
        if self.axis == "batch" and a_request and shape.batch % self.rows.batch == 0:
            return msgspec.structs.replace(shape, batch=self.share(shape.batch, i))
        return msgspec.structs.replace(shape, m=-(-shape.m * (end - begin) // self.extent))

    def _attending(self, op: Op, shape: Matmul, seen: int) -> Matmul:
        """`shape` with as many keys as are seen."""
        if self._keys_are_deep(op, shape):
            return msgspec.structs.replace(shape, k=seen)
        return msgspec.structs.replace(shape, n=seen)

    def _keys_are_deep(self, op: Op, shape: Matmul) -> bool:
        """Whether the keys of a product stand along its depth, as where scores meet values, and not in its columns.

        There are as many keys as tokens, or more if some are cached; of both, the columns.
        """
        if work_of(op.kind) != "matrix":
            return False
        if self.extent in (shape.n, shape.k):
            return shape.n != self.extent
        return shape.n < self.extent < shape.k

    def _keys(self, op: Op, end: int) -> tuple[int, int]:
        """Keys that rows up to `end` of a request attend to, and all keys; cached ones stand before row 0."""
        shape = op.matmul
        keys = self.extent if shape is None else shape.k if self._keys_are_deep(op, shape) else shape.n
        if not self.rows.causal:
            return keys, keys
        keys = max(keys, self.extent)
        return keys - self.extent + end, keys

    def _attention_flops(self, op: Op, begin: int, end: int) -> int:
        """Under a causal mask row r of a request attends to the cached keys and to r + 1 new ones."""
        cached = self._keys(op, 0)[0]

        def pairs(row: int) -> int:
            return row * cached + row * (row + 1) // 2

        return op.flops * pairs(end) // pairs(self.extent) - op.flops * pairs(begin) // pairs(self.extent)

    def _bytes_read(self, op: Op, i: int, reads: Sequence[Tensor], weights: int, seen: Fraction) -> int:
        """Its share of the data, and all that slices read again: weights, and a part `seen` of what it attends to."""
        attended = sum(t.bytes for t in reads if self.attends(t) and not is_weight(op, t))
        if not (weights or attended):
            return self.share(op.bytes_read, i)
        data = sum(t.bytes for t in reads) - weights - attended
        if op.matmul is not None and _GROUPED in plain(op.kind):
            met = Fraction(self._shape(op, op.matmul, i, a_request=False).batch, op.matmul.batch)
        else:
            met = Fraction(1)
        mine = weights * met + attended * seen
        # an op that reads less than its tensors hold leaves out data first, and then the same part of all else
        if op.bytes_read >= weights + attended:
            return int(mine) + self.share(op.bytes_read - weights - attended, i)
        if op.bytes_read <= data:
            return self.share(op.bytes_read, i)
        return int(mine * (op.bytes_read - data) / (weights + attended)) + self.share(data, i)


def needed(source: Cut | None, cut: Cut | None, j: int, reach: Reach) -> range:
    """The slices of `source` that slice `j` of `cut` needs: of its own rows, of those up to its last, or of all.

    Where the two have different numbers of rows, row r of R is the part from r / R to (r + 1) / R of a tensor.
    """
    if source is None:
        return range(1)
    if cut is None or reach == "all":
        return range(source.slices)
    begin, end = cut.ends(j)
    first = 0 if reach == "before" else source.holder(begin * source.extent // cut.extent)
    return range(first, source.holder(-(-end * source.extent // cut.extent) - 1) + 1)


def is_weight(op: Op, tensor: Tensor) -> bool:
    """Whether every slice of `op` reads the whole of `tensor`."""
    return tensor.persistent and not tensor.token_wise and not has_rows_of(op, tensor)


def has_rows_of(op: Op, tensor: Tensor) -> bool:
    """Whether a tensor that does not say so must have the rows of `op`, which reads it.

    In a graph that does not say which tensors have rows, one as large as what an op writes has the same, unless it is
    the second operand of a product.
    """
    return op.rows is None and op.matmul is None and tensor.persistent and tensor.bytes == op.bytes_written
