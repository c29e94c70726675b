"""Pangu-like 71B: size against the published one, and what sets it apart from LLaMA."""

from __future__ import annotations

from typing import Any

import pytest

from msched.config import options
from msched.errors import OptionError
from msched.lowering import lower
from msched.networks.pangu import build


def test_parameters_are_71_billion() -> None:
    graph = build(tensor_parallel=1, sequence=1)
    parameters = sum(t.bytes for t in graph.tensors if t.name.endswith((".weight", ".bias"))) // 2
    assert parameters == pytest.approx(71e9, rel=0.02)


@pytest.mark.parametrize("chips", [1, 8])
def test_a_forward_pass_takes_two_operations_a_parameter_and_token_and_the_attention(chips: int) -> None:
    tokens = 2048
    graph = build(tensor_parallel=chips, sequence=tokens, logits="all")
    total = chips * sum(o.flops for o in graph.ops)
    attention = 80 * 4 * 8192 * tokens * (tokens + 1) / 2
    assert total == pytest.approx(2 * (71e9 - 153376 * 8192) * tokens + attention, rel=0.02)


def test_the_number_of_ops() -> None:
    # per layer: 2 norms, q k v o, 2 rotations, 2 cache writes, attention, gate up down, SiLU, product, 2 additions,
    # 2 all-reduces; around them embedding and its all-reduce, last token, norm, head and its all-gather
    assert len(build().ops) == 80 * 20 + 6
    assert len(build(tensor_parallel=1, phase="decode", layers=3).ops) == 3 * 18 + 3


def test_projections_of_the_attention_have_a_bias() -> None:
    graph = build(tensor_parallel=8, sequence=10, layers=1)
    biases = {t.name: t.bytes for t in graph.tensors if t.name.endswith(".bias")}
    # 8,192 query channels and 1,024 of keys in 8 parts; the output whole
    sizes = {"q_proj": 1024, "k_proj": 128, "v_proj": 128, "o_proj": 8192}
    assert biases == {f"layer0.attention.{name}.bias": 2 * size for name, size in sizes.items()}
    flops = {o.name: o.flops for o in graph.ops}
    assert flops["layer0.attention.q_proj"] == 10 * (2 * 1024 * 8192 + 1024)


def test_that_the_dimensions_are_assumed_is_a_warning_down_to_the_problem() -> None:
    graph = build(layers=1)
    assert len(graph.warnings) == 1
    assert "71 B model are not public; assumed: 80 layers" in graph.warnings[0]
    assert graph.warnings[0] in lower(graph, "atlas_800i_a2").warnings


@pytest.mark.parametrize("device", options("device"))
@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_it_lowers_on_every_device(device: str, phase: str) -> None:
    graph = build(layers=2, batch=2, sequence=64, phase=phase)
    assert lower(graph, device).n == len(graph.ops)


def test_the_same_arguments_give_the_same_graph() -> None:
    assert build(layers=2).content_hash() == build(layers=2).content_hash()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"tensor_parallel": 3}, "tensor_parallel is 3; pangu has 64 heads, which it must divide: 1, 2, 4, 8"),
        ({"phase": "train"}, "phase 'train' is not known; there are: prefill, decode"),
        ({"hidden": 100}, "hidden is 100; a multiple of the 64 heads is needed"),
        ({"layers": 0}, "layers is 0"),
        ({"batch": -1}, "batch is -1"),
    ],
)
def test_parameters_that_make_no_sense(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        build(**parameters)
