from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from rich.console import Console

from msched.config import load, load_all, options
from msched.device import device_from
from msched.errors import OptionError
from msched.graph import Op, OpGraph, Tensor
from msched.lowering import lower
from msched.report import workloads
from msched.report.workloads import Figures

SMALL = {
    "fine": {"_target_": "msched.networks.network", "name": "random_layered", "ops": 12},
    "pathless": {"_target_": "msched.formats.read", "path": "???"},
    "unknown": {"_target_": "msched.networks.network", "name": "nowhere"},
    "defect": {"_target_": "builtins.divmod", "_args_": [1, 0]},
}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four workloads instead of those shipped, of which one can be listed."""
    monkeypatch.setattr(workloads, "options", lambda group: list(SMALL))
    monkeypatch.setattr(workloads, "load_all", lambda group: SMALL)


def diamond() -> OpGraph:
    """first -> (left, right -> view) -> last; the device has a gap of 1000 ns and events of 1500 ns."""
    ops = (
        Op(name="first", kind="Conv", flops=10, duration_ns=5000, bytes_read=100, bytes_written=28),
        Op(name="left", kind="Relu", flops=3, duration_ns=2000),
        Op(name="right", kind="Conv", flops=20, duration_ns=7000, bytes_read=1),
        Op(name="view", kind="Reshape"),
        Op(name="last", kind="Add", flops=4, duration_ns=1000),
    )
    tensors = (
        Tensor(name="a", bytes=10, producer=0, consumers=(1, 2)),
        Tensor(name="b", bytes=20, producer=1, consumers=(4,)),
        Tensor(name="c", bytes=30, producer=2, consumers=(3,)),
        Tensor(name="d", bytes=30, producer=3, consumers=(4,)),
        Tensor(name="e", bytes=5, producer=4, output=True),
    )
    return OpGraph("diamond", ops, tensors)


def test_figures_of_a_graph_counted_by_hand() -> None:
    graph = diamond()
    figures = workloads.of_problem("diamond", graph, lower(graph, "atlas_800i_a2"))
    busy = {"ai_core": 12_000, "vector_core": 3_000, "ai_cpu": 0, "dvpp": 0, "hccl": 0}
    assert figures == Figures(
        workload="diamond",
        graph_ops=5,
        ops=4,
        flops=37,
        moved_bytes=128 + (10 + 20) + 1 + (20 + 30 + 5),
        critical_path_ns=5000 + 1000 + 7000 + 1000 + 1000,
        busy_ns=busy,
        width=2,
    )


@pytest.mark.usefixtures("small")
def test_a_workload_that_fails_does_not_stop_the_list() -> None:
    listed = workloads.listing("atlas_800i_a2")
    assert [row.workload for row in listed] == list(SMALL)
    fine, pathless, unknown, defect = listed
    assert fine.ops == 12
    assert not fine.why
    assert pathless == Figures("pathless", why="workload.path has no value; give it as workload.path=VALUE")
    assert "'nowhere' is not known" in unknown.why
    assert defect.why == "ZeroDivisionError: integer division or modulo by zero"


def test_configs_that_cannot_be_read_together_are_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(group: str) -> dict[str, Any]:
        raise ValueError(group)

    monkeypatch.setattr(workloads, "load_all", broken)
    monkeypatch.setattr(workloads, "options", lambda group: ["light_squeezenet"])
    (row,) = workloads.listing("h200")
    assert row.graph_ops == 66


def test_an_unknown_device_is_said() -> None:
    with pytest.raises(OptionError, match="device 'abacus' is not known"):
        workloads.listing("abacus")


@pytest.mark.usefixtures("small")
def test_csv_holds_plain_units_and_the_reason() -> None:
    listed = workloads.listing("atlas_800i_a2")
    rows = list(csv.DictReader(io.StringIO(workloads.as_csv(listed))))
    fine = listed[0]
    assert int(rows[0]["flops"]) == fine.flops
    assert int(rows[0]["moved_bytes"]) == fine.moved_bytes
    assert int(rows[0]["critical_path_ns"]) == fine.critical_path_ns
    assert {e: int(rows[0][f"{e}_ns"]) for e in fine.busy_ns} == fine.busy_ns
    assert rows[0]["why"] == ""
    assert {rows[1][name] for name in rows[1] if name not in ("workload", "why")} == {""}
    assert rows[1]["why"] == listed[1].why


def test_markdown_is_for_readers() -> None:
    row = Figures("net", 12_345, 2, 3_400_000_000, 3 * 2**20, 1_234_567, {"cube": 2_000_000, "idle": 0}, 7)
    lines = workloads.as_markdown([row, Figures("none", why="no path")]).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[:4]]
    assert cells[0] == ["workload", "ops in graph", "ops", "GFLOP", "moved, MiB", "critical path, ms",
                        "widest antichain", "cube, ms"]  # fmt: skip
    assert cells[2] == ["net", "12,345", "2", "3.40", "3.0", "1.235", "7", "2.000"]
    assert cells[3] == ["none", *["-"] * 7]
    assert lines[4:] == ["", "- none: no path"]


@pytest.mark.usefixtures("small")
def test_the_terminal_shows_every_workload() -> None:
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(workloads.as_table(workloads.listing("atlas_800i_a2")))
    shown = console.export_text()
    assert all(name in shown for name in (*SMALL, "widest antichain", "hccl, ms"))


def test_all_configs_at_once_are_those_read_one_by_one() -> None:
    everything = load_all("device")
    assert list(everything) == options("device")
    assert all(everything[name] == load("device", name) for name in options("device"))
    assert all(device_from(values).name for values in everything.values())


def test_every_shipped_workload_is_listed() -> None:
    listed = workloads.listing("atlas_800i_a2")
    assert [row.workload for row in listed] == options("workload")
    assert {row.workload for row in listed if row.why} == {"file", "pipedream"}
    for row in listed:
        if not row.why:
            one_stream = sum(row.busy_ns.values()) + 1000 * (row.ops - 1)
            assert one_stream / row.width <= row.critical_path_ns + 1000 <= one_stream + 1000, row.workload
