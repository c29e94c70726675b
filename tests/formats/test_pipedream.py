"""PipeDream profiles: hand-made ones, whose figures are worked out beside them."""

from __future__ import annotations

import re

import pytest

from msched.errors import FormatError, OptionError
from msched.formats.pipedream import parse, recognises
from msched.graph import OpGraph


def row(node: int, layer: str, forward: str, backward: str, activation: str, weight: str) -> str:
    times = f"forward_compute_time={forward}, backward_compute_time={backward}"
    return f"node{node} -- {layer} -- {times}, activation_size={activation}, parameter_size={weight}\n"


# A diamond: an input, a convolution, two branches and the layer that joins them.
DIAMOND = (
    row(4, "Add(inplace)", "0.250", "0.125", "32.0", "0.000")
    + row(2, "Conv2d(3, 8, kernel_size=(3, 3))", "1.500", "2.500", "16.000", "40.000")
    + row(3, "ReLU()", "0.001", "0.002", "16.000", "0.000")
    + row(1, "Input", "9.000", "0.000", "100.000", "0.000")
    + row(5, "LSTM(16, 16)", "3.000", "6.000", "[8.0; 4.0; 4.0]", "64.000")
    + "\tnode1 -- node2\n\tnode3 -- node4\n\tnode2 -- node3\n\tnode2 -- node5\n\tnode5 -- node4"
)


def named_edges(graph: OpGraph) -> set[tuple[str, str]]:
    return {(graph.ops[u].name, graph.ops[v].name) for u, v in graph.edges.tolist()}


def test_the_forward_pass() -> None:
    graph = parse(DIAMOND.encode(), "diamond.graph")
    assert graph.name == "diamond"
    assert [op.name for op in graph.ops] == ["node4", "node2", "node3", "node1", "node5"]
    assert [op.kind for op in graph.ops] == ["Add", "Conv2d", "ReLU", "Input", "LSTM"]
    assert [op.duration_ns for op in graph.ops] == [250_000, 1_500_000, 1_000, 0, 3_000_000]
    # node4 reads 16 + 16; node2 the input's 100 and its 40 of weights; node5 16 and 64
    assert [op.bytes_read for op in graph.ops] == [32, 140, 16, 0, 80]
    assert [op.bytes_written for op in graph.ops] == [32, 16, 16, 100, 16]
    sizes = {t.name: (t.bytes, t.persistent, t.output) for t in graph.tensors}
    assert sizes == {
        "node4": (32, False, True),
        "node2": (16, False, False),
        "node2.weight": (40, True, False),
        "node3": (16, False, False),
        "node1": (100, False, False),
        "node5": (16, False, False),
        "node5.weight": (64, True, False),
    }
    assert named_edges(graph) == {
        ("node1", "node2"),
        ("node2", "node3"),
        ("node2", "node5"),
        ("node3", "node4"),
        ("node5", "node4"),
    }
    assert graph.warnings == ("the 9.000 ms of input node1 are data loading and count as 0",)


def test_training_mirrors_the_forward_pass() -> None:
    graph = parse(DIAMOND.encode(), "diamond", training=True)
    forward = named_edges(parse(DIAMOND.encode(), "diamond"))
    assert len(graph.ops) == 10
    mirrored = {(f"{v}.backward", f"{u}.backward") for u, v in forward}
    own = {(f"node{k}", f"node{k}.backward") for k in range(1, 6)}
    assert named_edges(graph) == forward | mirrored | own
    ops = {op.name: op for op in graph.ops}
    assert [ops[f"node{k}.backward"].duration_ns for k in range(1, 6)] == [0, 2_500_000, 2_000, 125_000, 6_000_000]
    assert ops["node5.backward"].kind == "LSTM"
    # node2.backward reads two gradients of 16, its own activation of 16 and 40 of weights; it writes the gradient of
    # its input, 100, and that of its weights, 40
    assert (ops["node2.backward"].bytes_read, ops["node2.backward"].bytes_written) == (88, 140)
    tensors = {t.name: t for t in graph.tensors}
    assert [graph.ops[c].name for c in tensors["node3"].consumers] == ["node4", "node3.backward"]
    gradient = tensors["node2.gradient.node5"]
    assert (gradient.bytes, graph.ops[gradient.producer or 0].name) == (16, "node5.backward")
    assert [graph.ops[c].name for c in gradient.consumers] == ["node2.backward"]
    assert [t.name for t in graph.tensors if t.output] == ["node2.weight.gradient", "node5.weight.gradient"]
    assert [graph.ops[c].name for c in tensors["node2.weight"].consumers] == ["node2", "node2.backward"]


def test_inputs_are_of_one_kind_and_quiet_when_they_take_no_time() -> None:
    text = "".join(row(k, f"Input{k}", "0.000", "0.000", "0.0", "0.000") for k in range(3))
    graph = parse(text.encode(), "inputs")
    assert [op.kind for op in graph.ops] == ["Input"] * 3
    assert graph.warnings == ()


def test_an_edge_given_twice_counts_once_and_is_told() -> None:
    graph = parse((DIAMOND + "\n\tnode1 -- node2\n").encode(), "d")
    assert len(graph.edges) == 5
    assert graph.warnings[-1] == "line 11: edge 'node1 -- node2' is given twice and counts once"


def test_a_byte_order_mark_is_skipped() -> None:
    marked = b"\xef\xbb\xbf" + DIAMOND.encode()
    assert recognises(marked)
    assert parse(marked, "d") == parse(DIAMOND.encode(), "d")


def test_quotes_stages_and_windows_line_ends() -> None:
    line = row(1, "Conv2d(3)", "1.000", "1.000", '"[4.0; 5.0]"', "0.000").strip() + " -- stage_id=3\r\n"
    assert parse(line.encode(), "d").tensors[0].bytes == 9


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DIAMOND + "\n" + row(2, "ReLU()", "1.0", "1.0", "1.0", "0.0"), "line 11: node2 is described a second time"),
        (DIAMOND + "\n\tnode1 -- node9", "line 11: edge to node9, which no line describes"),
        (
            DIAMOND + "\nnode6 -- ReLU()",
            "line 11: neither a layer nor an edge of a PipeDream profile: 'node6 -- ReLU()'",
        ),
        (row(1, "ReLU()", "-1.0", "1.0", "1.0", "0.0"), "line 1: neither a layer nor an edge"),
        (row(1, "ReLU()", "nan", "1.0", "1.0", "0.0"), "line 1: neither a layer nor an edge"),
        (row(1, "ReLU()", "1.0", "1.0", "[1.0", "0.0"), "line 1: neither a layer nor an edge"),
    ],
)
def test_broken_lines_are_numbered(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=re.escape(message)):
        parse(text.encode(), "broken")


def test_text_that_is_none() -> None:
    with pytest.raises(FormatError, match="byte 9 is not UTF-8 text"):
        parse(b"node1 -- \xff", "broken")


def test_training_is_true_or_false() -> None:
    with pytest.raises(OptionError, match="training is 'yes'; it must be true or false"):
        parse(b"", "d", training="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize("head", [b"node1 -- Conv2d", b"\tnode1 -- node2", b"\n\tnode1 -- node2"])
def test_profiles_are_recognised(head: bytes) -> None:
    assert recognises(head)


@pytest.mark.parametrize("head", [b"node1", b"a node1 -- b", b"nodeX -- b", b"node1 -> node2"])
def test_other_text_is_not(head: bytes) -> None:
    assert not recognises(head)
