"""What one slice of an op does: its share of rows, flops, bytes, blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from msched.graph import Matmul, Op, Rows, Tensor
from msched.lowering.placement import plain

Axis = Literal["batch", "sequence"]
_GROUPED = "grouped"  # a product for each expert, whose rows are tokens of all requests
_LOOK_UPS = ("embedding", "gather")  # they read the rows that they look up, not the whole table


@dataclass(frozen=True)
class Cut:
    """An op cut into `slices` along an axis: slice i has the rows from floor(i R / slices) up, of R along that axis."""

    slices: int
    axis: Axis
    rows: Rows

    @property
    def extent(self) -> int:
        """Requests, or tokens a request, that are shared out."""
        return self.rows.batch if self.axis == "batch" else self.rows.sequence

    def ends(self, i: int) -> tuple[int, int]:
        """First row of slice `i`, and the first behind it."""
        return i * self.extent // self.slices, (i + 1) * self.extent // self.slices

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
        shape, mixes = op.matmul, self.axis == "sequence" and bool(self.rows.attends)
        seen, keys = self._keys(op, end) if mixes else (1, 1)
        if shape is not None and self._product_a_request(op, shape):
            shape = msgspec.structs.replace(shape, batch=max(1, self.share(shape.batch, i)))
        elif shape is not None:
            m = -(-shape.m * (end - begin) // self.extent)
            shape = msgspec.structs.replace(shape, m=m, n=seen if mixes else shape.n)
        flops = self._attention_flops(op, begin, end) if mixes and self.rows.causal else self.share(op.flops, i)
        return msgspec.structs.replace(
            op,
            name=f"{op.name}.slice{i}",
            flops=flops,
            bytes_read=self._bytes_read(op, i, reads, seen, keys),
            bytes_written=self.share(op.bytes_written, i),
            workspace_bytes=self.share(op.workspace_bytes, i),
            payload_bytes=self.share(op.payload_bytes, i),
            duration_ns=None if op.duration_ns is None else -(-op.duration_ns * (end - begin) // self.extent),
            matmul=shape,
            rows=self._rows(end - begin),
        )

    def _rows(self, extent: int) -> Rows:
        if self.axis == "batch":
            return Rows(extent, self.rows.sequence)
        return Rows(self.rows.batch, extent)

    def _product_a_request(self, op: Op, shape: Matmul) -> bool:
        """Whether the products of a batch belong to requests that are shared out, as the heads of attention do."""
        if self.axis == "sequence" or _GROUPED in plain(op.kind):
            return False
        return bool(self.rows.attends) or (shape.batch > 1 and shape.batch % self.rows.batch == 0)

    def _keys(self, op: Op, end: int) -> tuple[int, int]:
        """Keys that rows up to `end` of a request attend to, and all keys; cached ones stand before row 0."""
        keys = self.extent if op.matmul is None else op.matmul.n
        return (keys - self.extent + end if self.rows.causal else keys), keys

    def _attention_flops(self, op: Op, begin: int, end: int) -> int:
        """Under a causal mask row r of a request attends to the cached keys and to r + 1 new ones."""
        cached = self._keys(op, 0)[0]

        def pairs(row: int) -> int:
            return row * cached + row * (row + 1) // 2

        return op.flops * pairs(end) // pairs(self.extent) - op.flops * pairs(begin) // pairs(self.extent)

    def _bytes_read(self, op: Op, i: int, reads: Sequence[Tensor], seen: int, keys: int) -> int:
        whole = attended = 0
        if not any(name in plain(op.kind) for name in _LOOK_UPS):
            whole = sum(t.bytes for t in reads if self._is_weight(op, t))
            attended = sum(t.bytes for t in reads if self.attends(t))
        total = sum(t.bytes for t in reads)
        if not (whole or attended):
            return self.share(op.bytes_read, i)
        mine = whole + attended * seen // keys + self.share(total - whole - attended, i)
        return mine if op.bytes_read == total else op.bytes_read * mine // total

    def _is_weight(self, op: Op, tensor: Tensor) -> bool:
        # in a graph that does not say which tensors have rows, one as large as what the op writes has the same rows
        same = op.rows is None and tensor.bytes == op.bytes_written
        return tensor.persistent and not tensor.token_wise and not same
