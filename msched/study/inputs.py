"""What a resolved config describes: the graph, the problem and the solver."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msched.config import build, options
from msched.errors import OptionError
from msched.graph import OpGraph
from msched.problem import Problem
from msched.solvers.base import Solver
from msched.study.records import Names
from msched.study.schema import leaves

if TYPE_CHECKING:
    from msched.solvers.slicing import Candidate

_MISSING = "???"
_GENERATED = "msched.networks.network"


def check_names(names: Names) -> None:
    """Raise OptionError where what was chosen is a base that other configs inherit from, whose names begin with `_`."""
    for group in names.__struct_fields__:
        if (name := getattr(names, group)).startswith("_"):
            raise OptionError(
                f"{group}={name} is a base that others inherit from; there are: {', '.join(options(group))}"
            )


def check(config: Mapping[str, Any]) -> None:
    """Raise OptionError that names the first key without a value."""
    for key, value in leaves(config):
        if value == _MISSING:
            raise OptionError(f"{key} has no value; give it as {key}=VALUE")


def foreign_targets(config: Mapping[str, Any]) -> list[str]:
    """What building the config would call from outside of msched: a record is a file, and may come from anybody."""
    targets = (value for key, value in leaves(config) if key.rsplit(".", 1)[-1] == "_target_")
    return sorted({str(target) for target in targets if not str(target).startswith("msched.")})


def graph_of(config: Mapping[str, Any]) -> OpGraph:
    """The network of the group `workload`. Raises OptionError for a config that describes something else.

    The networks of msched that were built last are kept: the cells of a sweep share them. What a file gives is not.
    """
    workload = config["workload"]
    if workload.get("_target_") == _GENERATED and json.loads(text := json.dumps(workload)) == workload:
        return _generated(text)
    graph: OpGraph = _built(workload, "workload", OpGraph)
    return graph


@lru_cache(maxsize=8)  # few, because a graph may hold a million ops
def _generated(workload: str) -> OpGraph:
    graph: OpGraph = _built(json.loads(workload), "workload", OpGraph)
    return graph


def problem_of(config: Mapping[str, Any], graph: OpGraph) -> Problem:
    """`graph` placed and priced on the device of the config. Raises ProblemError, DeviceError and OptionError."""
    from msched.device import device_from
    from msched.lowering import lower

    return lower(
        graph,
        device_from(config["device"]),
        streams=config["streams"],
        binding=config["binding"],
        memory_bytes=config["memory_bytes"],
        collective=config["collective"],
        placement=config["placement"] or None,
        parallelism=config["parallelism"],
    )


def candidates_of(config: Mapping[str, Any], graph: OpGraph, slices: Any = None) -> list[Candidate]:
    """The problems of every cut of `graph` that the config, or else `slices`, stands for. Raises as `problem_of`."""
    from msched.solvers.slicing import candidates

    return candidates(
        graph,
        lambda cut: problem_of(config, cut),
        config["slices"] if slices is None else slices,
        config["slice_choices"],
        config["slice_along"],
        config["slice_around"],
    )


def solver_of(config: Mapping[str, Any]) -> Solver:
    """The solver of the group `solver`. Raises OptionError for a config that describes something else."""
    solver: Solver = _built(config["solver"], "solver", object)
    if not callable(getattr(solver, "solve", None)):
        raise OptionError(f"solver: {config['solver']['_target_']} has no solve(problem, budget)")
    return solver


def _built(values: dict[str, Any], group: str, kind: type) -> Any:
    if "_target_" not in values:
        raise OptionError(f"{group}: the config has no _target_ that says what builds it")
    result = build(values)
    if not isinstance(result, kind):
        raise OptionError(f"{group}: {values['_target_']} gives {type(result).__name__}, not {kind.__name__}")
    return result
