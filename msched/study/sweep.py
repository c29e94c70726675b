"""The Hydra app behind `msched run`: one job a cell, any launcher, failures kept apart."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from msched.config import conf_directory
from msched.errors import MschedError, OptionError
from msched.study import job, progress, schema
from msched.study.records import FILE, Names, read

if TYPE_CHECKING:
    from omegaconf import DictConfig


class JobFailedError(MschedError):
    """A job of a sweep failed; its record says why, and the other jobs went on."""


def main(arguments: list[str]) -> None:
    """Run Hydra with the command line `arguments`, as `msched run` gets them.

    Raises OptionError for what Hydra refuses, JobFailedError when jobs of a sweep failed, SystemExit when the only job
    did, and KeyboardInterrupt after Ctrl-C.
    """
    import hydra
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError  # type: ignore[import-untyped]

    from msched.study import summary

    schema.register()
    summary.failed.clear()
    entry = hydra.main(config_path=str(conf_directory()), config_name="config", version_base="1.3")(run_cell)
    with _command_line(arguments), _without_bases() if {"--help", "-h"} & {*arguments} else nullcontext():
        try:
            entry()
        except (HydraException, OmegaConfBaseException) as error:
            raise OptionError(_helpful(_in_one_line(error), arguments)) from error
        except (YAMLError, UnicodeDecodeError) as error:
            raise OptionError(f"a config file is not YAML: {' '.join(str(error).split())}") from error
    if summary.failed:
        raise JobFailedError("\n".join([f"{len(summary.failed)} jobs failed:", *summary.failed]))


def run_cell(config: DictConfig) -> None:
    """One job. It is a function of a module, so that a launcher can send it to another process."""
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode
    from omegaconf import OmegaConf

    plain: Any = OmegaConf.to_container(config, resolve=True, enum_to_str=True)
    if reason := schema.missing(plain):
        raise OptionError(f"{reason}; a study begins with defaults: [config, _self_]")
    chosen = HydraConfig.get().runtime.choices
    names = Names(**{group: str(chosen.get(group)) for group in Names.__struct_fields__})
    if isinstance(path := plain["workload"].get("path"), str):  # a file is known by its name, not by its config
        names = msgspec.structs.replace(names, workload=Path(path.removesuffix(".gz")).stem or names.workload)
    sweeping = HydraConfig.get().mode == RunMode.MULTIRUN
    folder = Path(plain["output"]) / cell_folder(names, plain)
    number = f"job {HydraConfig.get().job.num + 1}: " if sweeping else ""
    silent = tuple(f"{key}=" for key in ("workload", "device", "solver", *schema.NOT_IDENTITY))
    swept = [f" {key}" for key in HydraConfig.get().overrides.task if sweeping and not key.startswith(silent)]
    try:
        with progress.live(f"{number}{names.workload}  {names.device}  {names.solver}{''.join(swept)}") as live:
            record, computed = job.run(plain, names, folder, live.on_progress, live.on_tick)
    except KeyboardInterrupt:
        if (folder / FILE).is_file():
            print(f"{progress.outcome(read(folder))} (interrupted)\n{folder / FILE}", file=sys.stderr)
        raise
    line = progress.outcome(record, "".join(swept))
    if record.state == "failed":
        if not sweeping:
            print(f"error: {line}", file=sys.stderr)
            raise SystemExit(2)
        return  # the sweep goes on; `summary` lists what failed
    if not computed:
        line += " (finished before)"
    if not sweeping:
        print(line, folder / FILE, sep="\n")
        if record.warnings:
            print(progress.warned(record.warnings, folder / FILE), file=sys.stderr)
    elif sys.stdout.isatty():
        print(f"{line}, warnings: {len(record.warnings)}" if record.warnings else line)


def cell_folder(names: Names, config: dict[str, Any]) -> str:
    """A folder name that a person can read and that no other cell has."""
    words = re.sub(r"[^\w.-]+", "_", f"{names.workload}-{names.device}-{names.solver}")
    return f"{words}-{schema.cell_id(config)[:12]}"


@contextmanager
def _command_line(arguments: list[str]) -> Iterator[None]:
    """Hydra reads sys.argv, and raises what it would else print and leave with when HYDRA_FULL_ERROR is 1."""
    argv, variable = sys.argv, os.environ.get("HYDRA_FULL_ERROR")
    sys.argv = ["msched run", *arguments]
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        yield
    finally:
        sys.argv = argv
        if variable is None:
            del os.environ["HYDRA_FULL_ERROR"]
        else:
            os.environ["HYDRA_FULL_ERROR"] = variable


@contextmanager
def _without_bases() -> Iterator[None]:
    """Leaves out of Hydra's help the configs that only others inherit from, whose names begin with `_`."""
    written = io.StringIO()
    try:
        with redirect_stdout(written):
            yield
    finally:  # Hydra may leave with SystemExit
        for line in written.getvalue().splitlines():
            group, colon, names = line.partition(": ")
            chosen = [name for name in names.split(", ") if not name.startswith("_")]
            print(group + colon + ", ".join(chosen) if re.fullmatch(r"[\w/]+", group) else line)


def _helpful(text: str, arguments: list[str]) -> str:
    """What Hydra says, where it names a choice that is none or misses a better one."""
    if found := re.search(r"(Available options in '[^']*': )(.*)", text):
        chosen = [name for name in found.group(2).split() if not name.startswith("_")]
        return text[: found.start()] + found.group(1) + " ".join(chosen)
    found = re.search(r"Could not override 'workload\.(\w+)'", text)
    if found and "workload=file" in arguments:
        return (
            f"workload=file has no key {found.group(1)!r}; a dimension that the model leaves open is set as "
            f"'workload.dimensions={{{found.group(1)}: 8}}'"
        )
    return text


def _in_one_line(error: Exception) -> str:
    """What Hydra or OmegaConf says, with its cause, which often is the half that names the key."""
    parts = [str(error).strip().splitlines()]
    if error.__cause__ is not None:
        parts.append(str(error.__cause__).strip().splitlines()[:1])
    lines = (line.strip() for part in parts for line in part)
    kept = [
        line for line in lines if line and not re.match(r"(Config search path|provider=|full_key|object_type)", line)
    ]
    return " ".join(dict.fromkeys(kept))
