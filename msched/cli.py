"""The command `msched`. Everything heavy is imported by the command that needs it: `--help` must not wait."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from msched.errors import MschedError

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
_PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True}
_DEBUG = "HYDRA_FULL_ERROR"


def main() -> None:
    """Entry point: errors of a user or of the file system become one line on standard error and exit code 2, Ctrl-C
    exit code 130.
    """
    try:
        app()
    except MschedError as error:
        if os.environ.get(_DEBUG) == "1":
            raise
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        if os.environ.get(_DEBUG) == "1":
            raise
        print(f"error: {error.filename or 'output'}: {error.strerror or error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)


@app.callback()
def every_command(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Which op goes to which stream of an accelerator, in what order, and how far that is from the best possible."""
    if debug:
        os.environ[_DEBUG] = "1"


@app.command(context_settings=_PASS_ON, add_help_option=False)
def run(context: typer.Context) -> None:
    """Plan a network, or sweep over many: all arguments go to Hydra (`msched run --help`).

    msched run workload=light_resnet50 solver=cpsat;
    msched run -m solver=single,heft;
    msched run -cd experiments/first -cn study.
    """
    from msched.study import sweep

    try:
        sweep.main(context.args)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise typer.Exit(130) from None


@app.command()
def table(
    folder: Annotated[Path, typer.Argument(help="Folder of a sweep.")],
    output: Annotated[Path | None, typer.Option(help="Where the files go; the folder itself by default.")] = None,
    timings: Annotated[bool, typer.Option(help="Keep the solve times, which differ from run to run.")] = True,
) -> None:
    """Turn a sweep into tables (CSV, Parquet, Markdown, LaTeX) and a figure of speed-ups."""
    from msched.report import study

    for line in study.write(folder, output or folder, timings=timings):
        print(line, file=sys.stderr)


@app.command()
def show(
    job: Annotated[Path, typer.Argument(help="A record.json, or the folder of a job.")],
    output: Annotated[Path | None, typer.Option(help="Where the files go; the folder of the job by default.")] = None,
    trust: Annotated[
        bool, typer.Option(help="Let the record build its input with code from outside of msched.")
    ] = False,
) -> None:
    """Draw a job: Gantt chart (PNG, SVG) and a trace for ui.perfetto.dev."""
    from msched.report import job as drawing

    for path in drawing.write(job, output or (job if job.is_dir() else job.parent), trust=trust):
        print(path)


@app.command()
def draw(
    what: Annotated[str, typer.Argument(help="A workload of `msched list`, or a file of any format that is read.")],
    changes: Annotated[list[str] | None, typer.Argument(help="Parameters of it, as in layers=2.")] = None,
    device: Annotated[str, typer.Option(help="What it is placed and priced on.")] = "atlas_800i_a2",
    output: Annotated[Path | None, typer.Option(help="The file; WHAT.svg by default.")] = None,
) -> None:
    """Draw a network (SVG): its ops in layers, coloured by engine, larger the longer they take."""
    from msched.report import network

    typer.echo(network.write(what, changes or (), device, output))


@app.command("list")
def list_(
    what: Annotated[str, typer.Argument(help="workloads (with their figures), devices, solvers, or nothing.")] = "",
    device: Annotated[str, typer.Option(help="Whose figures the workloads have.")] = "atlas_800i_a2",
    csv: Annotated[
        Path | None,
        typer.Option(help="With workloads: write their figures to this CSV file too, in flops, bytes and ns."),
    ] = None,
) -> None:
    """List what `msched run` can be given.

    `msched list workloads` builds each and says what it is in figures: ops, flops, bytes moved, critical path, widest
    antichain, and the sum of durations on each engine. Markdown when it does not go to a terminal.
    """
    from msched.config import about, options
    from msched.errors import OptionError

    groups = {"workloads": "workload", "devices": "device", "solvers": "solver"}
    if what and what not in groups:
        raise OptionError(f"list {what!r} is not known; there are: {', '.join(groups)}")
    if what == "workloads":
        _list_workloads(device, csv)
        return
    if csv is not None:
        raise OptionError("--csv goes with: msched list workloads")
    for title in [what] if what else list(groups):
        typer.echo(title)
        for name in options(groups[title]):
            typer.echo(f"  {name:<24}{about(groups[title], name)}")


@app.command()
def version() -> None:
    """Print the version."""
    from msched import __version__

    typer.echo(__version__)


def _list_workloads(device: str, csv: Path | None) -> None:
    from functools import partial

    from rich.console import Console
    from rich.progress import track

    from msched.errors import OptionError
    from msched.report import workloads

    console = Console(stderr=True)
    shown = partial(track, description="workloads", console=console, transient=True, disable=not console.is_terminal)
    listed = workloads.listing(device, shown)
    if csv is not None:
        try:
            csv.write_text(workloads.as_csv(listed), encoding="utf-8")
        except OSError as error:
            raise OptionError(f"--csv {csv}: cannot be written: {error.strerror}") from error
    if sys.stdout.isatty():
        Console().print(workloads.as_table(listed), *workloads.reasons(listed), sep="\n", highlight=False, markup=False)
    else:
        typer.echo(workloads.as_markdown(listed), nl=False)
