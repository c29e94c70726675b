"""The trace against the rules of the format: "Trace Event Format", Google, 2016."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from msched.export import perfetto
from msched.plan import Plan
from msched.problem import Problem
from msched.simulator import Timeline, simulate


@pytest.fixture
def timeline() -> Timeline:
    """Three ops: 0 on stream 0; then 1 on stream 0 beside 2 on stream 1, which waits for 0."""
    problem = Problem.from_arrays(
        duration=[1001, 2002, 503],
        edges=[(0, 1), (0, 2)],
        demand=[[1, 0], [2, 1], [1, 0]],
        capacity=[3, 1],
        engine_names=["cube", "vector"],
        op_names=["first", "mixed", "other"],
        record_ns=10,
        wait_ns=20,
        name="three",
    )
    return simulate(problem, Plan(stream=[0, 0, 1], order=[0, 1, 2]))


@pytest.fixture
def events(timeline: Timeline, tmp_path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(perfetto.write(timeline, tmp_path / "trace.json").read_bytes())[
        "traceEvents"
    ]
    return found


def of(events: list[dict[str, Any]], phase: str) -> list[dict[str, Any]]:
    return [event for event in events if event["ph"] == phase]


def test_every_event_has_what_its_phase_needs(events: list[dict[str, Any]]) -> None:
    needed = {
        "X": {"name", "cat", "ts", "dur", "pid", "tid"}, "C": {"name", "ts", "pid", "args"},
        "M": {"name", "pid", "tid", "args"}, "s": {"name", "cat", "id", "ts", "pid", "tid"},
        "f": {"name", "cat", "id", "ts", "pid", "tid", "bp"},
    }  # fmt: skip
    for event in events:
        assert needed[event["ph"]] <= set(event)
        assert event.get("ts", 0) >= 0


def test_slices_are_the_ops(events: list[dict[str, Any]]) -> None:
    slices = {event["name"]: event for event in of(events, "X")}
    # The other waits for the event of the first: 1001 + 10 + 20.
    assert {name: (e["tid"], e["ts"], e["dur"]) for name, e in slices.items()} == {
        "first": (0, 0, 1.001), "mixed": (0, 1.001, 2.002), "other": (1, 1.031, 0.503),
    }  # fmt: skip
    assert slices["mixed"]["args"]["demand"] == {"cube": 2, "vector": 1}
    assert slices["mixed"]["args"]["engine"] == "vector"  # it holds the larger share of that one
    assert slices["mixed"]["args"]["critical"]
    assert not slices["other"]["args"]["critical"]


def test_slices_of_a_stream_do_not_overlap(events: list[dict[str, Any]]) -> None:
    for stream in (0, 1):
        ends = [(e["ts"], e["ts"] + e["dur"]) for e in of(events, "X") if e["tid"] == stream]
        assert all(before[1] <= after[0] for before, after in pairwise(ends))


def test_tracks_have_names(events: list[dict[str, Any]]) -> None:
    named = {(e["pid"], e["tid"]): e["args"]["name"] for e in of(events, "M") if e["name"] == "thread_name"}
    assert named == {(perfetto.STREAMS, 0): "stream 0", (perfetto.STREAMS, 1): "stream 1"}
    processes = {e["pid"]: e["args"]["name"] for e in of(events, "M") if e["name"] == "process_name"}
    assert processes == {perfetto.STREAMS: "streams", perfetto.ENGINES: "engines"}


def test_each_wait_is_an_arrow_between_two_slices(events: list[dict[str, Any]]) -> None:
    starts, ends = of(events, "s"), of(events, "f")
    assert [(e["tid"], e["ts"], e["id"]) for e in starts] == [(0, 0, 0)]
    assert [(e["tid"], e["ts"], e["id"], e["bp"]) for e in ends] == [(1, 1.031, 0, "e")]
    slices = of(events, "X")
    for arrow in (*starts, *ends):
        assert any(s["tid"] == arrow["tid"] and s["ts"] <= arrow["ts"] < s["ts"] + s["dur"] for s in slices)


def test_counters_follow_the_units_in_use(events: list[dict[str, Any]]) -> None:
    cube = [(e["ts"], e["args"]["units"]) for e in of(events, "C") if e["name"] == "cube"]
    # first 1; mixed 2; with other 3 until 1.534; mixed alone 2 until 3.003.
    assert cube == [(0, 1), (1.001, 2), (1.031, 3), (1.534, 2), (3.003, 0)]
    vector = [(e["ts"], e["args"]["units"]) for e in of(events, "C") if e["name"] == "vector"]
    assert vector == [(1.001, 1), (3.003, 0)]


@pytest.mark.parametrize("start", [0, 1, 999, 123_456_789_123_457, 2**52 + 1])
def test_microseconds_are_exact_to_the_ns(start: int) -> None:
    text = json.dumps(perfetto._microseconds(start))
    assert Fraction(text) * 1000 == start


def test_an_op_that_takes_no_time_holds_no_units() -> None:
    problem = Problem.from_arrays(duration=[0, 5], edges=[(0, 1)], demand=[[1], [1]], capacity=[1])
    timeline = simulate(problem, Plan(stream=[0, 0], order=[0, 1]))
    counters = of(perfetto.trace(timeline)["traceEvents"], "C")
    assert [(e["ts"], e["args"]["units"]) for e in counters] == [(0, 1), (0.005, 0)]
