from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas
import pytest

from msched.report import table
from msched.report.rows import rows
from msched.study.records import Record

Make = Callable[..., Record]


@pytest.fixture
def sweep(record: Make) -> list[Record]:
    return [
        record("single", 2_000_000, 1_000_000, waits=0),
        record("heft", 1_250_000, 1_000_000),
        record("ge", 1_600_000, 1_000_000),
        record("cpsat", 1_100_000, 1_100_000, exact=True, status="optimal"),
        record("heft", None, workload="lost", state="failed"),
    ]


def test_cells(sweep: list[Record]) -> None:
    frame = table.main_table(rows(sweep), timings=True)
    assert list(frame["solver"]) == ["heft", "single", "ge", "heft", "cpsat"]
    assert list(frame["status"]) == ["failed", "feasible", "feasible", "feasible", "optimal"]
    heft = frame.iloc[3]
    assert heft["makespan_ns"] == 1_250_000
    assert heft["speed_up"] == 1.6
    assert heft["bound_ns"] == 1_100_000
    assert heft["gap"] == pytest.approx(150 / 1100)
    assert (heft["streams"], heft["waits"], heft["fences"], heft["peak_bytes"]) == (2, 3, 1, 2**20)
    assert heft["solve_seconds"] == 0.25
    assert pandas.isna(frame.iloc[0]["makespan_ns"])
    assert frame.iloc[0]["reason"] == "no such file"
    assert str(frame["makespan_ns"].dtype) == "Int64"
    assert "variant" not in frame


def test_best_heuristic_beside_the_exact_solver(sweep: list[Record]) -> None:
    frame = table.side_by_side(rows(sweep))
    assert len(frame) == 1
    pair = frame.iloc[0]
    assert (pair["best_heuristic"], pair["heuristic_ns"]) == ("heft", 1_250_000)
    assert (pair["exact_solver"], pair["exact_ns"], pair["status"]) == ("cpsat", 1_100_000, "optimal")
    assert pair["single_ns"] == 2_000_000
    # 1.10 ms instead of 1.25 ms.
    assert pair["gain"] == pytest.approx(0.12)


def test_ties_go_by_the_objective(record: Make) -> None:
    found = [record("a", 800, peak_bytes=200), record("b", 800, peak_bytes=100), record("c", 900, peak_bytes=50)]
    assert table.side_by_side(rows(found)).iloc[0]["best_heuristic"] == "b"
    for made in found:
        made.config["objective"] = {"order": ["peak_bytes", "makespan_ns"]}
    assert table.side_by_side(rows(found)).iloc[0]["best_heuristic"] == "c"


def test_pairs_compare_by_the_first_figure_of_the_objective(record: Make) -> None:
    memory = {"order": ["peak_bytes", "makespan_ns"]}
    found = [
        record("a", 800, peak_bytes=400, objective=memory),
        record("b", 900, peak_bytes=300, objective=memory),
        record("cpsat", 1000, peak_bytes=240, objective=memory, exact=True),
    ]
    pair = table.side_by_side(rows(found)).iloc[0]
    assert (pair["best_heuristic"], pair["heuristic_peak_bytes"], pair["exact_peak_bytes"]) == ("b", 300, 240)
    assert pair["gain"] == pytest.approx(60 / 300)
    for made in found:
        made.config["objective"] = {"order": ["waits", "makespan_ns"]}
    pair = table.side_by_side(rows(found)).iloc[0]
    assert (pair["best_heuristic"], pair["heuristic_waits"], pair["exact_waits"], pair["gain"]) == ("a", 3, 3, 0)
    assert "heuristic_peak_bytes" not in pair


def test_each_objective_has_a_pair_of_its_own(record: Make) -> None:
    orders = {"makespan": ["makespan_ns", "peak_bytes"], "memory": ["peak_bytes", "makespan_ns"]}
    found = [
        record(solver, makespan, peak_bytes=peak, objective={"order": order}, objective_name=name)
        for name, order in orders.items()
        for solver, makespan, peak in (("fast", 800, 400), ("small", 900, 300))
    ]
    frame = table.side_by_side(rows(found))
    assert dict(zip(frame["variant"], frame["best_heuristic"], strict=True)) == {
        "objective=makespan": "fast", "objective=memory": "small",
    }  # fmt: skip


