"""Scheduling benchmarks: files that describe a problem outright, with no network and no device behind it.

A format is a module here with four names, and nothing else in the tree learns of it:

- `WHAT`: the format in a few words, for error messages.
- `LARGEST_BYTES`: the largest file (unpacked) that its reader takes.
- `recognises(head) -> bool`: whether a file that begins with these bytes is of the format.
- `parse(data, name, streams) -> Problem`: the problem in those bytes. It raises FormatError with the line of whatever
  it cannot read, and OptionError where it cannot do without `streams`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import cast

from msched.errors import FormatError, OptionError, ProblemError
from msched.formats import contents, stem
from msched.problem import Problem


@cache
def problem_formats() -> Mapping[str, ModuleType]:
    """The readers by name, sorted: the modules of this package that can recognise a file."""
    names = sorted(m.name for m in pkgutil.iter_modules(__path__))
    modules = {name: importlib.import_module(f"{__name__}.{name}") for name in names}
    return {name: module for name, module in modules.items() if hasattr(module, "recognises")}


def read_problem(path: str | Path, streams: int | None = None, *, format_name: str | None = None) -> Problem:
    """The problem in a file of a scheduling benchmark, gzipped or not: PSPLIB projects with one mode or several (.rcp,
    .sm, .mm), job shops, flexible job shops (.fjs) and task graphs of the Standard Task Graph Set (.stg).

    streams: most ops that run at once; None for no limit. Task graphs need it: it is their number of processors.
    format_name: for a file that two formats claim; otherwise found by content, not by name.

    A renewable resource or a machine is an engine, an alternative of a job one of its modes, a unit of time 1 ns; no
    sync costs. A first job that waits for nothing and a last job that nothing waits for are left out where they take no
    time and no resource, as the dummy source and sink of these sets do: no order between the others rests on them.

    Raises FormatError that names the file and the line, OptionError for `streams` or `format_name`.
    """
    if not isinstance(path, str | Path):
        raise OptionError(f"path is {path!r}; the path of a file is needed")
    if streams is not None and (not isinstance(streams, int) or isinstance(streams, bool) or streams < 1):
        raise OptionError(f"streams is {streams!r}; a whole number of at least 1, or None for no limit, is needed")
    try:
        module, data = contents(Path(path), problem_formats(), format_name, "networks are read by msched.read")
        return cast(Problem, module.parse(data, stem(Path(path)), streams))
    except (FormatError, ProblemError) as error:
        raise FormatError(f"{path}: {error}") from error
    except OptionError as error:
        raise OptionError(f"{path}: {error}") from error
