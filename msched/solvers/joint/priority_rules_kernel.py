"""What ops are weighed by when they compete: tails and what comes after them, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from msched.arrays import Int64Array
from msched.compiled import compiled
from msched.solvers.joint.schemes import Scheme

Float64Array = NDArray[np.float64]


@compiled
def tails(duration: Int64Array, lag: Int64Array, scheme: Scheme) -> Int64Array:
    """Longest way from the finish of each op to the end, in durations and lags (one an entry of `before`): (n,) ns."""
    tail = scheme.tail.copy()
    for v in range(duration.size - 1, -1, -1):
        for k in range(scheme.before_start[v], scheme.before_start[v + 1]):
            u = scheme.before[k]
            tail[u] = max(tail[u], lag[k] + duration[v] + tail[v])
    return tail


@compiled
def descendants(work: Float64Array, scheme: Scheme) -> tuple[Int64Array, Float64Array]:
    """How many ops come after each op (n,), and the sum of their `work` (n, K), itself left out: (n, K).

    Sixty-three ops are followed at a time, each a bit of the sets that the ops before them hold.
    """
    n, kinds = work.shape
    count, total = np.zeros(n, np.int64), np.zeros((n, kinds))
    reached = np.zeros(n, np.int64)
    for low in range(0, n, 63):
        high = min(low + 63, n)
        reached[:high] = 0
        for v in range(high - 1, -1, -1):
            passed = reached[v]
            bits, w = passed, low
            while bits:
                if bits & 1:
                    count[v] += 1
                    for k in range(kinds):
                        total[v, k] += work[w, k]
                bits >>= 1
                w += 1
            if v >= low:
                passed |= 1 << (v - low)
            if passed:
                for k in range(scheme.before_start[v], scheme.before_start[v + 1]):
                    reached[scheme.before[k]] |= passed
    return count, total


@compiled
def loaded_tails(duration: Int64Array, lag: Int64Array, load: Float64Array, scheme: Scheme) -> Float64Array:
    """`tails`, none below the time `load` (n, K) that what comes after an op takes on some resource: (n,) ns."""
    n = duration.size
    tail = scheme.tail.astype(np.float64)
    for v in range(n - 1, -1, -1):
        for k in range(load.shape[1]):
            tail[v] = max(tail[v], load[v, k])
        for k in range(scheme.before_start[v], scheme.before_start[v + 1]):
            u = scheme.before[k]
            tail[u] = max(tail[u], lag[k] + duration[v] + tail[v])
    return tail
