"""msched's own graph JSON as an input file."""

from __future__ import annotations

from pathlib import Path

import pytest

from msched.errors import FormatError
from msched.formats import read
from msched.formats.native import recognises
from msched.graph import Matmul, Op, OpGraph, Tensor


def test_a_written_graph_is_read_back_under_its_own_name(tmp_path: Path) -> None:
    graph = OpGraph(
        "mine",
        (Op(name="a", kind="MatMul", flops=48, matmul=Matmul(1, 2, 3, 4)), Op(name="b", kind="Add", duration_ns=7)),
        (Tensor(name="t", bytes=24, producer=0, consumers=(1,)),),
        warnings=("assumed",),
    )
    path = tmp_path / "other.json"
    path.write_bytes(graph.to_json())
    assert read(path) == graph


def test_a_document_with_its_keys_in_another_order_is_recognised() -> None:
    assert recognises(b'\n {"name": "g", "ops": [], "schema": "msched.graph/1"}')
    assert not recognises(b'{"schema": "msched.problem/1"}')
    assert not recognises(b'["msched.graph/1"]')


def test_a_recorded_stream_is_not_negative(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_bytes(OpGraph("g", (Op(name="a", kind="Add", stream=0), Op(name="b", kind="Add", stream=-5))).to_json())
    with pytest.raises(FormatError, match=r"graph\.json: op 'b': stream is -5; recorded streams count from 0"):
        read(path)
