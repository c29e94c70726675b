"""The serial schedule generation scheme, compiled: ops in a given sequence, each as early as what is placed allows.

What is free is a list of instants, in time: units of each resource, and streams, from each instant to the next. Nothing
that was placed is ever moved, and an instant never goes, so that the finish of an op leads to its place in the list.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from msched.arrays import Int64Array
from msched.compiled import compiled
from msched.solvers.joint.schemes import ABSENT, FREE, Scheme

_NONE = -1
_NEVER = 2**62


class Schedule(NamedTuple):
    """start, finish (n,) ns; mode (n,): which of its modes an op takes; stream (n,): 0 where streams are counted."""

    start: Int64Array
    finish: Int64Array
    mode: Int64Array
    stream: Int64Array


class Profile(NamedTuple):
    """Instants in no sequence of their own: time, the next one, free units (instants, R), free streams as bits.

    mark (n,): an instant not after the finish of each op. home (labels,): the stream of each label.
    """

    time: Int64Array
    beyond: Int64Array
    free: Int64Array
    idle: Int64Array
    mark: Int64Array
    home: Int64Array


@compiled
def empty_schedule(n: int) -> Schedule:
    """Room for the schedule of n ops."""
    return Schedule(np.zeros(n, np.int64), np.zeros(n, np.int64), np.full(n, -1), np.full(n, -1))


@compiled
def empty_profile(scheme: Scheme) -> Profile:
    """Room for as many instants as the ops of a scheme can make."""
    n = scheme.allowed.size
    needs = 0
    for v in range(n):
        most = 0
        for m in range(scheme.mode_start[v], scheme.mode_start[v + 1]):
            most = max(most, scheme.need_start[m + 1] - scheme.need_start[m])
        needs += most + 3
    return Profile(
        np.zeros(needs + 1, np.int64),
        np.full(needs + 1, _NONE),
        np.zeros((needs + 1, scheme.capacity.size), np.int64),
        np.zeros(needs + 1, np.int64),
        np.zeros(n, np.int64),
        np.full(scheme.labels, _NONE),
    )


@compiled
def arrival(v: int, scheme: Scheme, schedule: Schedule) -> tuple[int, int, int]:
    """When the inputs of op v reach any stream, the one stream that they may reach sooner (-1), and when that."""
    everywhere, near = scheme.head[v], _NONE
    for k in range(scheme.before_start[v], scheme.before_start[v + 1]):
        u = scheme.before[k]
        if schedule.finish[u] + scheme.lag[k] > everywhere:
            everywhere, near = schedule.finish[u] + scheme.lag[k], schedule.stream[u]
    if not scheme.chosen:
        return everywhere, _NONE, everywhere
    sooner = scheme.head[v]
    for k in range(scheme.before_start[v], scheme.before_start[v + 1]):
        u = scheme.before[k]
        sooner = max(sooner, schedule.finish[u] + (0 if schedule.stream[u] == near else scheme.lag[k]))
    return everywhere, near, sooner


@compiled
def _room(mode: int, time: int, at: int, streams: int, scheme: Scheme, profile: Profile) -> tuple[int, int, int]:
    """The earliest time from `time` on at which a mode fits, the last instant up to it, and the streams free for it.

    `at`: an instant not after `time`, from which to look. `streams`: those that will do, as bits.
    """
    low, high = scheme.need_start[mode], scheme.need_start[mode + 1]
    length = scheme.duration[mode]
    on_stream = max(length + scheme.gap, 1) if scheme.chosen else 0
    longest = max(length, on_stream)
    for k in range(low, high):
        longest = max(longest, length + scheme.hold[k])
    while profile.beyond[at] != _NONE and profile.time[profile.beyond[at]] <= time:
        at = profile.beyond[at]
    probe, free = at, streams
    while probe != _NONE and profile.time[probe] < time + longest:
        since = profile.time[probe] - time
        full = False
        for k in range(low, high):
            if since < length + scheme.hold[k] and profile.free[probe, scheme.resource[k]] < scheme.units[k]:
                full = True
                break
        if full:  # the last instant holds nothing, so there is one beyond
            at = profile.beyond[probe]
            time, probe, free = profile.time[at], at, streams
            continue
        if since < on_stream:
            free &= profile.idle[probe]
            if free == 0:
                at = profile.beyond[at]
                time, probe, free = profile.time[at], at, streams
                continue
        probe = profile.beyond[probe]
    return time, at, free


@compiled
def _instant(time: int, at: int, instants: int, profile: Profile) -> tuple[int, int]:
    """The instant at `time`, made where there is none, and how many there are then; `at` is not after it."""
    while profile.beyond[at] != _NONE and profile.time[profile.beyond[at]] <= time:
        at = profile.beyond[at]
    if profile.time[at] == time:
        return at, instants
    profile.time[instants], profile.beyond[instants] = time, profile.beyond[at]
    profile.idle[instants] = profile.idle[at]
    for r in range(profile.free.shape[1]):
        profile.free[instants, r] = profile.free[at, r]
    profile.beyond[at] = instants
    return instants, instants + 1


@compiled
def _take(v: int, mode: int, at: int, instants: int, scheme: Scheme, schedule: Schedule, profile: Profile) -> int:
    """Put into the profile what op v holds from its start on; how many instants there are then."""
    length, start = scheme.duration[mode], schedule.start[v]
    profile.mark[v] = at
    if scheme.need_start[mode] == scheme.need_start[mode + 1] and not scheme.chosen:
        return instants
    begin, instants = _instant(start, at, instants, profile)
    end, instants = _instant(start + length, begin, instants, profile)
    profile.mark[v] = end
    for k in range(scheme.need_start[mode], scheme.need_start[mode + 1]):
        until = end
        if scheme.hold[k]:
            until, instants = _instant(start + length + scheme.hold[k], end, instants, profile)
        at = begin
        while at != until:
            profile.free[at, scheme.resource[k]] -= scheme.units[k]
            at = profile.beyond[at]
    if scheme.chosen:
        until, instants = _instant(start + max(length + scheme.gap, 1), begin, instants, profile)
        at = begin
        while at != until:
            profile.idle[at] &= ~(1 << schedule.stream[v])
            at = profile.beyond[at]
    return instants


@compiled
def stream_of(v: int, free: int, wish: int, scheme: Scheme, schedule: Schedule) -> int:
    """One of the free streams: the one wished for, else a predecessor's, the last given first, else the lowest."""
    if wish >= 0 and free >> wish & 1:
        return wish
    for k in range(scheme.before_start[v + 1] - 1, scheme.before_start[v] - 1, -1):
        s = schedule.stream[scheme.before[k]]
        if free >> s & 1:
            return int(s)
    s = 0
    while not free >> s & 1:
        s += 1
    return s


