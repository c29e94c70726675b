"""With what and where a cell was computed."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path

from msched.study.records import Machine


def versions() -> dict[str, str]:
    """Version of msched and of each package that it depends on, by name."""
    return dict(_versions())


@cache
def _versions() -> Mapping[str, str]:
    needed = {"msched"}
    for requirement in metadata.requires("msched") or ():
        if "extra ==" not in requirement and (name := re.match(r"[\w.-]+", requirement)):
            needed.add(name.group())
    return {name: metadata.version(name) for name in sorted(needed)}


def machine() -> Machine:
    """This machine, without names of hosts or users."""
    return Machine(
        cpu=_cpu(),
        cores=os.cpu_count() or 1,
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0,
        system=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
    )


@cache
def _cpu() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:  # not Linux
        return platform.processor() or "unknown"
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found.group(1).strip() if found else platform.processor() or "unknown"
