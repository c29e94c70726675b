"""msched: which op goes to which stream, in what order, and how far that is from the best possible."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msched import solvers as solvers
    from msched import validate as validate
    from msched.bounds import bound as bound
    from msched.device import Device as Device
    from msched.formats import read as read
    from msched.formats.problems import read_problem as read_problem
    from msched.graph import OpGraph as OpGraph
    from msched.lowering import lower as lower
    from msched.lowering.slicing import slice_graph as slice_graph
    from msched.networks import network as network
    from msched.plan import Plan as Plan
    from msched.plan import waits as waits
    from msched.problem import Problem as Problem
    from msched.simulator import Timeline as Timeline
    from msched.simulator import simulate as simulate
    from msched.solvers import solve as solve
    from msched.solvers.exact.stages.pareto import pareto as pareto
    from msched.solvers.slicing import solve_slices as solve_slices

__version__ = "0.1.0"

# Loaded at first use, so that `import msched` and `msched --help` stay fast. `solvers` and `validate` are modules that
# can be called: msched.solvers() and msched.validate(...) live beside msched.solvers.exact and msched.validate's own
# names.
_HOME = {
    "Device": "msched.device",
    "OpGraph": "msched.graph",
    "Plan": "msched.plan",
    "Problem": "msched.problem",
    "Timeline": "msched.simulator",
    "bound": "msched.bounds",
    "lower": "msched.lowering",
    "network": "msched.networks",
    "pareto": "msched.solvers.exact.stages.pareto",
    "read": "msched.formats",
    "read_problem": "msched.formats.problems",
    "simulate": "msched.simulator",
    "slice_graph": "msched.lowering.slicing",
    "solve": "msched.solvers",
    "solve_slices": "msched.solvers.slicing",
    "waits": "msched.plan",
}
_MODULES = ("solvers", "validate")
__all__ = [*sorted(_HOME), *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"msched.{name}")
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'msched' has no attribute {name!r}; it has: {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
