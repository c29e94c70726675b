"""Run all benchmarks, or those named on the command line, and print each figure with its ratio.

A benchmark with options of its own is named first and takes what follows: python -m benchmarks exact --help.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table


def main() -> None:
    here = Path(__file__).parent
    names = sorted(m.name for m in pkgutil.iter_modules([str(here)]) if not m.name.startswith("_"))
    modules = {name: importlib.import_module(f"benchmarks.{name}") for name in names}
    commands = [name for name in names if hasattr(modules[name], "main")]
    tables = [name for name in names if hasattr(modules[name], "rows")]
    if sys.argv[1:2] and sys.argv[1] in commands:
        modules[sys.argv[1]].main(sys.argv[2:])
        return
    chosen = sys.argv[1:] or tables
    if unknown := sorted(set(chosen) - set(tables)):
        sys.exit(f"there is no benchmark {', '.join(unknown)}; there are: {', '.join(sorted([*tables, *commands]))}")
    table = Table("benchmark", "what", "measured", "beside", "ratio")
    for name in chosen:
        for row in modules[name].rows():
            table.add_row(name, row.what, row.measured, row.beside, f"{row.ratio:.2f}")
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
