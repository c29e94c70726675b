"""The types of the main config: what `msched run` accepts, and the identity of one cell of a sweep."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

NAME = "job_schema"
NOT_IDENTITY = ("study", "output", "force")  # where a result goes does not change what it is


# Hydra shows the member names in its messages, so they are what a user types. Each is its own value too, so that a
# number, as in parallelism=3, is none of them.
Binding = Enum("Binding", {"free": "free", "engine": "engine"})
Collective = Enum("Collective", {"hccl": "hccl", "aiv": "aiv"})
Parallelism = Enum(
    "Parallelism",
    {
        "single_stream": "single_stream",
        "cc_parallel": "cc_parallel",
        "engine_parallel": "engine_parallel",
        "intra_engine": "intra_engine",
        "full": "full",
    },
)
Along = Enum("Along", {"auto": "auto", "batch": "batch", "sequence": "sequence"})
Around = Enum("Around", {"collectives": "collectives", "any": "any"})
Dispatch = Enum("Dispatch", {"arrival": "arrival", "planned": "planned", "greedy": "greedy"})
Fidelity = Enum("Fidelity", {"fixed": "fixed"})
Figure = Enum(
    "Figure", {"makespan_ns": "makespan_ns", "peak_bytes": "peak_bytes", "waits": "waits", "streams": "streams"}
)


@dataclass
class Simulator:
    """Group `simulator`: the rule that scores a plan."""

    dispatch: Dispatch
    fidelity: Fidelity


@dataclass
class Objective:
    """Group `objective`: the figures of a score in order of importance; a table ranks plans by them."""

    order: list[Figure]


@dataclass
class Job:
    """All keys of the main config; `conf/config.yaml` says what each means and sets its default."""

    workload: dict[str, Any]
    device: dict[str, Any]
    solver: dict[str, Any]
    simulator: Simulator
    objective: Objective
    streams: int | None
    binding: Binding
    parallelism: Parallelism
    slices: Any
    slice_choices: list[int]
    slice_along: Along
    slice_around: Around
    memory_bytes: int | str | None
    collective: Collective
    time_limit: float
    workers: int
    seed: int
    deterministic: bool
    study: str
    output: str
    force: bool
    placement: Any = None


def register() -> None:
    """Make the schema known to Hydra under `job_schema`, which `conf/config.yaml` builds upon."""
    from hydra.core.config_store import ConfigStore

    ConfigStore.instance().store(name=NAME, node=Job, provider="msched")


def missing(config: Mapping[str, Any]) -> str:
    """The first thing that a job needs and a resolved config has not, in words, or an empty string."""
    if lacks := [key.name for key in fields(Job) if key.name not in {*config, *NOT_IDENTITY}]:
        return f"the config has no {lacks[0]!r}"
    for group in ("workload", "device"):
        if not isinstance(config[group], Mapping):
            return f"{group} is {config[group]!r}, and not the config of one"
    rule = config["simulator"]
    if not isinstance(rule, Mapping) or not {"dispatch", "fidelity"} <= rule.keys():
        return f"simulator is {rule!r}; dispatch and fidelity are needed"
    return damage(config)


def damage(config: Mapping[str, Any]) -> str:
    """What keeps a record from standing in a table, in words, or an empty string."""
    if not isinstance(config.get("solver", {}), Mapping):
        return f"solver is {config['solver']!r}, and not the config of one"
    objective, known = config.get("objective"), Figure.__members__
    order = objective.get("order") if isinstance(objective, Mapping) else None
    if not isinstance(order, (list, tuple)) or not order or not all(str(figure) in known for figure in order):
        return f"objective is {objective!r}; its order needs figures of {', '.join(known)}"
    return ""


def cell_id(config: Mapping[str, Any]) -> str:
    """SHA-256 of a resolved config without what only says where results go: equal cells, equal ids."""
    identity = {key: value for key, value in config.items() if key not in NOT_IDENTITY}
    return hashlib.sha256(json.dumps(identity, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of a config that is no container, with its dotted path."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from leaves(below, f"{path}.{key}" if path else str(key))
    elif isinstance(value, (list, tuple)):
        for index, below in enumerate(value):
            yield from leaves(below, f"{path}[{index}]")
    else:
        yield path, value
