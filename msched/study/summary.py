"""What a sweep says when it ends: how many cells its folder has, their warnings, and which of its jobs failed."""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.experimental.callback import Callback

from msched.errors import FormatError, OptionError
from msched.study import records
from msched.study.progress import outcome, warned

if TYPE_CHECKING:
    from omegaconf import DictConfig

failed: list[str] = []  # of the sweep that ended last in this process; hydra hands nothing of a callback back


class Summary(Callback):
    """Named in `conf/config.yaml`; Hydra calls it where the sweep was started, whatever launcher runs the jobs."""

    def __init__(self) -> None:
        self._begin = time.time()

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Take the time: records of before are not of this sweep."""
        self._begin = time.time()

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Print a line on the cells and one on their warnings, and keep what failed."""
        folder = Path(str(config.output))
        try:
            found, _ = records.load(folder)
        except OptionError:  # not one job came as far as a record
            return
        states = Counter(record.state for record in found)
        print(f"{folder}: " + ", ".join(f"{count} {state}" for state, count in sorted(states.items())))
        warnings = Counter(warning for record in found for warning in record.warnings)
        if warnings:  # those of most cells first
            print(warned([text for text, _ in warnings.most_common()], folder / "*" / records.FILE), file=sys.stderr)
        written = [path for path in sorted(folder.rglob(records.FILE)) if path.stat().st_mtime >= self._begin - 1]
        failed.extend(line for path in written if (line := _failure(path)))


def _failure(path: Path) -> str:
    try:
        record = records.read(path)
    except FormatError as error:
        return str(error)
    return f"{outcome(record)} ({path})" if record.state == "failed" else ""
