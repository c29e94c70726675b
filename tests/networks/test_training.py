"""A training step: operations against published formulas, structure, lifetimes and traffic by hand."""

from __future__ import annotations

from typing import Any

import networkx
import pytest

from msched.config import options
from msched.errors import OptionError
from msched.graph import Matmul, Op, OpGraph, Rows
from msched.lowering import lower
from msched.networks.training import build

# Parameters as published (LLaMA, table 2; Llama 3: as released), vocabulary x hidden size, layers, hidden size.
PUBLISHED = {
    "7b": (6.74e9, 32000 * 4096, 32, 4096),
    "13b": (13.0e9, 32000 * 5120, 40, 5120),
    "33b": (32.5e9, 32000 * 6656, 60, 6656),
    "65b": (65.2e9, 32000 * 8192, 80, 8192),
    "8b": (8.03e9, 128256 * 4096, 32, 4096),
    "70b": (70.6e9, 128256 * 8192, 80, 8192),
}


def small(**parameters: Any) -> OpGraph:
    return build(**{"layers": 2, "tensor_parallel": 2, "sequence": 16, "batch": 3} | parameters)


def op(graph: OpGraph, name: str) -> Op:
    return next(o for o in graph.ops if o.name == name)


def named(graph: OpGraph) -> networkx.DiGraph[str]:
    names = [o.name for o in graph.ops]
    result: networkx.DiGraph[str] = networkx.DiGraph()
    result.add_edges_from((names[u], names[v]) for u, v in graph.edges.tolist())
    return result


def flops(graph: OpGraph) -> int:
    return sum(o.flops for o in graph.ops)


@pytest.mark.parametrize("size", PUBLISHED)
@pytest.mark.parametrize("chips", [1, 4])
def test_a_step_takes_six_operations_a_parameter_and_token_and_the_attention(size: str, chips: int) -> None:
    parameters, embedding, layers, hidden = PUBLISHED[size]
    tokens = 2048
    # Every query meets every key up to its own, at 4 x hidden a pair; the backward pass of FlashAttention-2 takes five
    # products where the forward pass takes two (arXiv 2307.08691, section 4.1).
    attention = 3.5 * layers * 4 * hidden * tokens * (tokens + 1) / 2
    total = chips * flops(build(size=size, tensor_parallel=chips, sequence=tokens))
    assert total == pytest.approx(6 * (parameters - embedding) * tokens + attention, rel=0.02)


def test_a_step_of_short_requests_follows_the_formula_of_korthikanti() -> None:
    # arXiv 2205.05198, appendix A: 72 B L s h^2 (1 + s / 6h + V / 12 h L) for a feed-forward layer of 8 h^2 parameters,
    # here three matrices of 11,008 in place of 8 / 3 x 4,096; the formula counts no mask, which short requests forgive
    batch, length, layers, hidden, vocabulary = 64, 64, 32, 4096, 32000
    formula = 72 * batch * layers * length * hidden**2 * (1 + length / 6 / hidden + vocabulary / 12 / hidden / layers)
    assert flops(build(size="7b", tensor_parallel=1, batch=batch, sequence=length)) == pytest.approx(formula, rel=0.02)


def test_recomputation_adds_a_forward_pass_of_the_layers_but_for_their_last_projections() -> None:
    tokens, hidden, inner = 3 * 16, 4096, 11008
    added = flops(small(tensor_parallel=1, recompute=True)) - flops(small(tensor_parallel=1))
    products = 2 * 2 * tokens * (4 * hidden**2 + 2 * hidden * inner)
    attention = 2 * 4 * hidden * 3 * 16 * 17 // 2
    # norms at 4, rotations at 3, an addition; SiLU at 4 and a product
    elementwise = 2 * tokens * ((2 * 4 + 2 * 3 + 1) * hidden + 5 * inner)
    assert added == products + attention + elementwise


