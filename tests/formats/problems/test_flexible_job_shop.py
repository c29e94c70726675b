"""Flexible job shops: hand-made ones, whose optimum is worked out beside them."""

from __future__ import annotations

import re

import pytest

from msched.errors import FormatError
from msched.formats.problems.flexible_job_shop import parse, recognises
from tests.formats.problems.optimum import optimum

# Job 0: 3 ns on machine 1 or 5 on machine 2, then 2 on machine 2. Job 1: 4 on either. Job 1 on machine 2 from 0 to 4:
# job 0 takes machine 1 until 3, and machine 2 from 4 to 6. Job 1 on machine 1: 4 + 3 there, or 5 + 2 = 7 on machine 2.
SMALL = b"2 2 1.5\n2 2 1 3 2 5 1 2 2\n1 2 1 4 2 4\n\t\n"


def test_a_small_flexible_job_shop() -> None:
    problem = parse(SMALL, "small", None)
    assert problem.op_names == ("job0.op0", "job0.op1", "job1.op0")
    assert problem.engine_names == ("machine1", "machine2")
    assert problem.duration.tolist() == [3, 2, 4]
    assert problem.demand.tolist() == [[1, 0], [0, 1], [1, 0]]
    assert problem.capacity.tolist() == [1, 1]
    assert problem.mode_op.tolist() == [0, 2]
    assert problem.mode_duration.tolist() == [5, 4]
    assert problem.mode_demand.tolist() == [[0, 1], [0, 1]]
    assert problem.edges.tolist() == [[0, 1]]
    assert optimum(problem) == 6


def test_the_mean_number_of_alternatives_may_be_missing() -> None:
    assert parse(SMALL.replace(b" 1.5", b""), "small", 2) == parse(SMALL, "small", 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2 2 1\n1 1 1 30000000\n", "ends at line 2, where job 1 of 2, counted from 0 should follow"),
        ("1 2 1\n2 1 1 3\n", "line 2: job 0 announces 2 operations, and its line holds 1 and 0 more figures"),
        ("1 2 1\n1 1 1 3 1 1 3\n", "line 2: job 0 announces 1 operations, and its line holds 1 and 3 more figures"),
        ("1 2 1\n0\n", "line 2: job 0 announces 0 operations"),
        ("1 2 1\n1 2 1 3 2\n", "line 2: operation 0 of job 0 announces 2 alternatives, and 3 figures follow"),
        ("1 2 1\n1 0\n", "line 2: operation 0 of job 0 announces 0 alternatives"),
        ("1 2 1\n1 1 3 3\n", "line 2: there is no machine 3; they are 1 to 2, counted from 1"),
        ("1 2 1\n1 1 0 3\n", "line 2: there is no machine 0; they are 1 to 2, counted from 1"),
        ("1 2 1\n1 1 1 -3\n", "line 2: '-3' is negative"),
        ("1 2 1\n1 1 1 3\n1 1 1 3\n", "line 3: more figures behind job 0"),
        ("1 2 x\n1 1 1 3\n", "line 1: the number of jobs and of machines is needed"),
        ("0 2 1\n1 1 1 3\n", "line 1: the number of jobs and of machines is needed"),
        ("99999999 2 1\n1 1 1 3\n", "line 1: 99999999 jobs take at least 399999996 figures"),
        ("1 99999999 1\n1 1 1 3\n", "line 1: 99999999 ops and alternatives on 99999999 engines are more"),
        (f"1 4000 1\n5000 {'1 1 3 ' * 5000}\n", "line 2: 5000 ops and alternatives on 4000 engines are more"),
    ],
)
def test_broken_files_are_refused_with_the_line(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=re.escape(message)):
        parse(text.encode(), "broken", None)


def test_the_lines_tell_the_format() -> None:
    assert recognises(SMALL)
    assert recognises(SMALL.replace(b" 1.5", b""))
    assert not recognises(b"2 2\n2 1 1 3\n1 1 1 3\n")
