"""Task graphs of the Standard Task Graph Set: hand-made ones, whose optimum is worked out beside them."""

from __future__ import annotations

import re

import pytest

from msched.errors import FormatError, OptionError
from msched.formats.problems.task_graph_set import parse, recognises
from tests.formats.problems.optimum import optimum

# Tasks of 3, 3, 2 and 2 ns, the last behind the first. On two processors 10 / 2 = 5 are needed, and 3 + 2 on the first
# with 3 + 2 on the second are enough; on one they take 10; the longest chain is 5.
SMALL = b"""   4
   0   0   0
   1   3   1   0
   2   3   1   0
   3   2   1   0
   4   2   1   1
   5   0   3   2   3   4
# Standard Task Graph Set Project
"""


def test_a_small_task_graph() -> None:
    problem = parse(SMALL, "small", 2)
    assert problem.op_names == ("task1", "task2", "task3", "task4")
    assert problem.duration.tolist() == [3, 3, 2, 2]
    assert problem.edges.tolist() == [[0, 3]]
    assert problem.streams == 2
    assert not problem.demand.any()
    assert [optimum(parse(SMALL, "small", streams)) for streams in (1, 2, 4)] == [10, 5, 5]


def test_processors_must_be_given() -> None:
    with pytest.raises(OptionError, match="says nothing of processors; give their number as streams="):
        parse(SMALL, "small", None)


def test_a_source_that_takes_time_is_kept() -> None:
    problem = parse(SMALL.replace(b"   0   0   0", b"   0   1   0"), "small", 2)
    assert problem.n == 5
    assert optimum(problem) == 6  # one more before everything


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("   4\n", "   5\n", "ends at line 8, where task 6 of 5 and two dummies, counted from 0 should follow"),
        ("   4\n", "   3\n", "line 7: more figures behind task 4"),
        ("   4\n", "   4 4\n", "line 1: 2 figures where the number of tasks alone is needed"),
        ("   4\n", "   88888888\n", "line 1: 88888888 tasks and two dummies take at least 266666670 figures"),
        ("   2   3   1   0", "   3   3   1   0", "line 4: the row of task 2 is needed"),
        ("   2   3   1   0", "   2   3   2   0", "line 4: the row of task 2 is needed"),
        ("   2   3   1   0", "   2   3", "line 4: the row of task 2 is needed"),
        ("   2   3   1   0", "   2   3   1   6", "line 4: there is no task 6; they are 0 to 5"),
        ("   2   3   1   0", "   2   -3   1   0", "line 4: '-3' is negative"),
        ("   1   3   1   0", "   1   3   1   4", "jobs wait for each other in a circle: task"),
        ("   1   3   1   0", "   1   3   1   1", "line 3: jobs wait for each other in a circle: task1 -> task1"),
    ],
)
def test_broken_files_are_refused_with_the_line(old: str, new: str, message: str) -> None:
    assert old in SMALL.decode()
    with pytest.raises(FormatError, match=re.escape(message)):
        parse(SMALL.replace(old.encode(), new.encode()), "broken", 2)


def test_a_figure_alone_in_the_first_line_tells_the_format() -> None:
    assert recognises(SMALL)
    assert not recognises(b"4 2\n0 0 0\n")