def test_the_number_of_ops() -> None:
    # Forward: 2 norms, q k v o, 2 rotations, attention, gate up down, SiLU, product, 2 additions and all-reduces: 18.
    # Back: 7 projections and 2 norms with two gradients each, 2 rotations, attention, 2 for the product, SiLU, 2 sums,
    # 2 additions, 2 all-reduces: 30. Around them: embedding and its gradient; norm and head and two gradients of each;
    # 4 ops of the loss; all-reduces behind the embedding, the head's gradient, and two in the loss.
    ends = 2 + 6 + 4 + 4
    assert len(small(data_parallel=1, bucket_bytes=2**30).ops) == 2 * 48 + ends + 1
    assert len(small(bucket_bytes=2**30).ops) == 2 * 48 + ends + 2
    # without tensor parallelism 4 all-reduces fewer in a layer and 4 around them
    assert len(small(tensor_parallel=1, data_parallel=1, bucket_bytes=2**31 - 1).ops) == 2 * 44 + ends - 4 + 1
    # once more: all 18 but the last projection, its all-reduce and its addition
    assert len(small(recompute=True, bucket_bytes=2**30).ops) == 2 * (48 + 15) + ends + 2
    # a bucket for each of 9 weights in 2 layers, the last norm, the head and the embedding
    assert len(small(bucket_bytes=1).ops) == 2 * 48 + ends + 2 * (2 * 9 + 3)


def test_the_workload_of_768_ops_has_so_many() -> None:
    from msched.config import build as configured
    from msched.config import load

    assert len(configured(load("workload", "training_768_ops")).ops) == 768


def test_matrix_shapes_of_one_chip_of_two() -> None:
    graph = small(size="70b", batch=2, sequence=10, layers=1)
    tokens, hidden = 20, 8192
    wide = {"q_proj": 4096, "k_proj": 512, "v_proj": 512, "gate_proj": 14336, "up_proj": 14336}
    shapes = {o.name.split(".", 2)[-1]: o.matmul for o in graph.ops if o.matmul and o.name.startswith("layer0")}
    for name, out in wide.items():
        assert shapes[name] == Matmul(1, tokens, out, hidden)
        assert shapes[f"{name}.dgrad"] == Matmul(1, tokens, hidden, out)
        assert shapes[f"{name}.wgrad"] == Matmul(1, hidden, out, tokens)
    for name, inner in {"o_proj": 4096, "down_proj": 14336}.items():
        assert shapes[name] == Matmul(1, tokens, hidden, inner)
        assert shapes[f"{name}.dgrad"] == Matmul(1, tokens, inner, hidden)
        assert shapes[f"{name}.wgrad"] == Matmul(1, inner, hidden, tokens)
    flash, back = (op(graph, f"layer0.attention.flash{end}") for end in ("", ".grad"))
    assert flash.flops == 2 * 32 * 4 * 128 * 55
    assert back.flops == 2.5 * flash.flops
    # reads queries, outputs and their gradients of 32 heads, keys and values of 4; writes three gradients
    assert back.bytes_read == tokens * 2 * 128 * (3 * 32 + 2 * 4)
    assert back.bytes_written == tokens * 2 * 128 * (32 + 2 * 4)
    value = op(graph, "layer0.attention.v_proj.wgrad")
    assert value.bytes_read == tokens * 2 * (hidden + 512)
    assert value.bytes_written == 4 * hidden * 512


def test_the_way_back_through_a_layer() -> None:
    after = named(small())
    name, attention, fed = "layer1", "layer1.attention", "layer1.feed_forward"
    expected = {
        f"{fed}.down_proj.dgrad": {"norm.dgrad"},
        f"{fed}.multiply.silu_grad": {f"{fed}.down_proj.dgrad", f"{fed}.up_proj"},
        f"{fed}.multiply.up_grad": {f"{fed}.down_proj.dgrad", f"{fed}.silu"},
        f"{fed}.silu.grad": {f"{fed}.multiply.silu_grad", f"{fed}.gate_proj"},
        f"{fed}.grad_sum": {f"{fed}.gate_proj.dgrad", f"{fed}.up_proj.dgrad"},
        f"{fed}.grad_all_reduce": {f"{fed}.grad_sum"},
        f"{name}.feed_forward_norm.dgrad": {f"{fed}.grad_all_reduce", f"{name}.attention_add"},
        f"{name}.feed_forward_grad_add": {f"{name}.feed_forward_norm.dgrad", "norm.dgrad"},
        f"{attention}.flash.grad": {
            f"{attention}.{x}" for x in ("q_rotary", "k_rotary", "v_proj", "flash", "o_proj.dgrad")
        },
        f"{attention}.q_rotary.grad": {f"{attention}.flash.grad"},
        f"{attention}.q_proj.wgrad": {f"{attention}.q_rotary.grad", f"{name}.attention_norm"},
        f"{attention}.grad_sum": {f"{attention}.{x}_proj.dgrad" for x in "qkv"},
        f"{name}.attention_grad_add": {f"{name}.attention_norm.dgrad", f"{name}.feed_forward_grad_add"},
        "layer0.feed_forward.down_proj.dgrad": {f"{name}.attention_grad_add"},
        "embedding.wgrad": {"layer0.attention_grad_add"},
    }
    assert {v: set(after.predecessors(v)) for v in expected} == expected


