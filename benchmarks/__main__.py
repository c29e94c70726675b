"""Run all benchmarks, or those named on the command line, and print each figure with its ratio."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table


def main() -> None:
    here = Path(__file__).parent
    names = [m.name for m in pkgutil.iter_modules([str(here)]) if not m.name.startswith("_") and m.name != "timing"]
    chosen = sys.argv[1:] or sorted(names)
    table = Table("benchmark", "what", "measured", "beside", "ratio")
    for name in chosen:
        for row in importlib.import_module(f"benchmarks.{name}").rows():
            table.add_row(name, row.what, row.measured, row.beside, f"{row.ratio:.2f}")
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
