"""What one cell of a study leaves on disk: a record; how it is written, and how a folder of them is read."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from msched.errors import FormatError, OptionError
from msched.plan import Incumbent, Plan, Stage, Status
from msched.study.schema import damage

SCHEMA = "msched.record/1"
FILE = "record.json"
Amount = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Index = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
State = Literal["done", "failed", "interrupted"]


class Names(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The chosen config of each Hydra group."""

    workload: str
    device: str
    solver: str
    simulator: str = ""
    objective: str = ""


class Machine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where it ran, without names of hosts or users."""

    cpu: str
    cores: int
    memory_bytes: int
    system: str
    python: str


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The graph that was read or generated, and the SHA-256 of its content."""

    name: str
    hash: str
    ops: int
    tensors: int
    dependencies: int


class Size(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The problem that was solved, and the SHA-256 of its content: equal hashes, comparable scores."""

    hash: str
    ops: int
    dependencies: int
    engines: tuple[str, ...]
    streams: int | None


class Tried(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One number of slices, or numbers by pattern, and what came out: ns; without a makespan the reason says why."""

    slices: int | Mapping[str, int]
    ops: int
    makespan_ns: int | None
    bound_ns: int | None
    status: str
    reason: str


class Choice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The plan itself."""

    stream: list[Index]
    order: list[Index]
    fences: list[tuple[Index, Index]]
    mode: list[Index] | None

    @staticmethod
    def of(plan: Plan) -> Choice:
        """What has to be kept of `plan` to run it again."""
        return Choice(
            stream=plan.stream.tolist(),
            order=plan.order.tolist(),
            fences=[(int(u), int(v)) for u, v in plan.fences],
            mode=None if plan.mode is None else plan.mode.tolist(),
        )

    def plan(self) -> Plan:
        """The plan again, without the claims of its solver."""
        return Plan(**msgspec.structs.asdict(self))


class Claim(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the solver said of its own plan; never a result. stages: figures beside the makespan, with their bounds."""

    status: Status
    reason: str
    makespan_ns: int | None
    stages: tuple[Stage, ...] = ()


class Score(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the simulator said: ns, bytes, counts; utilisation of each engine 0 to 1."""

    makespan_ns: Amount
    peak_bytes: Amount
    streams: Index
    waits: Index
    fences: Index
    utilisation: dict[str, float]
    exposed_communication_ns: int


class Proof(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The best lower bound on the makespan, what proved it, and what every argument gave; all ns."""

    makespan_ns: Amount
    argument: str
    each: dict[str, Amount]


class Record(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One cell: what was asked, what came out and where. Fields that a failure left out are None.

    status is about the score: `optimal` only where the simulated makespan equals the bound. seconds: of each step.
    slices: the cut that `problem` and `plan` are of, `tried` all cuts if there was a choice.
    gap: makespan / bound - 1. violations: what the validator found, each with its reason.
    """

    cell: str
    names: Names
    config: dict[str, Any]
    seed: int
    versions: dict[str, str]
    machine: Machine
    schema: str = SCHEMA
    state: State = "failed"
    status: Status | None = None
    reason: str = ""
    input: Input | None = None
    problem: Size | None = None
    slices: int | Mapping[str, int] = 1
    tried: list[Tried] = []
    plan: Choice | None = None
    claim: Claim | None = None
    score: Score | None = None
    bound: Proof | None = None
    gap: float | None = None
    log: list[Incumbent] = []
    seconds: dict[str, float] = {}
    violations: list[str] = []
    warnings: list[str] = []
    error: str = ""
    traceback: str = ""


def write(record: Record, folder: Path) -> Path:
    """Write `folder/record.json` so that a reader sees the old record or the new one, never half of one."""
    folder.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".record-", suffix=".json")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.encode(record) + b"\n")
        return Path(temporary).replace(folder / FILE)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read(path: Path) -> Record:
    """The record at `path`, or in the folder `path`. Raises FormatError that names the file and the place in it."""
    file = path / FILE if path.is_dir() else path
    try:
        record = msgspec.json.decode(file.read_bytes(), type=Record)
    except OSError as error:
        raise FormatError(f"{file}: {error.strerror}; give a record or the folder of a job") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"{file}: not a record of schema {SCHEMA}: {error}") from error
    if record.schema != SCHEMA:
        raise FormatError(f"{file}: schema {record.schema!r} is not known here; this version reads {SCHEMA!r}")
    return record


def load(folder: Path) -> tuple[list[Record], list[str]]:
    """All records below `folder`, in the order of their paths, and a warning for each file that could not be read.

    Raises OptionError where there is no folder, or no record in it.
    """
    if not folder.is_dir():
        raise OptionError(f"{folder} is not a folder; give the folder of a study")
    records, warnings = [], []
    for path in sorted(folder.rglob(FILE)):
        try:
            record = read(path)
        except FormatError as error:
            warnings.append(f"left out: {error}")
            continue
        if reason := damage(record.config):
            warnings.append(f"left out: {path}: {reason}")
        else:
            records.append(record)
    if not records:
        raise OptionError("\n".join([f"{folder} holds no record ({FILE}) that can be read", *warnings]))
    return records, warnings