def test_nothing_but_the_optimizer_waits_for_gradients_of_weights() -> None:
    graph = small()
    after = named(graph)
    behind = {v for o in graph.ops if o.name.endswith(".wgrad") for v in networkx.descendants(after, o.name)}
    assert behind == {o.name for o in graph.ops if o.name.startswith("bucket")}


def test_activations_live_until_the_backward_pass_has_read_them() -> None:
    graph = small()
    names = [o.name for o in graph.ops]
    start = names.index("loss.grad")
    kept = {
        t.name: {names[c] for c in t.consumers if c >= start}
        for t in graph.tensors
        if t.name.startswith("layer1") and t.producer is not None and t.producer < start
    }
    # a normed input goes into the weight gradients of q, k and v, or gate and up, and nowhere else
    held = {
        "attention_norm": 3, "attention.v_proj": 1, "attention.q_rotary": 1, "attention.k_rotary": 1,
        "attention.flash": 2, "attention_add": 2, "feed_forward_norm": 2, "feed_forward.gate_proj": 1,
        "feed_forward.up_proj": 1, "feed_forward.silu": 1, "feed_forward.multiply": 1, "feed_forward_add": 2,
    }  # fmt: skip
    assert {name.removeprefix("layer1."): len(c) for name, c in kept.items() if c} == held


def test_recomputation_keeps_only_the_input_of_a_layer_and_starts_when_its_gradient_is_there() -> None:
    graph = small(recompute=True)
    names = [o.name for o in graph.ops]
    start = names.index("loss.grad")
    kept = {
        t.name
        for t in graph.tensors
        if t.producer is not None and t.producer < start and any(c >= start for c in t.consumers)
    }
    layers = {"embedding.all_reduce", "layer0.feed_forward_add", "layer1.feed_forward_add"}
    assert kept == layers | {"norm", "lm_head", "loss.max_all_reduce", "loss.sum_all_reduce"}
    after = named(graph)
    assert set(after.predecessors("recompute.layer1.attention_norm")) == {"layer0.feed_forward_add", "norm.dgrad"}
    assert set(after.predecessors("recompute.layer0.attention_norm")) == {
        "embedding.all_reduce", "layer1.attention_grad_add"
    }  # fmt: skip
    # weights are read again, not held twice
    weights = [t.name for t in graph.tensors if t.name.endswith(".weight")]
    assert len(weights) == len(set(weights)) == 2 * 9 + 3


@pytest.mark.parametrize("recompute", [False, True])
def test_a_bucket_is_updated_after_every_op_that_reads_its_weights(recompute: bool) -> None:
    graph = small(recompute=recompute, bucket_bytes=1)
    names, after = [o.name for o in graph.ops], named(graph)
    consumers = {t.name: [names[c] for c in t.consumers] for t in graph.tensors}
    updates = [name for name in names if name.endswith(".adamw")]
    assert len(updates) == 2 * 9 + 3
    for update in updates:
        (gradient,) = [t for t, c in consumers.items() if t.endswith(".wgrad") and update in c]
        readers = set(consumers[gradient.removesuffix(".wgrad") + ".weight"])
        assert readers <= networkx.ancestors(after, update)


