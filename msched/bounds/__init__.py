"""Lower bounds on the makespan: figures that no plan of a problem can beat, under any dispatch rule.

Each bound is a function of a Problem; `bound` takes the best. They hold for every fidelity that does not shorten ops.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from msched.bounds.ancestors import best_heads_and_tails, loaded_heads_and_tails
from msched.bounds.cliques import clique_load, exclusive_sets
from msched.bounds.destructive import destructive
from msched.bounds.insertions import inserted_ops
from msched.bounds.paths import critical_path, heads_and_tails, least_lags, shortest_durations
from msched.bounds.windows import energetic_windows, engine_load, host_issue, stream_load
from msched.problem import Problem

__all__ = [
    "Bound",
    "best_heads_and_tails",
    "bound",
    "clique_load",
    "critical_path",
    "destructive",
    "energetic_windows",
    "engine_load",
    "evaluate",
    "exclusive_sets",
    "heads_and_tails",
    "host_issue",
    "inserted_ops",
    "least_lags",
    "loaded_heads_and_tails",
    "shortest_durations",
    "stream_load",
]

_REFUTED = 200  # ops up to which makespans are refuted
_PROBES, _ROUNDS, _WINDOWS = 6, 3, 20_000


@dataclass(frozen=True)
class Bound:
    """A proven lower bound on the makespan in ns, the argument that gave it, and what every argument gave."""

    makespan_ns: int
    argument: str
    each: dict[str, int]


_KNOWN: WeakKeyDictionary[Problem, Bound] = WeakKeyDictionary()


def bound(problem: Problem) -> Bound:
    """The best of all arguments that `evaluate` knows, remembered as long as the problem lives."""
    if problem not in _KNOWN:
        _KNOWN[problem] = evaluate(problem)
    return _KNOWN[problem]


def evaluate(problem: Problem) -> Bound:
    """`bound` without memory: every argument worked out afresh."""
    if problem.n == 0:
        return Bound(0, "no ops", {})
    duration = shortest_durations(problem)
    heads, tails = heads_and_tails(problem)
    each = {
        "critical path": int((heads + duration + tails).max()),
        "engine load": engine_load(problem, heads, tails),
        "stream load": stream_load(problem, heads, tails),
        "host issue": host_issue(problem, tails),
    }
    heads, tails = best_heads_and_tails(problem)
    each["load along paths"] = max(
        int((heads + duration + tails).max()),
        engine_load(problem, heads, tails),
        stream_load(problem, heads, tails),
    )
    each["energetic windows"] = energetic_windows(problem, heads, tails, max(each.values()))
    each["exclusive ops"] = clique_load(problem, heads, tails)
    each["ops between a path's"] = inserted_ops(problem, heads, tails)
    if problem.n <= _REFUTED:
        known = max(each.values())
        each["refuted makespans"] = destructive(
            problem, 2 * known, known_ns=known, probes=_PROBES, rounds=_ROUNDS, windows=_WINDOWS, shaving=0
        )
    argument = max(each, key=lambda key: each[key])
    return Bound(each[argument], argument, each)
