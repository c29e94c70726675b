"""The types of the main config: what `msched run` accepts, and the identity of one cell of a sweep."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

NAME = "job_schema"
NOT_IDENTITY = ("study", "output", "force")  # where a result goes does not change what it is


# Hydra shows the member names in its messages, so they are what a user types.
Binding = Enum("Binding", ["free", "engine"])
Collective = Enum("Collective", ["hccl", "aiv"])
Parallelism = Enum("Parallelism", ["single_stream", "cc_parallel", "engine_parallel", "intra_engine", "full"])
Along = Enum("Along", ["auto", "batch", "sequence"])
Around = Enum("Around", ["collectives", "any"])
Dispatch = Enum("Dispatch", ["arrival", "planned", "greedy"])
Fidelity = Enum("Fidelity", ["fixed"])
Figure = Enum("Figure", ["makespan_ns", "peak_bytes", "waits", "streams"])


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
    placement: dict[str, Any] = field(default_factory=dict)


def register() -> None:
    """Make the schema known to Hydra under `job_schema`, which `conf/config.yaml` builds upon."""
    from hydra.core.config_store import ConfigStore

    ConfigStore.instance().store(name=NAME, node=Job, provider="msched")


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
