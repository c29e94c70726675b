"""A timeline as Chrome trace JSON, which ui.perfetto.dev and chrome://tracing open.

Format: "Trace Event Format" (Google, 2016): complete events `X`, counters `C`, flows `s` and `f`, metadata `M`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from msched.plan import durations_and_demands
from msched.simulator import Timeline

STREAMS, ENGINES = 1, 2  # process ids of the two groups of tracks


def trace(timeline: Timeline) -> dict[str, Any]:
    """The trace as plain values.

    One thread a stream with one slice an op, one counter an engine with the units in use, one arrow a wait. `ts` and
    `dur` are microseconds by the format's rule; three decimals make them exact to the ns.
    """
    names = timeline.problem.engine_names
    events = [*_tracks(timeline), *_slices(timeline), *_arrows(timeline)]
    for engine in range(len(names)):
        events.extend(_counter(timeline, engine))
    return {"displayTimeUnit": "ns", "traceEvents": events, "otherData": {"problem": timeline.problem.name}}


def write(timeline: Timeline, path: Path) -> Path:
    """The trace in the file `path`; the same bytes for the same timeline."""
    path.write_bytes(msgspec.json.encode(trace(timeline)))
    return path


def _tracks(timeline: Timeline) -> Iterator[dict[str, Any]]:
    for process, name in ((STREAMS, "streams"), (ENGINES, "engines")):
        yield {"ph": "M", "pid": process, "tid": 0, "name": "process_name", "args": {"name": name}}
        yield {"ph": "M", "pid": process, "tid": 0, "name": "process_sort_index", "args": {"sort_index": process}}
    for stream in range(timeline.plan.streams):
        yield {"ph": "M", "pid": STREAMS, "tid": stream, "name": "thread_name", "args": {"name": f"stream {stream}"}}
        yield {
            "ph": "M", "pid": STREAMS, "tid": stream, "name": "thread_sort_index", "args": {"sort_index": stream},
        }  # fmt: skip


def _slices(timeline: Timeline) -> Iterator[dict[str, Any]]:
    problem, plan = timeline.problem, timeline.plan
    duration, demand = durations_and_demands(problem, plan)
    critical = set(timeline.critical_ops.tolist())
    for op in plan.order.tolist():
        held = {problem.engine_names[e]: int(demand[op, e]) for e in np.flatnonzero(demand[op])}
        yield {
            "ph": "X",
            "pid": STREAMS,
            "tid": int(plan.stream[op]),
            "ts": _microseconds(timeline.start_ns[op]),
            "dur": _microseconds(duration[op]),
            "name": problem.op_names[op],
            "cat": problem.engine_names[problem.engine[op]],
            "args": {
                "op": op,
                "engine": problem.engine_names[problem.engine[op]],
                "duration_ns": int(duration[op]),
                "demand": held,
                "critical": op in critical,
            },
        }


def _arrows(timeline: Timeline) -> Iterator[dict[str, Any]]:
    """An arrow ties two slices, found by a time inside of each: their starts, for an end belongs to what follows."""
    for number, (before, after) in enumerate(timeline.waits.tolist()):
        for phase, op in (("s", before), ("f", after)):
            yield {
                "ph": phase,
                "pid": STREAMS,
                "tid": int(timeline.plan.stream[op]),
                "ts": _microseconds(timeline.start_ns[op]),
                "id": number,
                "name": "wait",
                "cat": "wait",
                **({"bp": "e"} if phase == "f" else {}),
            }


def _counter(timeline: Timeline, engine: int) -> Iterator[dict[str, Any]]:
    """Units in use, one event at each instant at which they change."""
    units = durations_and_demands(timeline.problem, timeline.plan)[1][:, engine]
    holds = (units > 0) & (timeline.finish_ns > timeline.start_ns)
    instant = np.concatenate([timeline.start_ns[holds], timeline.finish_ns[holds]])
    change = np.concatenate([units[holds], -units[holds]])
    when, place = np.unique(instant, return_inverse=True)
    level = np.cumsum(np.bincount(place, weights=change, minlength=when.size).astype(np.int64))
    before = 0
    for at, used in zip(when.tolist(), level.tolist(), strict=True):
        if used != before:
            yield {
                "ph": "C", "pid": ENGINES, "tid": 0, "ts": _microseconds(at),
                "name": timeline.problem.engine_names[engine], "args": {"units": used},
            }  # fmt: skip
        before = used


def _microseconds(ns: int) -> float:
    return int(ns) / 1000
