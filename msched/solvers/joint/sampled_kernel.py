"""A search among schedules, compiled: sample a sequence, generate its schedule, justify it, keep the best of all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from msched.arrays import Int64Array
from msched.compiled import compiled
from msched.solvers.joint.parallel_scheme_kernel import parallel
from msched.solvers.joint.schemes import FREE, Scheme
from msched.solvers.joint.serial_scheme_kernel import Profile, Schedule, empty_schedule, serial

Float64Array = NDArray[np.float64]

RULES, NOISE, WINDOW, CROSSOVER, MOVES = 0, 1, 2, 3, 4  # how a sequence is sampled
WAYS = 10  # each of these, for the serial scheme and then for the parallel one
_FIRST = -1e9  # a key below all others
_LEARNING, _LEAST = 0.02, 0.03  # of the weights of the ways


class Pool(NamedTuple):
    """The best schedules, P of them at most, in no sequence. makespan (P,): -1 where there is none yet.

    start, finish, mode, stream (P, n). weight (WAYS,): how likely each way of sampling is. effort (1,): schedules
    generated so far.
    """

    makespan: Int64Array
    start: Int64Array
    finish: Int64Array
    mode: Int64Array
    stream: Int64Array
    weight: Float64Array
    effort: Int64Array


class Sides(NamedTuple):
    """A problem and its mirror image, the priority rules of each (K, n), the least first, and room to work in."""

    ahead: Scheme
    back: Scheme
    rules_ahead: Float64Array
    rules_back: Float64Array
    profile: Profile


@compiled
def turned(schedule: Schedule, makespan: int) -> Schedule:
    """The schedule mirrored in time, op v as op n - 1 - v."""
    return Schedule(
        makespan - schedule.finish[::-1],
        makespan - schedule.start[::-1],
        schedule.mode[::-1].copy(),
        schedule.stream[::-1].copy(),
    )


@compiled
def _sequence(start: Int64Array, scheme: Scheme) -> Int64Array:
    """Ops by start, those that are not to be placed first: (n,)."""
    key = start.copy()
    for v in range(key.size):
        if scheme.at[v] != FREE:
            key[v] = -1
    return np.argsort(key, kind="mergesort")


@compiled
def justified(schedule: Schedule, makespan: int, sides: Sides, pool: Pool) -> tuple[Schedule, int]:
    """Forward-backward improvement (Li and Willis 1992; Valls, Ballestin and Quintanilla 2005) until nothing is gained.

    Each op, last finish first, goes as late as it can; then, first start first, as early as it can. Modes and streams
    stay, so that no pass ever makes the schedule longer, unless ops stand that the way back does not see; what is
    returned was placed forwards.
    """
    while True:
        mirror = turned(schedule, makespan)
        late = empty_schedule(schedule.start.size)
        sequence = _sequence(mirror.start, sides.back)
        reached = serial(sequence, mirror.mode, mirror.stream, True, sides.back, sides.profile, late)
        mirror = turned(late, reached)
        early = empty_schedule(schedule.start.size)
        sequence = _sequence(mirror.start, sides.ahead)
        reached = serial(sequence, mirror.mode, mirror.stream, True, sides.ahead, sides.profile, early)
        pool.effort[0] += 2
        if reached >= makespan:
            return early, reached
        schedule, makespan = early, reached


@compiled
def generated(
    key: Float64Array, modes: Int64Array, wishes: Int64Array, at_once: bool, mirrored: bool, sides: Sides, pool: Pool
) -> tuple[Schedule, int]:
    """The schedule that a scheme gives for keys, the least first; turned the right way round if it was `mirrored`."""
    scheme = sides.back if mirrored else sides.ahead
    schedule = empty_schedule(key.size)
    pool.effort[0] += 1
    if at_once:
        makespan = parallel(key, modes, wishes, scheme, schedule)
    else:
        for v in range(key.size):
            if scheme.at[v] != FREE:
                key[v] = _FIRST
        for v in range(key.size):
            for k in range(scheme.before_start[v], scheme.before_start[v + 1]):
                key[v] = max(key[v], key[scheme.before[k]])
        sequence = np.argsort(key, kind="mergesort")
        makespan = serial(sequence, modes, wishes, False, scheme, sides.profile, schedule)
    if mirrored:
        schedule = turned(schedule, makespan)
    return schedule, makespan


@compiled
def keep(schedule: Schedule, makespan: int, pool: Pool) -> bool:
    """Put a schedule into the pool in place of the worst, or of one that is as long and likely the same."""
    at, worst = -1, -1
    total = schedule.start.sum()
    for i in range(pool.makespan.size):
        if pool.makespan[i] == makespan and pool.start[i].sum() == total:
            at = i
            break
        if worst < 0 or (
            pool.makespan[worst] >= 0 and (pool.makespan[i] < 0 or pool.makespan[i] > pool.makespan[worst])
        ):
            worst = i
    fresh = at < 0
    if fresh:
        at = worst
        if pool.makespan[at] >= 0 and makespan > pool.makespan[at]:
            return False
    pool.makespan[at] = makespan
    pool.start[at], pool.finish[at] = schedule.start, schedule.finish
    pool.mode[at], pool.stream[at] = schedule.mode, schedule.stream
    return fresh


@compiled
def _selected(pool: Pool, rng: np.random.Generator) -> int:
    """The better of two schedules of the pool."""
    size = 0
    for i in range(pool.makespan.size):
        size += pool.makespan[i] >= 0
    a, b = rng.integers(0, size), rng.integers(0, size)
    return int(a if pool.makespan[a] <= pool.makespan[b] else b)


@compiled
def _times(i: int, mirrored: bool, pool: Pool) -> Float64Array:
    """Starts in the i-th schedule of the pool, as seen from the side, as a share of its makespan: (n,)."""
    span = max(1, pool.makespan[i])
    times: Float64Array = pool.start[i] / span
    if mirrored:
        times = (pool.makespan[i] - pool.finish[i][::-1]) / span
    return times


@compiled
def _mixed(rules: Float64Array, rng: np.random.Generator) -> Float64Array:
    """Keys from priority rules in a random mixture, perturbed: biased random sampling (Kolisch and Drexl 1996)."""
    key = np.zeros(rules.shape[1])
    for _ in range(2):
        key += rng.random() * rules[rng.integers(0, rules.shape[0])]
    noise = 0.3 * rng.random() ** 2
    for v in range(key.size):
        key[v] += noise * rng.standard_exponential()
    return key


@compiled
def _shuffle_window(key: Float64Array, rng: np.random.Generator) -> None:
    """Draw anew, within it, the keys of a window of time that holds some ops."""
    n = key.size
    most = max(2, min(n, int(4 * 32 ** rng.random())))
    ranked = np.sort(key)
    first = int(rng.integers(0, max(1, n - most + 1)))
    low, high = ranked[first], ranked[min(n - 1, first + most - 1)]
    for v in range(n):
        if low <= key[v] <= high:
            key[v] = low + (high - low) * rng.random()


@compiled
def _move_some(key: Float64Array, rng: np.random.Generator) -> None:
    """Shift the keys of a few ops that start near each other."""
    ranked = np.argsort(key, kind="mergesort")
    n = key.size
    around, reach = int(rng.integers(0, n)), 2 + int(30 * rng.random())
    far = (4.0 * 16 ** rng.random()) / n
    for _ in range(1 + int(rng.standard_exponential() * 3)):
        v = ranked[min(n - 1, max(0, around + int(rng.integers(-reach, reach + 1))))]
        key[v] += far * rng.standard_normal()


@compiled
def _crossed(mother: Float64Array, father: Float64Array, rng: np.random.Generator) -> Float64Array:
    """Two-point crossover of two sequences (Hartmann 1998, Naval Research Logistics 45): (n,)."""
    n = mother.size
    of_mother, of_father = np.argsort(mother, kind="mergesort"), np.argsort(father, kind="mergesort")
    low, high = rng.integers(0, n), rng.integers(0, n)
    low, high = min(low, high), max(low, high)
    key = np.full(n, -1.0)
    place = 0
    for i in range(low):
        key[of_mother[i]] = place
        place += 1
    for v in of_father:
        if place <= high and key[v] < 0:
            key[v] = place
            place += 1
    for v in of_mother:
        if key[v] < 0:
            key[v] = place
            place += 1
    return key


@compiled
def _drawn(weight: Float64Array, rng: np.random.Generator) -> int:
    at = rng.random() * weight.sum()
    for way in range(weight.size):
        at -= weight[way]
        if at < 0:
            return way
    return int(weight.size - 1)


@compiled
def _free_modes(modes: Int64Array, scheme: Scheme, rng: np.random.Generator) -> None:
    """Leave the mode of some ops to the scheme, and draw that of a few."""
    share = rng.random() ** 2
    for v in range(modes.size):
        count = scheme.mode_start[v + 1] - scheme.mode_start[v]
        if count > 1 and rng.random() < share:
            modes[v] = rng.integers(0, count) if rng.random() < 0.2 else -1


@compiled
def portfolio(first: int, target: int, effort: int, sides: Sides, pool: Pool) -> int:
    """Each priority rule with each scheme in each direction, justified, from the `first` combination on, until
    `effort` schedules have been generated or one is as short as `target`; the next combination."""
    n = sides.ahead.allowed.size
    nothing = np.full(n, -1)
    count = 4 * sides.rules_ahead.shape[0]
    while first < count and pool.effort[0] < effort and not _reached(target, pool):
        rule, at_once, mirrored = first // 4, first % 2 == 1, first % 4 >= 2
        key = (sides.rules_back if mirrored else sides.rules_ahead)[rule].copy()
        schedule, makespan = generated(key, nothing, nothing, at_once, mirrored, sides, pool)
        schedule, makespan = justified(schedule, makespan, sides, pool)
        keep(schedule, makespan, pool)
        first += 1
    return first


@compiled
def _reached(target: int, pool: Pool) -> bool:
    return bool(((pool.makespan >= 0) & (pool.makespan <= target)).any())


@compiled
def search(target: int, effort: int, sides: Sides, pool: Pool, rng: np.random.Generator) -> None:
    """Sample around the pool until `effort` schedules have been generated or one is as short as `target`.

    How to sample is learnt: a way that brings a schedule into the pool is taken more often (after the adaptive search
    that Kolisch and Hartmann 2006, EJOR 174, find to be best).
    """
    n = sides.ahead.allowed.size
    while pool.effort[0] < effort and not _reached(target, pool):
        way = _drawn(pool.weight, rng)
        mirrored = rng.random() < 0.5
        parent = _selected(pool, rng)
        rank = way % (WAYS // 2)
        modes, wishes = np.full(n, -1), np.full(n, -1)
        if rank == RULES:
            key = _mixed(sides.rules_back if mirrored else sides.rules_ahead, rng)
        else:
            key = _times(parent, mirrored, pool)
            modes[:] = pool.mode[parent][::-1] if mirrored else pool.mode[parent]
            wishes[:] = pool.stream[parent][::-1] if mirrored else pool.stream[parent]
        if rank == NOISE:
            noise = 0.1 * rng.random() ** 3
            for v in range(n):
                key[v] += noise * rng.standard_normal()
        elif rank == WINDOW:
            _shuffle_window(key, rng)
        elif rank == MOVES:
            _move_some(key, rng)
        elif rank == CROSSOVER:
            key = _crossed(key, _times(_selected(pool, rng), mirrored, pool), rng)
        if sides.ahead.duration.size > n:
            _free_modes(modes, sides.back if mirrored else sides.ahead, rng)
        schedule, makespan = generated(key, modes, wishes, way >= WAYS // 2, mirrored, sides, pool)
        schedule, makespan = justified(schedule, makespan, sides, pool)
        before = pool.makespan[parent]
        gain = keep(schedule, makespan, pool) and makespan < before
        pool.weight[way] = max(_LEAST, (1 - _LEARNING) * pool.weight[way] + (_LEARNING if gain else 0.0))
