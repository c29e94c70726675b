"""Generated networks: one builder a family.

A family is a module here with a function `build(...) -> OpGraph` whose parameters all have defaults; nothing else in
the tree learns of it.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from msched.errors import OptionError
from msched.graph import OpGraph

if TYPE_CHECKING:
    from msched.lowering.slicing import Slices


@cache
def networks() -> Mapping[str, Callable[..., OpGraph]]:
    """The builders by name, sorted: the modules of this package that have a `build`."""
    names = sorted(m.name for m in pkgutil.iter_modules(__path__))
    modules = {name: importlib.import_module(f"{__name__}.{name}") for name in names}
    return {name: module.build for name, module in modules.items() if hasattr(module, "build")}


def network(name: str, *, slices: Slices = 1, **parameters: Any) -> OpGraph:
    """A generated network, `name` one of `networks()` and `parameters` those of its builder.

    slices: cut as by `msched.slice_graph`; 1 leaves it whole.

    Raises OptionError that names an unknown network or parameter, or a value that the builder cannot take.
    """
    build = _builder(name)
    known = list(inspect.signature(build).parameters)
    if unknown := sorted(set(parameters) - set(known)):
        raise OptionError(f"network {name!r} has no parameter {', '.join(unknown)}; it takes: {', '.join(known)}")
    graph = build(**parameters)
    if type(slices) is int and slices == 1:  # neither True nor 1.0
        return graph
    from msched.lowering.slicing import slice_graph

    return slice_graph(graph, slices)


def _builder(name: str) -> Callable[..., OpGraph]:
    """The builder of one family; the modules of the others, some of them slow to import, are left alone."""
    if isinstance(name, str) and name in {m.name for m in pkgutil.iter_modules(__path__)}:
        module = importlib.import_module(f"{__name__}.{name}")
        if hasattr(module, "build"):
            build: Callable[..., OpGraph] = module.build
            return build
    raise OptionError(f"network {name!r} is not known; there are: {', '.join(networks())}")
