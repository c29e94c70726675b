"""The two array types of the project, and the step from rows of pairs to compressed sparse rows (CSR)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Int64Array = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


def frozen_int64(values: Any, shape: tuple[int, ...] | None = None) -> Int64Array:
    """A read-only int64 copy of `values`; floats are refused rather than truncated (TypeError)."""
    array = np.asarray(values)
    if array.size == 0:
        array = np.zeros(shape if shape is not None else array.shape, np.int64)
    if array.dtype == object or not np.can_cast(array.dtype, np.int64, casting="same_kind"):
        raise TypeError(f"whole numbers that fit in 64 bits are needed, not {array.dtype}")
    if array.dtype == np.uint64 and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise TypeError("whole numbers that fit in 64 bits are needed")
    result = np.array(array, dtype=np.int64, order="C", copy=True)
    result.setflags(write=False)
    return result


def frozen_bool(values: Any) -> BoolArray:
    """A read-only copy of `values`, which must be booleans (TypeError)."""
    array = np.asarray(values)
    if array.size and array.dtype != np.bool_:
        raise TypeError(f"true or false is needed, not {array.dtype}")
    result = np.array(array, dtype=np.bool_, copy=True)
    result.setflags(write=False)
    return result


def compressed_rows(row: Int64Array, rows: int) -> tuple[Int64Array, Int64Array]:
    """Row starts, shape (rows + 1,), and the stable permutation that sorts entries by row, shape (m,)."""
    start = np.zeros(rows + 1, np.int64)
    np.cumsum(np.bincount(row, minlength=rows), out=start[1:])
    narrow = row.astype(np.uint16) if rows <= 2**16 else row  # 16 bits are sorted by counting, in linear time
    return start, np.argsort(narrow, kind="stable").astype(np.int64)


def distinct(values: Int64Array) -> Int64Array:
    """The values of a plain list, each once, sorted; on large lists much faster than `numpy.unique`, which hashes."""
    result = np.sort(values)
    first = np.ones(result.size, np.bool_)
    first[1:] = result[1:] != result[:-1]
    return np.compress(first, result)


def pairs(values: Iterable[tuple[int, int]] | Int64Array) -> Int64Array:
    """Pairs of indices as a read-only array, shape (m, 2)."""
    array = frozen_int64(values if isinstance(values, np.ndarray) else list(values), (0, 2))
    if array.ndim != 2 or array.shape[1] != 2:
        raise TypeError("a list of pairs of indices is needed")
    return array
