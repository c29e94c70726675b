"""Finding the format of a problem file, and what happens to files that are of none."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

import msched
from msched.errors import FormatError, OptionError
from msched.formats.problems import problem_formats, read_problem
from tests.formats.problems import test_flexible_job_shop, test_job_shop, test_patterson, test_psplib
from tests.formats.problems import test_task_graph_set as test_stg

FILES = {
    "flexible_job_shop": test_flexible_job_shop.SMALL,
    "job_shop": test_job_shop.SMALL,
    "patterson": test_patterson.SMALL.encode(),
    "psplib": test_psplib.SMALL.encode(),
    "task_graph_set": test_stg.SMALL,
}
# Two lines, each a job shop's (machine 1, 1 ns; machine 0, 1 ns) and a flexible job shop's (one operation, which takes
# 1 ns on machine 0): but there is no machine 0 in the latter, which is not for the first look to see.
EITHER = b"2 2\n1 1 0 1\n1 1 0 1\n"


def written(folder: Path, content: bytes, name: str = "file.txt") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def test_every_format_has_a_file_here() -> None:
    assert list(problem_formats()) == sorted(FILES)


@pytest.mark.parametrize("format_name", sorted(FILES))
def test_the_content_decides_whatever_the_name(tmp_path: Path, format_name: str) -> None:
    content = FILES[format_name]
    assert [name for name, module in problem_formats().items() if module.recognises(content)] == [format_name]
    expected = problem_formats()[format_name].parse(content, "small", 2)
    assert msched.read_problem(written(tmp_path, content, "small.onnx"), 2) == expected
    packed = written(tmp_path, gzip.compress(content), "small.rcp.gz")
    assert read_problem(str(packed), streams=2) == expected
    assert read_problem(packed, 2, format_name=format_name) == expected


@pytest.mark.parametrize("format_name", sorted(FILES))
def test_windows_line_ends_and_a_byte_order_mark_change_nothing(tmp_path: Path, format_name: str) -> None:
    content = FILES[format_name]
    windows = written(tmp_path, b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n"), "small.txt")
    assert read_problem(windows, 2) == problem_formats()[format_name].parse(content, "small", 2)


def test_two_formats_may_claim_a_file(tmp_path: Path) -> None:
    path = written(tmp_path, EITHER)
    with pytest.raises(FormatError, match="may be flexible_job_shop or job_shop; say which with format_name="):
        read_problem(path)
    assert read_problem(path, format_name="job_shop").engine.tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\x00\x01\x02", "is of no known format; looked for: .*networks are read by msched.read"),
        (b"hello world\n1 2\n", "is of no known format"),
        (b"# nothing but a comment\n", "is of no known format"),
        (b"3 4\n", "is of no known format"),
        (b"0 2\n1 1\n", "line 1: 0 jobs; at least one is needed"),
        (b"9" * 5000 + b" 2\n1 1\n", "is of no known format"),
        (b"2 2\n1 1\n0 0 0 1 " + b"9" * 5000, "line 3: '9{40}...' is too large"),
        (b"9" * 5000, "line 1: '9{40}...' is too large"),
        (b"1 2 3 4\n1 2 3 4\n", "is of no known format"),
        (b"50\n", "line 1: 50 tasks and two dummies take at least 156 figures, more than the 3 characters"),
        (
            b"3 1\n1\n0 0 0\n",
            "line 1: 3 jobs with 1 resources take at least 10 figures, .* is wrong or the file is cut",
        ),
        (b"2 2\n9 9\n" + b"999999999999999999 1 0 0\n" * 2, "add up to 2\\^60 or more"),
    ],
)
def test_what_is_no_problem_is_refused_in_one_line_with_its_name(tmp_path: Path, content: bytes, message: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(FormatError, match=f"^{re.escape(str(path))}: .*({message})") as caught:
        read_problem(path, 2)
    assert "\n" not in str(caught.value)


def test_a_problem_is_no_network(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"problems are read by msched\.read_problem"):
        msched.read(written(tmp_path, FILES["job_shop"]))


def test_no_file_at_all(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="there is no such file"):
        read_problem(tmp_path / "none.rcp")
    with pytest.raises(OptionError, match="path is 3; the path of a file is needed"):
        read_problem(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("streams", [0, -1, True, 2.0, "2"])
def test_streams_are_a_whole_number(tmp_path: Path, streams: object) -> None:
    with pytest.raises(OptionError, match=f"streams is {streams!r}; a whole number of at least 1"):
        read_problem(written(tmp_path, FILES["job_shop"]), streams)  # type: ignore[arg-type]


def test_options_are_refused_with_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, FILES["task_graph_set"])
    with pytest.raises(OptionError, match=f"^{re.escape(str(path))}: a task graph .* give their number as streams="):
        read_problem(path)
    with pytest.raises(OptionError, match="format_name 'stg' is not known; there are: flexible_job_shop, job_shop"):
        read_problem(path, 2, format_name="stg")
