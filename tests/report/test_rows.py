from __future__ import annotations

from collections.abc import Callable

import pytest

from msched.errors import InternalError
from msched.report.rows import rows
from msched.study.records import Record

Make = Callable[..., Record]


def test_speed_up_and_gap_by_hand(record: Make) -> None:
    single, heft = rows([record("heft", 800, 500), record("single", 1200, 600)])
    assert single.record.names.solver == "single"
    # 1200 / 800, and 800 over the better of the two bounds, 600.
    assert heft.speed_up == 1.5
    assert heft.gap == pytest.approx(200 / 600)
    assert single.speed_up == 1


def test_bounds_stay_with_their_problem(record: Make) -> None:
    found = rows(
        [
            record("heft", 800, 500, problem="with 4 streams"),
            record("single", 1200, 700, problem="with 8 streams"),
        ]
    )
    heft = next(row for row in found if row.record.names.solver == "heft")
    assert heft.gap == pytest.approx(0.6)


def test_speed_up_is_over_the_shortest_single_stream_of_the_network_on_its_device(record: Make) -> None:
    heft, other = record("heft", 800, 500, problem="in 4 slices"), record("heft", 800, 500, problem="elsewhere")
    other.config = {**other.config, "device": {"name": "another"}}
    mode = record("blevel", 1100, 700, problem="one stream in 2 slices")
    mode.config = {**mode.config, "parallelism": "single_stream"}
    found = rows([heft, other, mode, record("single", 1200, 700, problem="whole")])
    assert {(row.record.names.solver, row.speed_up) for row in found if row.record is not other} == {
        ("heft", 1100 / 800), ("blevel", 1.0), ("single", 1100 / 1200),
    }  # fmt: skip
    assert next(row for row in found if row.record is other).speed_up is None


def test_status_follows_the_best_bound(record: Make) -> None:
    heft, cpsat = rows([record("heft", 800, 500), record("cpsat", 800, 800, status="optimal", exact=True)])
    assert (heft.status, cpsat.status) == ("optimal", "optimal")
    # What a record calls optimal is not, where no bound agrees.
    assert rows([record("heft", 800, 500, status="optimal")])[0].status == "feasible"


def test_makespan_below_the_bound_of_another_cell_stops_everything(record: Make) -> None:
    with pytest.raises(InternalError, match="799 ns is less than the bound of 800 ns"):
        rows([record("heft", 799, 500), record("cpsat", 900, 800)])


def test_invalid_plan_may_lie_below_the_bound_and_gets_no_figures(record: Make) -> None:
    row = next(
        row
        for row in rows([record("heft", 400, 500, status="invalid"), record("single", 1200, 800)])
        if row.record.names.solver == "heft"
    )
    assert (row.status, row.speed_up, row.gap, row.reason) == ("invalid", None, None, "over a limit")


def test_failed_and_infeasible_rows_say_why_in_one_line(record: Make) -> None:
    failed, infeasible = rows(
        [record("a", None, state="failed"), record("b", None, status="infeasible")],
    )
    assert (failed.status, failed.reason) == ("failed", "no such file")
    assert (infeasible.status, infeasible.reason) == ("infeasible", "over a limit")


def test_order_does_not_depend_on_the_order_of_records(record: Make) -> None:
    records = [
        record("cpsat", workload="b", exact=True), record("heft", workload="b"), record("single", workload="b"),
        record("ge", workload="b"), record("single", workload="a"),
    ]  # fmt: skip
    names = [(row.record.names.workload, row.record.names.solver) for row in rows(records)]
    assert names == [("a", "single"), ("b", "single"), ("b", "ge"), ("b", "heft"), ("b", "cpsat")]
    assert [row.record.cell for row in rows(records[::-1])] == [row.record.cell for row in rows(records)]