def test_warnings_stand_in_the_table_and_below_it(record: Make, tmp_path: Path) -> None:
    one, two, three = record("a"), record("b"), record("c")
    one.warnings = ["assumed: x", "the solve took 99.0 s; its limit was 1 s"]
    two.warnings = ["assumed: y", "assumed: x"]
    frame = table.main_table(rows([one, two, three]), timings=False)
    assert frame["warnings"].tolist() == ["assumed: x", "assumed: y | assumed: x", ""]
    assert table.readable(frame)["warnings"].tolist() == ["1", "2, 1", ""]
    _, _, markdown, latex = table.write(frame, tmp_path / "table", "All.")
    assert markdown.read_text().endswith("|\n\nWarnings:\n\n1. assumed: x\n2. assumed: y\n")
    assert "All. Warning 1: assumed: x. Warning 2: assumed: y." in latex.read_text()
    assert "99.0 s" in table.main_table(rows([one]), timings=True)["warnings"].iloc[0]
    assert "warnings" not in table.main_table(rows([three]), timings=True)


def test_pair_without_an_exact_solver_or_a_valid_plan(record: Make) -> None:
    pair = table.side_by_side(rows([record("heft", 800, status="invalid")])).iloc[0]
    assert (pair["best_heuristic"], pair["exact_solver"], pair["status"]) == ("", "", "")
    assert pandas.isna(pair["gain"])


def test_readable_figures(sweep: list[Record]) -> None:
    shown = table.readable(table.main_table(rows(sweep), timings=True))
    assert shown.iloc[3].to_dict() == {
        "workload": "net", "device": "chip", "solver": "heft", "ops": "5", "makespan, ms": "1.250", "speed-up": "1.60",
        "bound, ms": "1.100", "gap": "13.64%", "streams": "2", "waits": "3", "fences": "1", "peak, MiB": "1.0",
        "solve, s": "0.25", "status": "feasible", "reason": "",
    }  # fmt: skip
    assert shown.iloc[4]["gap"] == "0"
    assert shown.iloc[0]["speed-up"] == ""


def test_files_say_the_same(sweep: list[Record], tmp_path: Path) -> None:
    frame = table.main_table(rows(sweep), timings=False)
    csv, parquet, markdown, latex = table.write(frame, tmp_path / "new" / "table", "All of 100 %")
    kept = pandas.read_parquet(parquet)
    pandas.testing.assert_frame_equal(kept, frame)
    plain = pandas.read_csv(csv)
    assert list(plain.columns) == list(frame.columns)
    assert plain["makespan_ns"].dropna().tolist() == [2_000_000, 1_600_000, 1_250_000, 1_100_000]
    lines = markdown.read_text().splitlines()
    assert len(lines) == 2 + 5
    assert len({line.count("|") for line in lines}) == 1
    text = latex.read_text()
    assert r"\toprule" in text
    assert r"All of 100 \%" in text
    assert r"13.64\%" in text
    assert "solve_seconds" not in plain
    assert "solve, s" not in csv.read_text() + markdown.read_text() + text


def test_latex_takes_any_name(record: Make, tmp_path: Path) -> None:
    frame = table.main_table(rows([record("a_b&c%d#e$f{g}~h^i\\j")]), timings=False)
    text = table.write(frame, tmp_path / "table", "x")[3].read_text()
    assert r"a\_b\&c\%d\#e\$f\{g\}\textasciitilde{}h\textasciicircum{}i\textbackslash{}j" in text


def test_a_bar_in_a_name_does_not_break_the_markdown(record: Make) -> None:
    text = table.markdown(table.main_table(rows([record("a|b")]), timings=False))
    assert r"| a\|b " in text


def test_bytes_do_not_depend_on_the_order_or_the_times(sweep: list[Record], tmp_path: Path) -> None:
    files = []
    for place, found in (("one", sweep), ("two", sweep[::-1])):
        for made in found:
            made.seconds = {"solve": len(files) + 0.5}
        written = table.write(table.main_table(rows(found), timings=False), tmp_path / place / "table", "x")
        files.append([path.read_bytes() for path in written])
    assert files[0] == files[1]
