"""The rows of a study's table: each cell with what only the other cells of its problem can tell."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from msched.errors import InternalError
from msched.report import labels
from msched.study.job import gap
from msched.study.records import Proof, Record
from msched.study.schema import NOT_IDENTITY

BASELINE = "single"
_OF_THE_SEARCH = ("solver", "objective", "time_limit", "workers", "seed", "deterministic")
_EXACT = "msched.solvers.exact."


@dataclass(frozen=True)
class Row:
    """One cell with what only other cells can tell: the best bound of its problem, the single stream of its network,
    and how workload and words name it among them.
    """

    record: Record
    workload: str
    words: tuple[str, ...]
    bound: Proof | None
    single_ns: int | None

    @property
    def variant(self) -> str:
        """What tells the row from others of its names, in words."""
        return " ".join(self.words)

    @property
    def exact(self) -> bool:
        """Whether the solver is one that proves; they live in `msched.solvers.exact`."""
        return str(self.record.config.get("solver", {}).get("_target_", "")).startswith(_EXACT)

    @property
    def makespan_ns(self) -> int | None:
        """The simulated makespan, None where there is no plan."""
        return None if self.record.score is None else self.record.score.makespan_ns

    @property
    def valid(self) -> bool:
        """Whether there is a plan that keeps all limits."""
        return self.record.score is not None and self.record.status != "invalid"

    @property
    def status(self) -> str:
        """Of the score: `optimal` where the makespan equals the best bound known, else as the record says."""
        if self.record.state != "done":
            return self.record.state
        if self.valid and self.bound is not None:
            return "optimal" if self.makespan_ns == self.bound.makespan_ns else "feasible"
        return self.record.status or self.record.state

    @property
    def speed_up(self) -> float | None:
        """Over the shortest plan on a single stream of the same network on the same device, however it was cut."""
        return self.single_ns / self.makespan_ns if self.valid and self.single_ns and self.makespan_ns else None

    @property
    def gap(self) -> float | None:
        """Makespan over the best bound known, minus 1."""
        if not self.valid or self.makespan_ns is None or self.bound is None:
            return None
        return gap(self.makespan_ns, self.bound.makespan_ns)

    @property
    def reason(self) -> str:
        """Why there is no valid plan; empty where there is one."""
        return "" if self.valid else " ".join((self.record.error or self.record.reason).split())

    def place(self) -> tuple[Any, ...]:
        """Sort key: problems together, the baseline first, exact solvers last."""
        names = self.record.names
        return (
            self.workload, names.device, self.variant, self.exact, names.solver != BASELINE, names.solver,
            self.record.cell,
        )  # fmt: skip

    def merit(self) -> tuple[Any, ...]:
        """Sort key of valid rows of one problem: the objective's figures in their order."""
        order = self.record.config["objective"]["order"]
        return (*(getattr(self.record.score, figure) for figure in order), self.record.names.solver)


def rows(records: Iterable[Record]) -> list[Row]:
    """The rows of a table, in a fixed order.

    A bound holds for every plan of a problem, so each row gets the best that any cell of its problem proved. Raises
    InternalError for a valid plan that beats it: then a bound, a solver or the simulator is wrong.
    """
    given = list(records)
    bounds: dict[str, Proof] = {}
    singles: dict[str, int] = {}
    for record in given:
        if record.problem is None or record.state == "failed":
            continue
        key = problem_key(record)
        if record.bound and (key not in bounds or record.bound.makespan_ns > bounds[key].makespan_ns):
            bounds[key] = record.bound
        if record.score and record.status != "invalid" and _on_a_single_stream(record):
            network = _network(record)
            singles[network] = min(record.score.makespan_ns, singles.get(network, record.score.makespan_ns))
    names = labels.workloads(given)
    result = []
    for record, name, words in zip(given, names, labels.variants(given, names), strict=True):
        row = Row(record, name, words, bounds.get(problem_key(record)), singles.get(_network(record)))
        if row.valid and row.bound and row.makespan_ns is not None and row.makespan_ns < row.bound.makespan_ns:
            raise InternalError(
                f"{name}, {record.names.solver}: {row.makespan_ns} ns is less than the bound of "
                f"{row.bound.makespan_ns} ns ({row.bound.argument}) that another cell proved for the same problem"
            )
        result.append(row)
    return sorted(result, key=Row.place)


def problem_key(record: Record) -> str:
    """Equal for cells that looked for a plan of the same problem, or of the same choice of problems."""
    if record.problem is None:
        return ""
    if not record.tried:
        return record.problem.hash
    asked = {key: value for key, value in record.config.items() if key not in (*NOT_IDENTITY, *_OF_THE_SEARCH)}
    return json.dumps(asked, sort_keys=True)


def contest(row: Row) -> str:
    """Equal for rows of one problem whose plans were scored and ranked in the same way."""
    config = row.record.config
    return json.dumps([problem_key(row.record), config["objective"]["order"], config.get("simulator")])


def shared_variant(found: Sequence[Row]) -> list[str]:
    """The words of the variants that all rows of a problem have in common."""
    return [word for word in found[0].words if all(word in row.words for row in found)]


def _on_a_single_stream(record: Record) -> bool:
    return record.names.solver == BASELINE or record.config.get("parallelism") == "single_stream"


def _network(record: Record) -> str:
    """What is computed and on what: equal for cells whose makespans tell what streams are worth."""
    parts = [
        record.input.hash if record.input else "",
        *(record.config.get(k) for k in ("device", "collective", "placement")),
    ]
    return json.dumps(parts, sort_keys=True)
