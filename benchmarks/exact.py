"""The exact solver on problems with known optima and on networks, beside PyJobShop on the same problems.

python -m benchmarks exact --set psplib-j30 --every 10 --limit 10 --workers 2 --against pyjobshop
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import math
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msched
from benchmarks.exact_instances import LIMITS_S, Instance, instances
from msched.problem import Problem

_WIDTH = 54


@dataclass(frozen=True)
class Outcome:
    """One instance solved with one seed. Times in ns, those of the search in seconds; None where there is no figure.

    wrong: what contradicts a published figure, the validator or the other tool; empty when nothing does.
    """

    set: str
    instance: str
    ops: int
    seed: int
    lower: int | None
    upper: int | None
    makespan_ns: int | None
    bound_ns: int
    argument: str
    proven: bool
    seconds: float
    other_makespan_ns: int | None = None
    other_bound_ns: int | None = None
    other_proven: bool | None = None
    other_seconds: float | None = None
    wrong: str = ""


def main(arguments: Sequence[str]) -> None:
    """The command line `python -m benchmarks exact`."""
    options = _options(arguments)
    with ExitStack() as files:
        table = None
        if options.csv is not None:
            table = csv.DictWriter(
                files.enter_context(options.csv.open("w", encoding="utf-8", newline="")), list(Outcome.__annotations__)
            )
            table.writeheader()
        for name in options.set:
            outcomes = []
            try:
                chosen = instances(name, options.gap_ns)
            except FileNotFoundError as error:
                sys.exit(f"set {name}: {error.filename or error}: the files of this set are not there")
            for outcome in _outcomes(name, chosen, options):
                outcomes.append(outcome)
                print(_line(outcome), flush=True)
                if table is not None:
                    table.writerow(asdict(outcome))
            for line in summary(name, outcomes):
                print(line, flush=True)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks exact", description=__doc__)
    parser.add_argument("--set", action="append", choices=LIMITS_S, required=True, help="may be given several times")
    parser.add_argument("--limit", type=float, help="seconds a solve; by default as the set is usually measured")
    parser.add_argument("--seeds", type=int, default=1, help="seeds 0, 1, ... so many (default 1)")
    parser.add_argument("--workers", type=int, default=2, help="threads a solve (default 2)")
    parser.add_argument("--every", type=int, default=1, metavar="K", help="only each k-th instance")
    parser.add_argument("--only", default="", metavar="TEXT", help="only instances whose name has this in it")
    parser.add_argument("--against", choices=["pyjobshop"], help="the same problems, limit and workers elsewhere")
    parser.add_argument("--gap-ns", type=int, default=0, help="between two tasks of a stream, on networks (default 0)")
    parser.add_argument("--with", dest="parameters", action="append", default=[], metavar="NAME=JSON",
                        help="a parameter of the solver, as dynamic_precedences=false")  # fmt: skip
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the rows as they come")
    options = parser.parse_args(arguments)
    if min(options.seeds, options.workers, options.every) < 1 or options.gap_ns < 0:
        parser.error("--seeds, --workers and --every are 1 or more, --gap-ns 0 or more")
    if options.limit is not None and not 0 <= options.limit < math.inf:
        parser.error("--limit is 0 or more seconds")
    if options.against and importlib.util.find_spec("pyjobshop") is None:
        parser.error("PyJobShop is not installed; pip install -e '.[compare]' does it")
    try:
        options.parameters = {
            name: json.loads(value) for name, _, value in (text.partition("=") for text in options.parameters)
        }
    except ValueError as error:
        parser.error(f"--with takes NAME=JSON: {error}")
    return options


def _outcomes(name: str, known: Sequence[Instance], options: argparse.Namespace) -> Iterator[Outcome]:
    """The chosen ones of the instances, solved one after another."""
    chosen = [one for one in known if options.only in one.name][:: options.every]
    limit = LIMITS_S[name] if options.limit is None else options.limit
    print(f"\n{name}: {len(chosen)} instances, {limit:g} s, {options.workers} workers, seeds 0 to {options.seeds - 1}")
    print(f"{'':{_WIDTH}} {'ops':>6} {'makespan':>13} {'bound':>13} {'gap':>8} {'s':>6}  by", flush=True)
    msched.solve(Problem.from_arrays(duration=[1]), "cpsat")  # compiles and imports what the first row would pay for
    for instance in chosen:
        problem = instance.build()
        if name == "build":
            from benchmarks.exact_build import report

            print(report(problem), flush=True)
            continue
        for seed in range(options.seeds):
            yield _measured(name, instance, problem, seed, limit, options)


def _measured(
    name: str, instance: Instance, problem: Problem, seed: int, limit: float, options: argparse.Namespace
) -> Outcome:
    began = time.perf_counter()
    plan = msched.solve(problem, "cpsat", time_limit=limit, workers=options.workers, seed=seed, **options.parameters)
    figures: dict[str, Any] = {"seconds": round(time.perf_counter() - began, 2)}
    faults = []
    makespan = None
    if plan.status in ("optimal", "feasible"):
        timeline = msched.simulate(problem, plan)
        makespan = timeline.makespan_ns
        faults += [f"msched: {violation}" for violation in msched.validate(problem, plan, timeline)[:1]]
    proven = plan.status == "optimal"
    bound = plan.bound_ns or 0
    faults += contradictions("msched", instance, makespan, bound, proven)
    if options.against:
        from benchmarks import pyjobshop_model

        if not pyjobshop_model.inexpressible(problem):
            other = pyjobshop_model.solve(problem, limit, options.workers, seed)
            faults += contradictions("PyJobShop", instance, other.makespan_ns, other.bound_ns, other.optimal)
            if makespan is not None and makespan < other.bound_ns:
                faults.append("msched lies below PyJobShop's bound")
            if other.makespan_ns is not None and other.makespan_ns < bound:
                faults.append("PyJobShop lies below msched's bound")
            figures |= {
                "other_makespan_ns": other.makespan_ns,
                "other_bound_ns": other.bound_ns,
                "other_proven": other.optimal,
                "other_seconds": round(other.seconds, 2),
            }
    return Outcome(
        set=name, instance=instance.name, ops=problem.n, seed=seed, lower=instance.lower, upper=instance.upper,
        makespan_ns=makespan, bound_ns=bound, argument=plan.bound_argument, proven=proven, wrong="; ".join(faults),
        **figures,
    )  # fmt: skip


def contradictions(tool: str, instance: Instance, makespan: int | None, bound: int, proven: bool) -> list[str]:
    """How a tool's makespan, bound and proof contradict what is published of the instance, in words."""
    faults = []
    if instance.upper is not None and bound > instance.upper:
        faults.append(f"{tool}: bound {bound} above the published {instance.upper}")
    if makespan is not None and instance.lower is not None and makespan < instance.lower:
        faults.append(f"{tool}: makespan {makespan} below the published bound {instance.lower}")
    if proven and makespan is not None and instance.upper is not None and makespan > instance.upper:
        faults.append(f"{tool}: {makespan} called optimal, {instance.upper} is published")
    return faults


