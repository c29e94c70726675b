"""The benchmark of the exact solver: what it calls wrong, how it sums up, and what it asks of PyJobShop."""

from __future__ import annotations

import csv
import importlib.util
import re
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import exact, exact_instances, pyjobshop_model
from benchmarks.exact_instances import LIMITS_S, Instance, instances
from msched.problem import Problem

with_pyjobshop = pytest.mark.skipif(
    importlib.util.find_spec("pyjobshop") is None, reason="pyjobshop is not installed; pip install -e '.[compare]'"
)
PUBLISHED = Instance("known", lambda: Problem.from_arrays(duration=[1]), lower=8, upper=10)
ROW = exact.Outcome(
    set="s", instance="a", ops=3, seed=0, lower=8, upper=10, makespan_ns=10, bound_ns=10, argument="CP-SAT",
    proven=True, seconds=1.0,
)  # fmt: skip


@pytest.mark.parametrize(
    ("makespan", "bound", "proven", "faults"),
    [
        (10, 10, True, 0),
        (9, 8, False, 0),  # better than what is published, and not below the bound
        (12, 9, False, 0),
        (None, 0, False, 0),
        (11, 11, True, 2),  # the bound and the proof
        (11, 10, True, 1),
        (7, 7, False, 1),
        (12, 11, False, 1),
    ],
)
def test_what_contradicts_a_published_figure(makespan: int | None, bound: int, proven: bool, faults: int) -> None:
    assert len(exact.contradictions("it", PUBLISHED, makespan, bound, proven)) == faults


def test_a_set_is_summed_up_by_the_medians_of_its_instances() -> None:
    # a: makespans 10, 11, 30, bounds 10, 9, 10: medians 11 and 10, 10 %. b: 20 by 20. (1.1 * 1.0) ** 0.5 = 1.04881.
    rows = [
        ROW,
        replace(ROW, seed=1, makespan_ns=11, bound_ns=9, proven=False),
        replace(ROW, seed=2, makespan_ns=30, proven=False, wrong="something"),
        replace(ROW, instance="b", makespan_ns=20, bound_ns=20),
    ]
    assert exact.summary("s", rows) == ["s: msched: 1 of 2 proven, sum 31, mean gap 4.881%, 1 of 2 wrong"]


def test_another_tool_is_compared_where_it_was_asked() -> None:
    other = {"other_bound_ns": 9, "other_proven": False, "other_seconds": 1.0}
    rows = [
        replace(ROW, other_makespan_ns=12, **other),
        replace(ROW, instance="b", makespan_ns=20, bound_ns=8, other_makespan_ns=None, **other),
        replace(ROW, instance="c"),
    ]
    assert exact.summary("s", rows)[1:] == [
        "  2 of these in PyJobShop: PyJobShop: 0 of 2 proven, 1 without a plan, sum 12, mean gap 33.333%",
        "  the same in msched: msched: 2 of 2 proven, sum 30, mean gap 58.114%",
        "  bound of msched: 1 better, 1 worse",
        "  makespan of msched: 2 better, 0 worse",
    ]


def test_sets_that_need_no_files_come_in_one_order() -> None:
    for name in ("onnx", "random", "moe", "training", "llama", "build"):
        names = [one.name for one in instances(name)]
        assert names == [one.name for one in instances(name)]
        assert len(set(names)) == len(names) > 0
        assert name in LIMITS_S


def test_networks_have_no_sync_cost_where_none_is_asked_for() -> None:
    free, dear = instances("onnx", gap_ns=7)[:2]
    assert (free.name, dear.name) == ("bvlc_alexnet, 2 streams, sync 0 us", "bvlc_alexnet, 2 streams, sync 2 us")
    for one, sync_ns in ((free, 0), (dear, 2_000)):
        problem = one.build()
        assert (problem.record_ns + problem.wait_ns, problem.gap_ns, problem.streams) == (sync_ns, 7, 2)


