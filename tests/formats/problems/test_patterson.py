"""Projects in Patterson's format: hand-made ones, whose optimum is worked out beside them."""

from __future__ import annotations

import re

import pytest

from msched.errors import FormatError
from msched.formats.problems.patterson import parse, recognises
from tests.formats.problems.optimum import optimum

# Job 2 (3 ns) and job 3 (2 ns) hold 2 of 3 units each and so exclude each other; job 4 (4 ns, 1 unit) follows job 3.
# Job 3 first: 2 + max(3, 4) = 6. Job 2 first: 3 + 2 + 4 = 9.
SMALL = """
5 1
3

0 0 2 2 3
3 2 1 5
2 2 1 4
4 1 1 5
0 0 0
"""


def test_a_small_project() -> None:
    problem = parse(SMALL.encode(), "small", None)
    assert problem.name == "small"
    assert problem.op_names == ("job2", "job3", "job4")
    assert problem.duration.tolist() == [3, 2, 4]
    assert problem.demand.tolist() == [[2], [2], [1]]
    assert problem.capacity.tolist() == [3]
    assert problem.edges.tolist() == [[1, 2]]
    assert problem.streams is None
    assert optimum(problem) == 6


def test_streams_limit_what_runs_at_once() -> None:
    assert optimum(parse(SMALL.encode(), "small", 1)) == 3 + 2 + 4


def test_the_figures_may_stand_on_any_lines() -> None:
    assert parse(" ".join(SMALL.split()).encode(), "small", 2) == parse(SMALL.encode(), "small", 2)


def test_ends_that_take_time_or_a_resource_are_no_dummies() -> None:
    # a chain: 1 ns, then 0 ns on the resource, which is no work but a need
    problem = parse(b"2 1\n1\n1 0 1 2\n0 1 0\n", "ends", None)
    assert problem.op_names == ("job1", "job2")
    assert problem.edges.tolist() == [[0, 1]]


def test_a_first_job_that_waits_is_kept_with_its_dependencies() -> None:
    # job 3 before job 1 before job 2, none of them at an end of the order but job 3 and job 2
    problem = parse(b"3 1\n1\n0 0 1 2\n5 1 0\n4 1 1 1\n", "middle", None)
    assert problem.op_names == ("job1", "job2", "job3")
    assert sorted(problem.edges.tolist()) == [[0, 1], [2, 0]]
    assert optimum(problem) == 9


def test_a_project_without_resources() -> None:
    problem = parse(b"3 0\n2 1 3\n3 0\n4 0\n", "free", None)
    assert recognises(b"3 0\n2 1 3\n3 0\n4 0\n")
    assert optimum(problem) == 6  # job 1, then job 3; job 2 beside them


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "5 1\n3\n0 0 2 2 3\n30000000 2 1 5\n",
            "ends at line 4, where job 3 of 5 should follow; the file is cut short",
        ),
        (SMALL.replace("4 1 1 5", "4 1 1 6"), "line 8: there is no job 6; they are 1 to 5"),
        (SMALL.replace("4 1 1 5", "4 1 1 0"), "line 8: there is no job 0; they are 1 to 5"),
        (SMALL.replace("3 2 1 5", "3 4 1 5"), "line 6: job 2 needs 4 units of resource 1, which has 3"),
        (SMALL.replace("3 2 1 5", "-3 2 1 5"), "line 6: '-3' is negative; figures are 0 or more"),
        (SMALL.replace("3 2 1 5", "3.5 2 1 5"), "line 6: '3.5' is not a whole number"),
        (SMALL.replace("3 2 1 5", "9999999999999999999 2 1 5"), "line 6: '9999999999999999999' is too large"),
        (SMALL.replace("4 1 1 5", "4 1 1 2"), "line 10: more figures behind job 5"),
        (SMALL.replace("3 2 1 5", "3 2 1 4").replace("4 1 1 5", "4 1 1 2"), "jobs wait for each other in a circle: "),
        ("900000000 4\n3 3 3 3\n", "line 1: 900000000 jobs with 4 resources take at least 5400000004 figures"),
        ("2 90000000\n3\n", "line 1: 2 jobs with 90000000 resources take at least 270000004 figures"),
        (SMALL.replace("2 2 3", "999999999 2 3"), "line 5: the successors of job 1 take at least 999999999 figures"),
        ("0 1\n1\n", "line 1: 0 jobs; at least one is needed"),
        ("1 1\n1\n\xff", "byte 6 is not UTF-8 text"),
    ],
)
def test_broken_files_are_refused_with_the_line(text: str, message: str) -> None:
    if "more figures" in message:
        text += "0 0 0\n"
    with pytest.raises(FormatError, match=re.escape(message)):
        parse(text.encode("latin-1"), "broken", None)


def test_a_circle_names_its_jobs_and_a_line() -> None:
    with pytest.raises(FormatError, match=r"^line [23]: jobs .* circle: (job1 -> job2 -> job1|job2 -> job1 -> job2)$"):
        parse(b"2 0\n1 1 2\n1 1 1\n", "circle", None)


def test_a_long_circle_is_named_in_part() -> None:
    ring = "\n".join(f"1 1 {job % 50 + 1}" for job in range(1, 51))
    with pytest.raises(FormatError, match=r"(job\d+ -> ){8}\.\.\.$"):
        parse(f"50 0\n{ring}\n".encode(), "circle", None)
