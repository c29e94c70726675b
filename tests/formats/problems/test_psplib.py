"""PSPLIB projects of one mode and of several: hand-made ones, whose optimum is worked out beside them."""

from __future__ import annotations

import re

import pytest

from msched.errors import FormatError
from msched.formats.problems.psplib import parse, recognises
from tests.formats.problems.optimum import optimum

RULE = "*" * 72 + "\n"
# Job 2: 4 ns on one unit or 2 ns on both; job 3: 3 ns on one unit; two units in all. Side by side they take 4, one
# after the other 2 + 3 = 5. The nonrenewable resource covers 6 + 1.
SMALL = f"""{RULE}file with basedata            : small.bas
initial value random generator: 1
{RULE}projects                      :  1
jobs (incl. supersource/sink ):  4
horizon                       :  7
RESOURCES
  - renewable                 :  1   R
  - nonrenewable              :  1   N
  - doubly constrained        :  0   D
{RULE}PROJECT INFORMATION:
pronr.  #jobs rel.date duedate tardcost  MPM-Time
    1      2      0        4        0        4
{RULE}PRECEDENCE RELATIONS:
jobnr.    #modes  #successors   successors
   1        1          2           2   3
   2        2          1           4
   3        1          1           4
   4        1          0
{RULE}REQUESTS/DURATIONS:
jobnr. mode duration  R 1  N 1
------------------------------------------------------------------------
  1      1     0       0    0
  2      1     4       1    2
         2     2       2    6
  3      1     3       1    1
  4      1     0       0    0
{RULE}RESOURCEAVAILABILITIES:
  R 1  N 1
    2    7
{RULE}"""
# The same with its own numbers before every mode, tabs, and the availabilities' heading in two words, as MMLIB has it.
OTHER = (
    SMALL.replace("         2     2       2    6", "2\t2\t2\t2\t6")
    .replace("jobs (incl.", "jobs  (incl.")
    .replace("RESOURCEAVAIL", "RESOURCE AVAIL")
)
ONE_MODE = (
    SMALL.replace("  - nonrenewable              :  1   N", "  - nonrenewable              :  0   N")
    .replace("2        2          1", "2        1          1")
    .replace("         2     2       2    6\n", "")
    .replace("R 1  N 1", "R 1")
    .replace("    2    7\n", "    1\n")
    .replace("0       0    0", "0       0")
    .replace("4       1    2", "4       1")
    .replace("3       1    1", "3       1")
)


def test_modes_and_a_nonrenewable_resource_that_never_binds() -> None:
    problem = parse(SMALL.encode(), "small", None)
    assert problem.op_names == ("job2", "job3")
    assert problem.duration.tolist() == [4, 3]
    assert problem.demand.tolist() == [[1], [1]]
    assert problem.capacity.tolist() == [2]
    assert problem.mode_op.tolist() == [0]
    assert problem.mode_duration.tolist() == [2]
    assert problem.mode_demand.tolist() == [[2]]
    assert problem.edges.tolist() == []
    assert optimum(problem) == 4
    assert parse(OTHER.encode(), "small", None) == problem


def test_one_mode() -> None:
    problem = parse(ONE_MODE.encode(), "small", None)
    assert problem.duration.tolist() == [4, 3]
    assert problem.mode_op.size == 0
    assert optimum(problem) == 7  # one unit: one after the other


def test_a_nonrenewable_resource_that_may_bind_is_refused() -> None:
    message = "nonrenewable resource N 1 has 6 units and the jobs may need 7; a problem has renewable resources only"
    with pytest.raises(FormatError, match=re.escape(f"line 35: {message}")):
        parse(SMALL.replace("    2    7\n", "    2    6\n").encode(), "small", None)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("jobs (incl. supersource/sink ):  4\n", "", "line 16: the number of jobs is not given above this line"),
        ("- renewable     ", "- renewed       ", "line 17: the number of renewable is not given above this line"),
        (":  4\n", ":  -4\n", "line 6: '-4' is negative"),
        (":  4\n", ":  0\n", "line 17: 0 jobs; at least one is needed"),
        (":  4\n", ":  123456789\n", "line 17: 123456789 jobs with 2 resources take at least 987654312 figures"),
        ("projects                      :  1", "projects :  2", "line 17: one project without doubly constrained"),
        ("constrained        :  0", "constrained        :  1", "line 17: one project without doubly constrained"),
        ("    1      2      0  ", "    1      2      5  ", "line 15: the project is released at 5"),
        ("   3        1          1           4\n", "", "line 21: the row of job 3 is needed"),
        ("   3        1          1           4", "   3        1          2           4", "line 21: the row of job 3"),
        ("   3        1          1           4", "   3        0          1           4", "line 21: the row of job 3"),
        ("   3        1          1           4", "   3        1          1           5", "line 21: there is no job 5"),
        (
            "   3        1          1           4",
            "   3        1          1           1",
            "wait for each other in a circl",
        ),
        ("   2        2   ", "   2   88888888   ", "take at least 355555564 figures"),
        ("         2     2       2    6\n", "", "line 29: mode 2 of job 2 is needed: its number, its duration and the"),
        ("  3      1     3       1    1", "  3      1     3       1", "line 30: mode 1 of job 3 is needed"),
        (
            "  3      1     3       1    1",
            "  3      1     3       5    1",
            "line 30: job 3 needs 5 units of resource 1",
        ),
        ("    2    7\n", "    2\n", "line 35: 1 capacities for 2 resources; one each is needed"),
        ("REQUESTS/DURATIONS:", "REQUESTS:", "line 24: 'REQUESTS:' stands where 'REQUESTS/DURATIONS:' should follow"),
        ("    2    7\n", "", "ends at line 35, where the capacity of each resource should follow"),
    ],
)
def test_broken_files_are_refused_with_the_line(old: str, new: str, message: str) -> None:
    assert old in SMALL
    with pytest.raises(FormatError, match=re.escape(message)):
        parse(SMALL.replace(old, new).encode(), "broken", None)


def test_every_shortened_file_is_refused() -> None:
    lines = SMALL.splitlines(keepends=True)
    for count in range(1, len(lines) - 1):
        with pytest.raises(FormatError, match="line"):
            parse("".join(lines[:count]).encode(), "short", None)


def test_the_headings_tell_the_format() -> None:
    assert recognises(SMALL.encode())
    assert recognises(OTHER.encode())
    assert not recognises(b"jobs: 4")