def test_buckets_fill_in_the_order_of_the_backward_pass() -> None:
    # Half of each matrix of 7b: head 262 MB of gradients in single precision; down 90 MB, gate, up; o, q, k, v 33.5 MB
    graph = small(bucket_bytes=300 * 10**6, layers=1, tensor_parallel=2, data_parallel=4)
    names = [o.name for o in graph.ops]
    buckets = [
        (o.payload_bytes, [t.name.removesuffix(".wgrad") for t in graph.tensors if names.index(o.name) in t.consumers])
        for o in graph.ops
        if o.communicator == "dp"
    ]
    matrix, inner, table, norm = 4096 * 2048 * 4, 4096 * 5504 * 4, 16000 * 4096 * 4, 4096 * 4
    fed, attention = "layer0.feed_forward", "layer0.attention"
    assert buckets == [
        (table + norm + inner, ["lm_head", "norm", f"{fed}.down_proj"]),
        (
            2 * inner + norm + 4 * matrix,
            [f"{fed}.gate_proj", f"{fed}.up_proj", "layer0.feed_forward_norm"]
            + [f"{attention}.{x}_proj" for x in "oqkv"],
        ),
        (norm + table, ["layer0.attention_norm", "embedding"]),
    ]
    assert {(o.kind, o.participants) for o in graph.ops if o.communicator == "dp"} == {("HcomAllReduce", 4)}
    update = op(graph, "bucket0.adamw")
    elements = (table + norm + inner) // 4
    # gradient, weight in single precision and two moments in; those three and the weight itself out
    assert (update.bytes_read, update.bytes_written) == (elements * 16, elements * 14)


def test_all_reduces_of_tensor_parallelism_run_both_ways() -> None:
    graph = small(tensor_parallel=4)
    found = [o.name for o in graph.ops if o.communicator == "tp" and o.name.startswith("layer0")]
    assert found == [f"layer0.{half}.{x}all_reduce" for x, half in (
        ("", "attention"), ("", "feed_forward"), ("grad_", "feed_forward"), ("grad_", "attention")
    )]  # fmt: skip
    assert {op(graph, name).payload_bytes for name in found} == {48 * 4096 * 2}
    assert {o.participants for o in graph.ops if o.communicator == "tp"} == {4}
    assert {o.payload_bytes for o in graph.ops if o.name == "loss.sum_all_reduce"} == {48 * 2 * 4}
    assert not any(o.participants for o in small(tensor_parallel=1, data_parallel=1).ops)


def test_sums_over_tokens_have_no_rows() -> None:
    graph = small()
    without = {o.name for o in graph.ops if o.rows is None}
    assert without == {o.name for o in graph.ops if o.name.endswith(".wgrad") or o.name.startswith("bucket")} | {"loss"}
    attention = "layer0.attention"
    back = tuple(f"{attention}.{x}" for x in ("q_rotary", "k_rotary", "v_proj", "flash", "o_proj.dgrad"))
    assert op(graph, f"{attention}.flash.grad").rows == Rows(3, 16, attends=back)
    keys = (f"{attention}.k_rotary", f"{attention}.v_proj")
    assert op(graph, f"{attention}.flash").rows == Rows(3, 16, attends=keys, causal=True)
    assert {t.name for t in graph.tensors if t.token_wise} == {"tokens", "labels", "rotary.table"}


@pytest.mark.parametrize("device", options("device"))
def test_it_lowers_on_every_device(device: str) -> None:
    graph = small(recompute=True)
    problem = lower(graph, device)
    assert problem.n == len(graph.ops)
    assert not problem.warnings
    assert len(set(problem.communicator[problem.communicator >= 0].tolist())) == 2


def test_the_same_arguments_give_the_same_graph() -> None:
    assert small().content_hash() == small().content_hash()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"size": "9b"}, "size '9b' is not known"),
        ({"tensor_parallel": 3}, "tensor_parallel is 3; llama 7b has 32 heads, which it must divide: 1, 2, 4"),
        ({"data_parallel": 0}, "data_parallel is 0; a whole number of at least 1"),
        ({"bucket_bytes": 0}, "bucket_bytes is 0"),
        ({"gradient_bytes": 2.0}, r"gradient_bytes is 2\.0"),
        ({"recompute": "full"}, "recompute is 'full'; true or false is needed"),
        ({"hidden": 100}, "hidden is 100; a multiple of the 32 heads"),
        ({"sequence": 0}, "sequence is 0"),
    ],
)
def test_parameters_that_make_no_sense(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        build(**parameters)