@compiled
def streams_for(v: int, wish: int, kept: bool, scheme: Scheme, home: Int64Array) -> int:
    """The streams that op v may go on, as bits; -1 where they are counted."""
    if not scheme.chosen:
        return -1
    if scheme.label[v] >= 0 and home[scheme.label[v]] >= 0:
        return 1 << int(home[scheme.label[v]])
    return 1 << wish if kept else int(scheme.allowed[v])


@compiled
def _stand(v: int, instants: int, scheme: Scheme, profile: Profile, schedule: Schedule) -> int:
    """Put op v where it stands, in its first mode, or leave it out; how many instants there are then."""
    start = max(scheme.at[v], 0)
    schedule.start[v] = schedule.finish[v] = start
    schedule.mode[v], schedule.stream[v] = 0, 0
    if scheme.at[v] == ABSENT:
        return instants
    schedule.finish[v] += scheme.duration[scheme.mode_start[v]]
    if scheme.chosen:
        schedule.stream[v] = stream_of(v, scheme.allowed[v], _NONE, scheme, schedule)
        if scheme.label[v] >= 0:
            profile.home[scheme.label[v]] = schedule.stream[v]
    return _take(v, scheme.mode_start[v], 0, instants, scheme, schedule, profile)


@compiled
def serial(
    sequence: Int64Array, modes: Int64Array, wishes: Int64Array, kept: bool, scheme: Scheme, profile: Profile,
    schedule: Schedule,
) -> int:  # fmt: skip
    """Fill `schedule` and return its makespan (ns), tails included. The serial scheme of Kelley (1963), as in Kolisch
    (1996), EJOR 90.

    sequence (n,): a linear extension, those that are not to be placed first. modes (n,): -1 takes the mode that
    finishes first. wishes (n,): streams, -1 for none; followed to the letter if `kept`, else where one of several
    streams that are as early is to be taken.
    """
    profile.time[0], profile.beyond[0], profile.idle[0] = 0, _NONE, -1
    profile.free[0] = scheme.capacity
    profile.home[:] = _NONE
    instants, makespan = 1, 0
    for v in sequence:
        if scheme.at[v] != FREE:
            instants = _stand(v, instants, scheme, profile, schedule)
            continue
        everywhere, near, sooner = arrival(v, scheme, schedule)
        known = 0
        for k in range(scheme.before_start[v], scheme.before_start[v + 1]):
            if profile.time[profile.mark[scheme.before[k]]] > profile.time[known]:
                known = profile.mark[scheme.before[k]]
        streams = streams_for(v, wishes[v], kept, scheme, profile.home)
        first, last = scheme.mode_start[v], scheme.mode_start[v + 1]
        if modes[v] >= 0:
            first = last = first + modes[v]
            last += 1
        best, best_at, best_free, best_start, best_finish = first, 0, 0, 0, _NEVER
        for mode in range(first, last):
            start, at, free = _room(mode, everywhere, known, streams, scheme, profile)
            if near >= 0 and sooner < everywhere and streams >> near & 1:
                alone, alone_at, alone_free = _room(mode, sooner, known, 1 << near, scheme, profile)
                if alone < start:
                    start, at, free = alone, alone_at, alone_free
            if start + scheme.duration[mode] < best_finish:
                best, best_at, best_free = mode, at, free
                best_start, best_finish = start, start + scheme.duration[mode]
        schedule.start[v], schedule.finish[v] = best_start, best_finish
        schedule.mode[v] = best - scheme.mode_start[v]
        schedule.stream[v] = stream_of(v, best_free, wishes[v], scheme, schedule) if scheme.chosen else 0
        if scheme.label[v] >= 0:
            profile.home[scheme.label[v]] = schedule.stream[v]
        instants = _take(v, best, best_at, instants, scheme, schedule, profile)
        makespan = max(makespan, best_finish + scheme.tail[v])
    return makespan
