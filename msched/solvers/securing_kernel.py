"""Which ops of a schedule would overtake others to its cost, compiled."""

from __future__ import annotations

import numpy as np

from msched.arrays import Int64Array
from msched.compiled import compiled


@compiled
def victims(
    by_start: Int64Array, start: Int64Array, limit: Int64Array, arrival: Int64Array, duration: Int64Array,
    demand: Int64Array, capacity: Int64Array,
) -> Int64Array:  # fmt: skip
    """For each op the one that starts after its limit because the first arrives long before its own start; -1 for none.

    All other ops are taken to keep their starts. Shape (n,). by_start (n,): ops by start and issue order; start, limit,
    arrival, duration (n,) in ns; demand (n, E) and capacity (E,) in units. An op that arrives early goes behind those
    that wait for an engine of its own, and starts, as far as pairs of ops tell, in the first gap that it finds on the
    way to its start; who comes later to that engine waits for it.
    """
    n, engines = demand.shape
    longest = 0
    for v in range(n):
        longest = max(longest, duration[v])
    starts = start[by_start]
    victim = np.full(n, -1)
    for place in range(n):
        w = by_start[place]
        if arrival[w] >= start[w] or duration[w] == 0:
            continue
        time = arrival[w]
        for k in range(np.searchsorted(starts, arrival[w] - longest), place):
            x = by_start[k]
            if start[x] + duration[x] <= arrival[w]:
                continue
            shared, both = False, True
            for e in range(engines):
                if demand[w, e] and demand[x, e]:
                    shared = True
                    both = both and demand[w, e] + demand[x, e] <= capacity[e]
            if not shared or duration[x] == 0:
                continue
            if arrival[x] <= arrival[w]:
                time = max(time, start[x] if both else start[x] + duration[x])
            elif both:
                if time > limit[x]:
                    victim[w] = x
                    break
            elif time + duration[w] <= limit[x]:
                break
            else:
                victim[w] = x
                break
    return victim
