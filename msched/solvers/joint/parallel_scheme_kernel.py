"""The parallel schedule generation scheme, compiled: time goes from event to event, and what fits starts, in turn."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from msched.arrays import Int64Array
from msched.compiled import compiled
from msched.solvers.joint.schemes import Scheme
from msched.solvers.joint.serial_scheme_kernel import Schedule, arrival, stream_of, streams_for

_WAKE = -1  # an event that says only that something may start now


@compiled
def _fits(mode: int, free: Int64Array, scheme: Scheme) -> bool:
    for k in range(scheme.need_start[mode], scheme.need_start[mode + 1]):
        if free[scheme.resource[k]] < scheme.units[k]:
            return False
    return True


@compiled
def _fitting(v: int, wish: int, free: Int64Array, scheme: Scheme) -> int:
    """The shortest mode of op v for which units are free, or the one wished for; -1 where none are."""
    first, last = scheme.mode_start[v], scheme.mode_start[v + 1]
    if wish >= 0:
        first, last = first + wish, first + wish + 1
    best = -1
    for mode in range(first, last):
        if (best < 0 or scheme.duration[mode] < scheme.duration[best]) and _fits(mode, free, scheme):
            best = mode
    return best


@compiled
def _queue(v: int, count: int, ready: Int64Array, key: NDArray[np.float64]) -> int:
    """Insert op v into the ready ops, by key, then by number; how many there are then."""
    k = count
    while k > 0 and (key[ready[k - 1]] > key[v] or (key[ready[k - 1]] == key[v] and ready[k - 1] > v)):
        ready[k] = ready[k - 1]
        k -= 1
    ready[k] = v
    return count + 1


@compiled
def parallel(
    key: NDArray[np.float64], modes: Int64Array, wishes: Int64Array, scheme: Scheme, schedule: Schedule
) -> int:
    """Fill `schedule` and return its makespan (ns), tails included; all ops are to be placed.

    The parallel scheme (Bedworth and Bailey 1982, section 5), as in Kolisch (1996), EJOR 90: at each instant the ready
    ops are tried by key, the least first.

    modes (n,): -1 takes the shortest for which units are free. wishes (n,): as for the serial scheme, not binding.
    """
    n, needs = key.size, scheme.resource.size
    free, idle = scheme.capacity.copy(), -1
    home = np.full(scheme.labels, -1)
    pending = np.diff(scheme.before_start)
    everywhere, near, sooner = np.zeros(n, np.int64), np.full(n, -1), np.zeros(n, np.int64)
    ready = np.empty(n, np.int64)
    count = 0
    for v in range(n):
        if pending[v] == 0:
            everywhere[v] = sooner[v] = scheme.head[v]
            count = _queue(v, count, ready, key)
    events = [(0, _WAKE)]  # units k come free, then op `needs + v` ends, then stream `needs + n + s` is idle
    for v in ready[:count]:
        if scheme.head[v] > 0:
            heappush(events, (scheme.head[v], _WAKE))
    makespan, left = 0, n
    while left > 0:
        now, event = heappop(events)
        while True:
            if event >= needs + n:
                idle |= 1 << (event - needs - n)
            elif event >= needs:
                u = event - needs
                for k in range(scheme.after_start[u], scheme.after_start[u + 1]):
                    v = scheme.after[k]
                    pending[v] -= 1
                    if pending[v] == 0:
                        everywhere[v], near[v], sooner[v] = arrival(v, scheme, schedule)
                        count = _queue(v, count, ready, key)
                        if everywhere[v] > now:
                            heappush(events, (everywhere[v], _WAKE))
                            heappush(events, (max(sooner[v], now), _WAKE))
            elif event >= 0:
                free[scheme.resource[event]] += scheme.units[event]
            if not events or events[0][0] > now:
                break
            now, event = heappop(events)
        kept = 0
        for i in range(count):
            v = ready[i]
            streams = 0
            if idle != 0:
                streams = streams_for(v, -1, False, scheme, home) & idle
                if everywhere[v] > now:
                    streams = streams & 1 << near[v] if near[v] >= 0 and sooner[v] <= now else 0
            mode = _fitting(v, modes[v], free, scheme) if streams != 0 else -1
            if mode < 0:
                ready[kept] = v
                kept += 1
                continue
            left -= 1
            end = now + scheme.duration[mode]
            schedule.start[v], schedule.finish[v], schedule.mode[v] = now, end, mode - scheme.mode_start[v]
            makespan = max(makespan, end + scheme.tail[v])
            heappush(events, (end, needs + v))
            for k in range(scheme.need_start[mode], scheme.need_start[mode + 1]):
                free[scheme.resource[k]] -= scheme.units[k]
                heappush(events, (end + scheme.hold[k], k))
            schedule.stream[v] = 0
            if scheme.chosen:
                s = stream_of(v, streams, wishes[v], scheme, schedule)
                schedule.stream[v] = s
                idle &= ~(1 << s)
                heappush(events, (now + max(scheme.duration[mode] + scheme.gap, 1), needs + n + s))
                if scheme.label[v] >= 0:
                    home[scheme.label[v]] = s
        count = kept
    return makespan
