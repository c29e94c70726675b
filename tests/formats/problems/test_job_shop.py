"""Job shops: hand-made ones, whose optimum is worked out beside them."""

from __future__ import annotations

import re

import pytest

from msched.errors import FormatError
from msched.formats.problems.job_shop import parse, recognises
from tests.formats.problems.optimum import optimum

# Machine 1 holds 3 of job 0 behind 2 on machine 0, and 4 of job 1 at once. Job 1 first: 0-4 on machine 1, 4-5 on
# machine 0; job 0: 0-2, then machine 1 from 4 to 7. Job 0 first: 2-5, then 5-9 and 9-10. The best is 7, which machine 1
# alone needs.
SMALL = b"# two jobs\n2 2\n 0 2  1 3\n 1 4  0 1\n"


def test_a_small_job_shop() -> None:
    problem = parse(SMALL, "small", None)
    assert problem.op_names == ("job0.op0", "job0.op1", "job1.op0", "job1.op1")
    assert problem.engine_names == ("machine0", "machine1")
    assert problem.duration.tolist() == [2, 3, 4, 1]
    assert problem.engine.tolist() == [0, 1, 1, 0]
    assert problem.demand.tolist() == [[1, 0], [0, 1], [0, 1], [1, 0]]
    assert problem.capacity.tolist() == [1, 1]
    assert problem.edges.tolist() == [[0, 1], [2, 3]]
    assert optimum(problem) == 7


def test_streams_limit_what_runs_at_once() -> None:
    assert optimum(parse(SMALL, "small", 1)) == 2 + 3 + 4 + 1


def test_a_machine_may_be_visited_again() -> None:
    assert optimum(parse(b"1 3\n0 2 1 3 0 4\n", "again", None)) == 9


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2 2\n0 20000 1 30000\n", "ends at line 2, where job 1 of 2, counted from 0 should follow"),
        ("2 2\n0 2 1 3\n0 2 1\n", "line 3: job 1 has 3 figures where 4 are needed"),
        ("2 2\n0 2 1 3\n0 2 2 3\n", "line 3: there is no machine 2; they are 0 to 1, counted from 0"),
        ("2 2\n0 2 1 3\n0 2 1 -3\n", "line 3: '-3' is negative"),
        ("2 2\n0 2 1 3\n0 2 1 x\n", "line 3: 'x' is not a whole number"),
        ("1 2\n0 2 1 3\n0 2 1 3\n", "line 3: more figures behind job 0"),
        ("2 0\n\n", "line 1: the number of jobs and of machines is needed, at least one of each"),
        ("1 2 3\n0 2 1 3\n", "line 1: the number of jobs and of machines is needed"),
        ("99999 99999\n0 2 1 3\n", "line 1: 99999 jobs on 99999 machines take at least 19999600002 figures"),
        (f"1 9000\n{'0 1 ' * 9000}\n", "line 1: 9000 ops and alternatives on 9000 engines are more than can be read"),
    ],
)
def test_broken_files_are_refused_with_the_line(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=re.escape(message)):
        parse(text.encode(), "broken", None)


def test_the_second_line_tells_the_format() -> None:
    assert recognises(SMALL)
    assert recognises(b"2 2\n0 2 1 -3\n")
    assert not recognises(b"2 2\n0 2\n")
