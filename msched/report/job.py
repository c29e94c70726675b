"""What `msched show` makes of one record: the Gantt chart and the trace of its plan."""

from __future__ import annotations

from pathlib import Path

from msched.errors import OptionError
from msched.export import perfetto
from msched.report import palette
from msched.report.gantt import gantt
from msched.simulator import Timeline, simulate
from msched.study import inputs, records
from msched.study.job import size_of
from msched.study.progress import duration
from msched.study.records import Record
from msched.study.schema import missing


def write(job: Path, output: Path, *, trust: bool = False) -> list[Path]:
    """Run the plan of the record `job` again and draw it: `gantt.png`, `gantt.svg` and `trace.json` in `output`.

    trust: let the record's config call code from outside of msched. Raises OptionError when the record has no plan,
    when it would call such code, or when its input or the code has changed since.
    """
    record = records.read(job)
    timeline = run_again(record, trust=trust)
    bound = record.bound.makespan_ns if record.bound else None
    drawn = palette.save(gantt(timeline, title(record), bound), output / "gantt")
    return [*drawn, perfetto.write(timeline, output / "trace.json")]


def run_again(record: Record, *, trust: bool = False) -> Timeline:
    """The timeline of the record's plan, rebuilt from its config. Raises OptionError where it would not be the same."""
    if record.plan is None or record.input is None or record.problem is None or record.score is None:
        why = record.error or record.reason
        raise OptionError(f"the record has no plan to show: it is {record.status or record.state}: {why}")
    if not trust and (targets := inputs.foreign_targets(record.config)):
        raise OptionError(
            f"the record builds its input with {', '.join(targets)}, which is not part of msched; "
            "say --trust if you know where the record comes from"
        )
    if reason := missing(record.config):
        raise OptionError(f"the record is damaged, or of another version: {reason}; run the job again")
    graph = inputs.graph_of(record.config)
    if graph.content_hash() != record.input.hash:
        raise OptionError(f"the input {record.input.name!r} has changed since the job ran; run it again")
    problem = inputs.candidates_of(record.config, graph, record.slices)[0].problem
    assert problem is not None
    if size_of(problem) != record.problem:
        raise OptionError("this version lowers the input to another problem than the one that was solved; run it again")
    rule = record.config["simulator"]
    timeline = simulate(problem, record.plan.plan(), rule["dispatch"], rule["fidelity"])
    if timeline.makespan_ns != record.score.makespan_ns:
        raise OptionError(
            f"the plan now takes {timeline.makespan_ns} ns, but {record.score.makespan_ns} ns stand in the record; "
            "the simulator has changed since, run the job again"
        )
    return timeline


def title(record: Record) -> str:
    """What a chart of the record shows, in one line."""
    names = record.names
    text = f"{names.workload} on {names.device}, {names.solver}"
    if record.score is not None:
        text += f": makespan {duration(record.score.makespan_ns)}"
    if record.bound is not None:
        text += f", bound {duration(record.bound.makespan_ns)}"
    if record.gap is not None:
        text += f", gap {record.gap:.2%}" if record.gap else ", optimal"
    return f"{text} ({record.status})" if record.status == "invalid" else text
