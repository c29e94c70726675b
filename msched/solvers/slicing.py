"""How many slices: a search over the cuts of a graph, each lowered and solved, the best plan kept."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from msched.errors import OptionError
from msched.graph import OpGraph
from msched.lowering.slicing import Along, Around, Slices, slice_graph
from msched.plan import Incumbent, Plan
from msched.problem import Problem
from msched.solvers import solve
from msched.solvers.base import Dispatch, Solver

Wanted = int | Literal["auto"] | Mapping[str, int | Literal["auto"]]
CHOICES = (1, 2, 4, 8)
_MOST_CUTS = 64
_SCREEN = "blevel"  # what says in which order the cuts are solved


@dataclass(frozen=True)
class Candidate:
    """One way to cut a graph: the problem that it gives, or why it cannot be cut so."""

    slices: Slices
    problem: Problem | None
    reason: str = ""


@dataclass(frozen=True)
class Tried:
    """What came out of one candidate; ns. Without a makespan, `reason` says why."""

    slices: Slices
    ops: int
    makespan_ns: int | None
    bound_ns: int | None
    status: str
    reason: str


@dataclass(frozen=True)
class Sliced:
    """The best cut, its problem and plan, and every cut that was tried, in the order of the candidates."""

    slices: Slices
    problem: Problem
    plan: Plan
    tried: tuple[Tried, ...]


def solve_slices(
    graph: OpGraph,
    lower: Callable[[OpGraph], Problem],
    solver: str | Solver = "cpsat",
    *,
    slices: Wanted = "auto",
    choices: Sequence[int] = CHOICES,
    along: Along = "auto",
    around: Around = "collectives",
    time_limit: float = 10.0,
    workers: int = 1,
    seed: int = 0,
    deterministic: bool = False,
    dispatch: Dispatch = "arrival",
) -> Sliced:
    """The best plan over the number of slices: `candidates` and `best_of` in one.

    lower: places and prices a cut graph, as `lambda g: msched.lower(g, device="atlas_800i_a2", streams=8)`.
    """
    cuts = candidates(graph, lower, slices, choices, along, around)
    return best_of(
        cuts, solver, time_limit=time_limit, workers=workers, seed=seed, deterministic=deterministic, dispatch=dispatch
    )


def candidates(
    graph: OpGraph,
    lower: Callable[[OpGraph], Problem],
    slices: Wanted,
    choices: Sequence[int] = CHOICES,
    along: Along = "auto",
    around: Around = "collectives",
) -> list[Candidate]:
    """Every cut that `slices` stands for, each lowered.

    slices: as for `slice_graph`, where "auto" stands for each of `choices`; several of them in a mapping for all
        combinations.

    A combination that the graph has too few rows for stays in the list with its reason. Raises OptionError where none
    is left, or where there are more than 64.
    """
    wanted = _combinations(slices, choices)
    if not callable(lower):
        raise OptionError(f"lower is {lower!r}; a function from OpGraph to Problem is needed")
    slice_graph(graph, 1, along=along, around=around)  # what is wrong for all numbers is said once
    result = []
    for one in wanted:
        try:
            cut = slice_graph(graph, one, along=along, around=around)
        except OptionError as error:
            if len(wanted) == 1:
                raise
            result.append(Candidate(one, None, str(error)))
            continue
        problem = lower(cut)
        if not isinstance(problem, Problem):
            raise OptionError(f"lower gives {type(problem).__name__}; it must return the Problem that it makes")
        result.append(Candidate(one, problem))
    if all(candidate.problem is None for candidate in result):
        raise OptionError(f"none of {len(result)} numbers of slices fits: {result[0].reason}")
    return result


def best_of(
    cuts: Sequence[Candidate],
    solver: str | Solver,
    *,
    time_limit: float,
    workers: int = 1,
    seed: int = 0,
    deterministic: bool = False,
    dispatch: Dispatch = "arrival",
    on_progress: Callable[[Incumbent], None] | None = None,
    stop: threading.Event | None = None,
) -> Sliced:
    """The candidate whose plan simulates best, the first of equals.

    The time is shared out evenly over the candidates that are left, those solved first for which list scheduling finds
    the shortest plan; one whose lower bound is no better than a plan that is known is not solved.
    """
    from msched.bounds import bound
    from msched.simulator import simulate
    from msched.solvers import check_options

    check_options(time_limit, workers, seed, dispatch)
    open_ = [(i, c.problem) for i, c in enumerate(cuts) if c.problem is not None]
    if len(open_) > 1:
        open_.sort(key=lambda entry: _screened(entry[1], dispatch))
    tried = {i: Tried(c.slices, 0, None, None, "impossible", c.reason) for i, c in enumerate(cuts) if c.problem is None}
    best: tuple[int, int, Problem, Plan] | None = None
    left = time_limit
    for place, (i, problem) in enumerate(open_):
        proven = bound(problem).makespan_ns
        if best is not None and proven >= best[0]:
            why = f"no plan beats {proven} ns, and {best[0]} ns are reached with slices {cuts[best[1]].slices}"
            tried[i] = Tried(cuts[i].slices, problem.n, None, proven, "pruned", why)
            continue
        share = left / (len(open_) - place)
        left -= share
        plan = solve(
            problem, solver, time_limit=share, workers=workers, seed=seed, deterministic=deterministic,
            dispatch=dispatch, on_progress=on_progress, stop=stop,
        )  # fmt: skip
        runs = plan.order.size == problem.n and plan.status in ("optimal", "feasible")
        makespan = simulate(problem, plan, dispatch).makespan_ns if runs else None
        tried[i] = Tried(cuts[i].slices, problem.n, makespan, plan.bound_ns or proven, plan.status, plan.reason)
        if makespan is not None and (best is None or (makespan, i) < best[:2]):
            best = (makespan, i, problem, plan)
        elif best is None and place == len(open_) - 1:
            best = (0, i, problem, plan)  # no cut has a plan: the last one's reason stands for all
    assert best is not None
    return Sliced(cuts[best[1]].slices, best[2], best[3], tuple(tried[i] for i in sorted(tried)))


def _screened(problem: Problem, dispatch: Dispatch) -> int:
    """Makespan of a list schedule, or beyond every makespan where it breaks a limit."""
    from msched.simulator import simulate

    plan = solve(problem, _SCREEN, dispatch=dispatch)
    if plan.status not in ("optimal", "feasible"):
        return 2**62
    return simulate(problem, plan, dispatch).makespan_ns


def _combinations(slices: Wanted, choices: Sequence[int]) -> list[Slices]:
    listed: list[Slices] = list(choices) if isinstance(choices, Iterable) and not isinstance(choices, str) else []
    if not listed or any(not isinstance(k, int) or isinstance(k, bool) or k < 1 for k in listed):
        raise OptionError(f"slice_choices is {choices!r}; whole numbers of at least 1 are needed, as [1, 2, 4]")
    if not isinstance(slices, Mapping):
        return listed if slices == "auto" else [slices]
    free = [pattern for pattern, k in slices.items() if k == "auto"]
    if len(listed) ** len(free) > _MOST_CUTS:
        raise OptionError(
            f"slices: {len(free)} patterns are 'auto', which gives {len(listed) ** len(free)} cuts; "
            f"at most {_MOST_CUTS} are tried: fix some of them, or give fewer slice_choices"
        )
    chosen = itertools.product(listed, repeat=len(free))
    return [{**slices, **dict(zip(free, one, strict=True))} for one in chosen]  # type: ignore[arg-type,dict-item]