def gap(makespan: float | None, bound: float | None) -> float:
    """makespan / bound - 1; infinite without a plan or a bound."""
    if makespan is None or not bound:
        return 0.0 if makespan == 0 else math.inf
    return makespan / bound - 1


def _line(one: Outcome) -> str:
    name = f"{one.instance}{f' #{one.seed}' if one.seed else ''}"
    text = f"{name:{_WIDTH}} {one.ops:>6} {_shown(one.makespan_ns)} {_shown(one.bound_ns)} "
    text += f"{_percent(gap(one.makespan_ns, one.bound_ns))} {one.seconds:>6.1f}  {one.argument}"
    if one.upper is not None:
        text += f"; published {one.lower or '?'} to {one.upper}"
    if one.other_seconds is not None:
        text += f"\n{'    PyJobShop':{_WIDTH}} {'':6} {_shown(one.other_makespan_ns)} {_shown(one.other_bound_ns)} "
        text += f"{_percent(gap(one.other_makespan_ns, one.other_bound_ns))} {one.other_seconds:>6.1f}"
    return text + (f"\n    WRONG: {one.wrong}" if one.wrong else "")


def _shown(figure: int | None) -> str:
    return f"{'-' if figure is None else figure:>13}"


def _percent(share: float) -> str:
    return f"{'proven' if share == 0 else '-' if math.isinf(share) else f'{share:.2%}':>8}"


def summary(name: str, outcomes: Sequence[Outcome]) -> list[str]:
    """What a set came to, from the medians over the seeds of each instance."""
    by_instance: dict[str, list[Outcome]] = {}
    for one in outcomes:
        by_instance.setdefault(one.instance, []).append(one)
    groups = list(by_instance.values())
    if not groups:
        return []
    wrong = sum(any(one.wrong for one in each) for each in groups)
    lines = [f"{name}: {_summed('msched', groups, '')}, {wrong} of {len(groups)} wrong"]
    met = [each for each in groups if each[0].other_seconds is not None]
    if met:
        lines.append(f"  {len(met)} of these in PyJobShop: {_summed('PyJobShop', met, 'other_')}")
        lines.append(f"  the same in msched: {_summed('msched', met, '')}")
        for what, sign in (("bound_ns", 1), ("makespan_ns", -1)):
            lead = [sign * (_median(each, what) - _median(each, f"other_{what}", -sign)) for each in met]
            better, worse = sum(figure > 0 for figure in lead), sum(figure < 0 for figure in lead)
            lines.append(f"  {what.removesuffix('_ns')} of msched: {better} better, {worse} worse")
    return lines


def _median(each: Sequence[Outcome], figure: str, missing: int = 1) -> float:
    """The lower median over seeds; a figure that is missing counts as infinitely bad, with the sign of `missing`."""
    values = [getattr(one, figure) for one in each]
    return statistics.median_low([missing * math.inf if value is None else value for value in values])


def _summed(tool: str, groups: Sequence[Sequence[Outcome]], prefix: str) -> str:
    both = [(_median(each, f"{prefix}makespan_ns"), _median(each, f"{prefix}bound_ns", -1)) for each in groups]
    proven = sum(2 * sum(bool(getattr(one, f"{prefix}proven")) for one in each) > len(each) for each in groups)
    found = [pair for pair in both if not math.isinf(pair[0])]
    gaps = [math.log1p(gap(*pair)) for pair in found]
    mean = f"{math.expm1(statistics.fmean(gaps)):.3%}" if found and not math.isinf(max(gaps)) else "-"
    missing = f", {len(groups) - len(found)} without a plan" if len(found) < len(groups) else ""
    total = sum(makespan for makespan, _ in found)
    return f"{tool}: {proven} of {len(groups)} proven{missing}, sum {total:.0f}, mean gap {mean}"


if __name__ == "__main__":
    main(sys.argv[1:])