def test_rows_go_to_the_terminal_and_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.csv"
    exact.main(["--set", "onnx", "--only", "alexnet, 2 streams, sync 0", "--limit", "1", "--csv", str(path)])
    told = capsys.readouterr().out
    assert "onnx: 1 instances, 1 s, 2 workers, seeds 0 to 0" in told
    assert "onnx: msched: 1 of 1 proven" in told  # a chain: its critical path is the makespan of any plan
    with path.open(encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert row["instance"] == "bvlc_alexnet, 2 streams, sync 0 us"
    assert row["makespan_ns"] == row["bound_ns"]
    assert row["wrong"] == ""


def test_files_that_are_missing_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_instances, "DATA", tmp_path)
    for name in ("memory", "pipedream", "stg"):
        exact_instances._optima.cache_clear()
        with pytest.raises(SystemExit, match=f"^set {name}: .*{re.escape(str(tmp_path))}.*are not there$"):
            exact.main(["--set", name])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "nothing"], "invalid choice: 'nothing'"),
        (["--set", "onnx", "--every", "0"], "--seeds, --workers and --every are 1 or more"),
        (["--set", "onnx", "--with", "grain_ns=x"], "--with takes NAME=JSON"),
        (["--set", "onnx", "--limit", "-1"], "--limit is 0 or more"),
    ],
)
def test_options_that_cannot_be_are_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        exact.main(arguments)
    assert message in capsys.readouterr().err


# A machine of one unit and an engine of three, streams, modes and memory, each of which decides the optimum.
@with_pyjobshop
@pytest.mark.parametrize(
    ("problem", "optimum"),
    [
        # one machine: 3 + 4
        (Problem.from_arrays(duration=[3, 4], demand=[[1], [1]], capacity=[1]), 7),
        # three units: two of two do not fit together, 5 + 4; the one of one unit runs beside them
        (Problem.from_arrays(duration=[5, 4, 8], demand=[[2], [2], [1]], capacity=[3]), 9),
        # a chain of 2 + 3, and 4 beside it on one of two streams; on one stream all in turn
        (Problem.from_arrays(duration=[2, 3, 4], edges=[(0, 1)], streams=2), 5),
        (Problem.from_arrays(duration=[2, 3, 4], edges=[(0, 1)], streams=1), 9),
        # 6 on one machine, or 4 on the other, which the second op needs for 3: 6 beside 3, or 4 + 3
        (Problem.from_arrays(duration=[6, 3], demand=[[1, 0], [0, 1]], capacity=[1, 1], modes=[(0, 4, [0, 1])]), 6),
        # two branches of 2 + 3 ns hold 6 bytes each from end to end, and 10 is the limit: one after the other
        (
            Problem.from_arrays(
                duration=[2, 3, 2, 3], edges=[(0, 1), (2, 3)], tensors=[(0, 6, [1]), (2, 6, [3])], memory_bytes=10
            ),
            10,
        ),
        # the first output stays to the end, so that the workspace of 5 must have ended before it comes
        (
            Problem.from_arrays(duration=[2, 3], tensors=[(0, 6, [])], outputs=[0], workspace=[0, 5], memory_bytes=10),
            5,
        ),
    ],
)
def test_pyjobshop_finds_the_optimum_that_was_worked_out_by_hand(problem: Problem, optimum: int) -> None:
    assert pyjobshop_model.inexpressible(problem) == ""
    reached = pyjobshop_model.solve(problem, 10, 1, 0)
    assert (reached.makespan_ns, reached.bound_ns, reached.optimal) == (optimum, optimum, True)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"record_ns": 1}, "costs that depend on the stream"),
        ({"gap_ns": 1}, "costs that depend on the stream"),
        ({"host_issue_ns": 1}, "a host that issues one op after another"),
        ({"binding": "engine"}, "streams that serve one engine"),
        ({"label": [0, 0]}, "ops that share a stream"),
        ({"communicator": [0, 0]}, "collectives of one communicator that may overlap"),
        ({"streams": None, "gap_ns": 1}, ""),
        ({"streams": None, "binding": "engine"}, ""),
        ({"communicator": [0, 0], "demand": [[2], [2]]}, ""),
    ],
)
def test_what_pyjobshop_cannot_express(changes: dict[str, object], reason: str) -> None:
    given = {"duration": [1, 1], "edges": [(0, 1)], "demand": [[1], [1]], "capacity": [2], "streams": 2}
    assert pyjobshop_model.inexpressible(Problem.from_arrays(**{**given, **changes})) == reason  # type: ignore[arg-type]
