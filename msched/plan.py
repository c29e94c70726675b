"""Plan: the stream and the issue order of every op; and the waits that follow from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import msgspec
import numpy as np

from msched.arrays import Int64Array, frozen_int64, pairs
from msched.errors import PlanError
from msched.problem import Problem

SCHEMA = "msched.plan/1"
Status = Literal["optimal", "feasible", "infeasible", "timeout", "invalid"]


@dataclass(frozen=True)
class Incumbent:
    """One line of a search log: at `seconds`, the best makespan and the best bound known (None before the first)."""

    seconds: float
    makespan_ns: int | None
    bound_ns: int | None


@dataclass(frozen=True)
class Stage:
    """One figure of a plan beside its makespan (`waits`, `streams` or `peak_bytes`), and a bound that was proven.

    The bound holds for all plans whose makespan, and whose figures of the stages before, are not above the plan's.
    """

    figure: str
    value: int
    bound: int


@dataclass(frozen=True, eq=False)
class Plan:
    """Which stream each op goes to and in what order the ops are issued; all else is derived.

    stream (n,): numbered from 0 without holes. order (n,): the op issued k-th; a linear extension of the dependencies.
    fences (f, 2): extra ordering pairs (before, after). mode (n,): chosen mode of each op, None for all 0.
    status: `optimal` (the claim equals the bound), `feasible`, `infeasible` (proven: no plan meets the limits),
        `timeout` (none found in time), `invalid` (this plan breaks a limit, or its solver cannot keep it).
        The last three say why in `reason`; without a plan, stream and order are empty.
    Raises PlanError: an array of another type or shape, or a stream that is not below n.
    predicted_start_ns (n,), predicted_makespan_ns, bound_ns, log: what the solver claims; never a result.
    stages: what second stages made little, for the makespan of the plan.
    """

    stream: Int64Array
    order: Int64Array
    fences: Int64Array = field(default_factory=lambda: pairs([]))
    mode: Int64Array | None = None
    status: Status = "feasible"
    reason: str = ""
    predicted_start_ns: Int64Array | None = None
    predicted_makespan_ns: int | None = None
    bound_ns: int | None = None
    bound_argument: str = ""
    log: tuple[Incumbent, ...] = ()
    stages: tuple[Stage, ...] = ()

    def __post_init__(self) -> None:
        for name in ("stream", "order", "mode", "predicted_start_ns"):
            value = getattr(self, name)
            if value is None and name in ("mode", "predicted_start_ns"):
                continue
            try:
                array = frozen_int64(value, (0,))
            except (TypeError, ValueError, OverflowError) as error:
                raise PlanError(f"{name}: {error}") from error
            if array.ndim != 1:
                raise PlanError(f"{name} has shape {array.shape}; one figure an op is needed")
            object.__setattr__(self, name, array)
        try:
            object.__setattr__(self, "fences", pairs(self.fences))
        except (TypeError, ValueError, OverflowError) as error:
            raise PlanError(f"fences: {error}") from error
        if (far := self.stream >= max(self.stream.size, 1)).any():
            op = int(np.flatnonzero(far)[0])
            raise PlanError(
                f"op {op} is on stream {self.stream[op]}; {self.stream.size} ops use streams 0 to "
                f"{self.stream.size - 1} at most, numbered without holes"
            )

    @property
    def streams(self) -> int:
        """Number of streams used."""
        return int(self.stream.max(initial=-1)) + 1

    def to_json(self) -> bytes:
        """The plan as JSON of schema `msched.plan/1`; `from_json` gives it back."""
        body = {
            name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in self.__dict__.items()
        }
        return msgspec.json.encode({"schema": SCHEMA, **body})

    @staticmethod
    def from_json(data: bytes | str) -> Plan:
        """Inverse of `to_json`. Raises PlanError that names the field."""
        try:
            document = msgspec.json.decode(data, type=_Document)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise PlanError(f"not a plan of schema {SCHEMA}: {error}") from error
        body = msgspec.structs.asdict(document)
        if body.pop("schema") != SCHEMA:
            raise PlanError(f"not a plan of schema {SCHEMA}")
        return Plan(**body)


class _Document(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    schema: str
    stream: list[int]
    order: list[int]
    fences: list[tuple[int, int]]
    mode: list[int] | None
    status: Status
    reason: str
    predicted_start_ns: list[int] | None
    predicted_makespan_ns: int | None
    bound_ns: int | None
    bound_argument: str
    log: tuple[Incumbent, ...]
    stages: tuple[Stage, ...] = ()


def check_plan(problem: Problem, plan: Plan) -> None:
    """Raise PlanError unless `plan` is a plan of `problem`: shapes, a linear extension, fences in issue order, modes.

    Limits are not looked at here: a plan that breaks one can still be simulated.
    """
    if not isinstance(plan, Plan):
        raise PlanError(f"a Plan is needed, not {type(plan).__name__}")
    n = problem.n
    if plan.status in ("infeasible", "timeout", "invalid") and plan.order.size == 0 and n:
        raise PlanError(f"the plan carries no schedule: {plan.status}: {plan.reason}")
    if plan.stream.shape != (n,) or plan.order.shape != (n,):
        raise PlanError(f"stream and order have {plan.stream.size} and {plan.order.size} entries for {n} ops")
    position = np.full(n, -1, np.int64)
    inside = plan.order[(plan.order >= 0) & (plan.order < n)]
    position[inside] = np.arange(inside.size)
    if inside.size < n or (position < 0).any():
        raise PlanError("order must list each op once")
    if (plan.stream < 0).any():
        op = int(np.flatnonzero(plan.stream < 0)[0])
        raise PlanError(f"op {problem.op_names[op]!r} is on stream {plan.stream[op]}; streams count from 0")
    if ((plan.fences < 0) | (plan.fences >= n)).any():
        raise PlanError(f"fences name an op that does not exist; ops are 0 to {n - 1}")
    for rows, what in ((problem.edges, "dependency"), (plan.fences, "fence")):
        late = position[rows[:, 0]] >= position[rows[:, 1]]
        if late.any():
            u, v = rows[np.flatnonzero(late)[0]]
            raise PlanError(f"the issue order breaks the {what} {problem.op_names[u]!r} -> {problem.op_names[v]!r}")
    if plan.mode is not None:
        most = np.bincount(problem.mode_op, minlength=n)
        if plan.mode.shape != (n,) or (plan.mode < 0).any() or (plan.mode > most).any():
            raise PlanError("mode must name, for each op, 0 or one of its alternative modes")


def durations_and_demands(problem: Problem, plan: Plan) -> tuple[Int64Array, Int64Array]:
    """Duration (n,) and demand (n, E) of the modes that the plan chose."""
    if plan.mode is None or not plan.mode.any():
        return problem.duration, problem.demand
    duration, demand = problem.duration.copy(), problem.demand.copy()
    chosen = np.flatnonzero(plan.mode)
    row = np.searchsorted(problem.mode_op, chosen) + plan.mode[chosen] - 1
    duration[chosen], demand[chosen] = problem.mode_duration[row], problem.mode_demand[row]
    return duration, demand


def waits(problem: Problem, plan: Plan) -> Int64Array:
    """The cross-stream edges (before, after) of the transitive reduction of dependencies, fences and stream order.

    Shape (w, 2), sorted by the issue order of the waiting op. Each costs one event. Found with one vector clock a
    stream (Mattern 1989), in O((n + m) x streams). Raises PlanError when the plan does not fit the problem.
    """
    from msched.waits_kernel import minimal_waits

    check_plan(problem, plan)
    return minimal_waits(plan.order, plan.stream, np.concatenate([problem.edges, plan.fences]))
