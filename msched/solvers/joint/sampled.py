"""What sampling works on: a pool of schedules, a problem from both ends, and the rules that weigh its ops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from msched.solvers.joint.schemes import Scheme

if TYPE_CHECKING:
    from msched.solvers.joint.sampled_kernel import Pool, Sides

_POOL = 32  # schedules kept
_MOST_OPS = 20_000  # for rules that look at all that comes after an op


def empty_pool(n: int) -> Pool:
    """Room for as many schedules of n ops as are kept."""
    from msched.solvers.joint.sampled_kernel import WAYS, Pool

    return Pool(
        makespan=np.full(_POOL, -1, np.int64),
        start=np.zeros((_POOL, n), np.int64),
        finish=np.zeros((_POOL, n), np.int64),
        mode=np.zeros((_POOL, n), np.int64),
        stream=np.zeros((_POOL, n), np.int64),
        weight=np.full(WAYS, 0.2),
        effort=np.zeros(1, np.int64),
    )


def sides_of(ahead: Scheme, back: Scheme) -> Sides:
    """A problem and its mirror image, with the priority rules of each."""
    from msched.solvers.joint.sampled_kernel import Sides
    from msched.solvers.joint.serial_scheme_kernel import empty_profile

    return Sides(ahead, back, _rules(ahead, back), _rules(back, ahead), empty_profile(ahead))


def _rules(own: Scheme, mirror: Scheme) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Priority rules as keys from 0 to 1, the least first, shape (K, n): latest start and finish, these with lags
    between all streams, slack, first come first served, and of what comes after an op its load on the fullest resource,
    number, and work (Kolisch 1996; Alvarez-Valdes and Tamarit 1989)."""
    from msched.solvers.joint.priority_rules_kernel import descendants, loaded_tails, tails

    n = own.allowed.size
    first = own.mode_start[:-1]
    shortest = np.minimum.reduceat(own.duration, first)
    none, mirror_none = np.zeros_like(own.lag), np.zeros_like(mirror.lag)
    tail = tails(shortest, none, own)
    head = tails(shortest[::-1].copy(), mirror_none, mirror)[::-1]
    keys: list[np.ndarray[tuple[int, ...], np.dtype[Any]]] = [
        -(tail + shortest),
        -tail,
        -(tail + shortest + head),
        np.arange(n),
    ]
    if own.lag.any():
        far = tails(shortest, own.lag, own)
        keys += [-(far + shortest), -far]
    if n <= _MOST_OPS:
        work = np.zeros((n, own.capacity.size))
        needs = np.diff(own.need_start)[first]
        need = (
            np.repeat(own.need_start[first], needs)
            + np.arange(needs.sum())
            - np.repeat(np.cumsum(needs) - needs, needs)
        )
        op = np.repeat(np.arange(n), needs)
        held = (own.duration[first][op] + own.hold[need]) * (own.units[need] / own.capacity[own.resource[need]])
        work[op, own.resource[need]] = held
        count, load = descendants(work, own)
        loaded = loaded_tails(shortest, none, load, own)
        keys += [-(loaded + shortest), -loaded, -count, -(load + work).sum(axis=1)]
    rules = np.stack([key.astype(np.float64) for key in keys])
    low, high = rules.min(axis=1, keepdims=True), rules.max(axis=1, keepdims=True)
    return np.ascontiguousarray((rules - low) / np.maximum(high - low, 1))
