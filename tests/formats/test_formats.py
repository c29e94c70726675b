"""Finding the format of a file, and what happens to files that are of none."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from msched import formats
from msched.errors import FormatError, OptionError
from msched.graph import Op, OpGraph

GRAPH = OpGraph("tiny", (Op(name="a", kind="Add"), Op(name="b", kind="Mul")), control=((0, 1),))
PROFILE = (
    "node1 -- Conv2d(3, 8) -- forward_compute_time=1.000, backward_compute_time=2.000, activation_size=4.000, "
    "parameter_size=8.000\n"
)


def test_every_module_that_recognises_files_is_a_format() -> None:
    assert list(formats.formats()) == sorted(formats.formats())
    assert {"native", "onnx", "pipedream"} <= set(formats.formats())


@pytest.mark.parametrize("name", ["graph.json", "graph.onnx", "graph", "graph.txt.gz"])
def test_the_content_decides_whatever_the_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(GRAPH.to_json())
    assert formats.read(path) == GRAPH
    assert formats.read(str(path)) == GRAPH


def test_gzip_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "profile.graph.txt.gz"
    path.write_bytes(gzip.compress(PROFILE.encode()))
    graph = formats.read(path)
    assert graph.name == "profile"
    assert [op.kind for op in graph.ops] == ["Conv2d"]


# the time in the head of a gzip file would be part of the name of a test, and differ between its workers
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\x00\x01\x02\x03", "is of no known format; looked for: .*ONNX.*PipeDream"),
        (b"hello world", "is of no known format"),
        (b'{"schema": "other/1"}', "is of no known format"),
        (bytes(range(256)) * 300, "is of no known format"),
        (gzip.compress(b"", mtime=0), "is empty"),
        (gzip.compress(GRAPH.to_json(), mtime=0)[:-12], "is gzip, but cannot be unpacked"),
        (b"\x1f\x8b rubbish", "is gzip, but cannot be unpacked"),
        (gzip.compress(GRAPH.to_json(), mtime=0)[:-8] + b"\0" * 8, "is gzip, but cannot be unpacked"),
        (gzip.compress(gzip.compress(GRAPH.to_json(), mtime=0), mtime=0), "is of no known format"),
        (GRAPH.to_json()[:-3], "not a graph of schema msched.graph/1"),
        (b'{"schema":"msched.graph/9","name":"g","ops":[]}', "schema 'msched.graph/9' is not known here"),
        (PROFILE.encode()[:-9], "line 1: neither a layer nor an edge"),
    ],
)
def test_broken_files_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "broken.bin"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=f"broken.bin: .*{message}"):
        formats.read(path)


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"absent\.onnx: there is no such file"):
        formats.read(tmp_path / "absent.onnx")
    with pytest.raises(FormatError, match="is a directory; give the path of one file"):
        formats.read(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FormatError, match="is no regular file"):
        formats.read(tmp_path / "pipe")
    with pytest.raises(FormatError, match=r"there is no such file|cannot be read"):
        formats.read("a\0b")
    with pytest.raises(OptionError, match="path is 5; the path of a file is needed"):
        formats.read(5)  # type: ignore[arg-type]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "secret.onnx"
    path.write_bytes(GRAPH.to_json())
    path.chmod(0)
    with pytest.raises(FormatError, match=r"cannot be read: .*Permission denied"):
        formats.read(path)


def test_files_that_are_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "large.json"
    path.write_bytes(GRAPH.to_json())
    size = len(GRAPH.to_json())
    monkeypatch.setattr(formats.formats()["native"], "LARGEST_BYTES", size)
    assert formats.read(path) == GRAPH
    monkeypatch.setattr(formats.formats()["native"], "LARGEST_BYTES", size - 1)
    with pytest.raises(FormatError, match=f"holds more than {size - 1} bytes, the most that is read of a graph JSON"):
        formats.read(path)


def test_a_gzip_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.txt.gz"
    path.write_bytes(gzip.compress(PROFILE.encode() + b"\n" * 2**22))
    monkeypatch.setattr(formats, "LARGEST_UNPACKED_BYTES", 2**20)
    with pytest.raises(FormatError, match="holds more than 1048576 bytes"):
        formats.read(path)


def test_the_format_can_be_said(tmp_path: Path) -> None:
    path = tmp_path / "profile.txt"
    path.write_text("\n\n")  # no layer that would tell the format
    with pytest.raises(FormatError, match="is of no known format"):
        formats.read(path)
    assert formats.read(path, format_name="pipedream").ops == ()
    with pytest.raises(FormatError, match="not a graph of schema"):
        formats.read(path, format_name="native")
    with pytest.raises(OptionError, match=r"format_name 'word' is not known; there are: .*native.*onnx"):
        formats.read(path, format_name="word")


def test_a_file_that_two_formats_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "graph.json"
    path.write_bytes(GRAPH.to_json())
    monkeypatch.setattr(formats.formats()["pipedream"], "recognises", lambda head: True)
    with pytest.raises(FormatError, match="may be native or pipedream; say which with format_name="):
        formats.read(path)
    assert formats.read(path, format_name="native") == GRAPH


def test_parameters_that_a_reader_does_not_have(tmp_path: Path) -> None:
    path = tmp_path / "profile.txt"
    path.write_text(PROFILE)
    with pytest.raises(OptionError, match="a PipeDream profile has no parameter dimensions; it takes: training"):
        formats.read(path, dimensions={"N": 1})
    path.write_bytes(GRAPH.to_json())
    with pytest.raises(OptionError, match="has no parameter training; it takes: none"):
        formats.read(path, training=True)


def test_a_graph_that_breaks_its_contract_names_its_file(tmp_path: Path) -> None:
    path = tmp_path / "loop.txt"
    path.write_text(PROFILE + "\tnode1 -- node1\n")
    with pytest.raises(FormatError, match=r"loop\.txt: the graph has a cycle: node1 -> node1"):
        formats.read(path)
