"""Placement: which kind of op is which class of work, and who may say otherwise."""

from typing import Any

import pytest

from msched.errors import OptionError, ProblemError
from msched.graph import Matmul, Op
from msched.lowering.placement import Place, places, work_of
from tests.lowering.devices import toy


@pytest.mark.parametrize(
    ("work", "kinds"),
    [
        # Ascend kinds as the profiler records them on AI_CORE, AI_VECTOR_CORE or MIX_AIV, MIX_AIC, AI_CPU and HCCL.
        ("matrix", "MatMulV2 MatMulV3 BatchMatMulV2 Conv2D Conv2DBackpropFilter Conv2DBackpropInput GroupedMatmul"),
        (
            "vector",
            "Add Mul RealDiv Relu ReluGrad TransData Transpose TensorMove Cast ReduceSum SoftmaxV2 LogSoftmaxV2",
        ),
        ("vector", "AdaptiveAvgPool3d AdaptiveAvgPool3dGrad MaxPoolGradWithArgmaxV1 BroadcastTo TopKV2 GatherV2D"),
        ("attention", "FlashAttentionScore FlashAttentionScoreGrad PagedAttention FusedInferAttentionScore"),
        ("collective", "hcom_allReduce_ hcom_allGather_ hcom_broadcast_ HcomAllReduce HcomReduceScatter HcomAllToAllV"),
        ("collective", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL AllReduce ReduceScatter HcomSend HcomReceive"),
        ("image", "DecodeJpeg ResizeBilinear ResizeNearestNeighborV2 ImageDecoder Resize"),
        ("control", "Shape Size Range NonMaxSuppression GetNext If Loop StreamSwitch"),
        ("copy", "MemcpyAsync Memcpy"),
        ("free", "NetOutput Data Variable Const"),
        # ONNX
        ("matrix", "Gemm MatMul Conv ConvTranspose Einsum LSTM"),
        (
            "vector",
            "LayerNormalization Softmax Gather Concat AveragePool GlobalAveragePool LRN ReduceMean Where Expand",
        ),
        ("free", "Reshape Squeeze Unsqueeze Flatten Identity Constant ConstantOfShape Dropout"),
        ("attention", "Attention MultiHeadAttention com.microsoft.GroupQueryAttention"),
        # layers of torch.nn, as PipeDream profiles name them; ops of ATen
        ("matrix", "Conv2d Linear LSTM EmuBidirLSTM Classifier"),
        ("vector", "BatchNorm2d ReLU MaxPool2d AvgPool2d Add Concat Embedding aten.mul.Tensor"),
        ("attention", "RecurrentAttention aten.scaled_dot_product_attention.default"),
        ("free", "View __getitem__ Input0 Input Dropout aten.view.default"),
        ("matrix", "aten.addmm.default com.microsoft.FusedMatMul"),
        # XLA
        ("matrix", "dot convolution"),
        ("vector", "reduce broadcast dynamic-update-slice reduce-window fusion"),
        ("free", "get-tuple-element bitcast tuple parameter"),
        ("collective", "all-reduce reduce-scatter all-gather-start collective-permute"),
    ],
)
def test_kinds_fall_into_their_class(work: str, kinds: str) -> None:
    assert {kind: work_of(kind) for kind in kinds.split()} == dict.fromkeys(kinds.split(), work)


@pytest.mark.parametrize("kind", ["Frobnicate", "", "???"])
def test_an_unknown_kind_has_no_class(kind: str) -> None:
    assert work_of(kind) is None


def one(op: Op, overrides: Any = None) -> tuple[Place, list[str]]:
    chosen, warnings = places([op], toy(), overrides or {})
    return chosen[0], warnings


def test_unknown_kinds_go_to_vector_work_with_one_warning_a_kind() -> None:
    ops = [Op(name=f"f{i}", kind="Frobnicate") for i in range(3)] + [Op(name="m", kind="MatMul")]
    chosen, warnings = places(ops, toy(), {})
    assert chosen[0] == Place("vector", (("vector", 1),))
    assert len(warnings) == 1
    assert "'Frobnicate' (3 ops)" in warnings[0]


def test_attention_holds_cube_and_vector_cores_and_is_bound_to_the_first() -> None:
    assert one(Op(name="a", kind="FlashAttentionScore"))[0].needs == (("cube", 1), ("vector", 2))


def test_participants_make_a_collective_of_a_kind_that_means_something_else() -> None:
    assert work_of("Broadcast") == "vector"
    assert one(Op(name="b", kind="Broadcast", participants=4))[0].work == "collective"
    fused = Op(name="f", kind="MatMulAllReduce", participants=4, matmul=Matmul(batch=1, m=1, n=1, k=1))
    assert one(fused)[0].work == "matrix"


def test_a_recorded_engine_wins_over_the_table() -> None:
    place, warnings = one(Op(name="c", kind="Cast", engine="cpu"))
    assert place == Place("vector", (("cpu", 1),))
    assert warnings == []


def test_a_recorded_engine_of_a_mix_op_binds_it_and_leaves_its_demand() -> None:
    assert one(Op(name="a", kind="FlashAttentionScore", engine="vector"))[0].needs == (("vector", 2), ("cube", 1))


def test_a_recorded_engine_tells_what_an_unknown_kind_is() -> None:
    assert one(Op(name="x", kind="Frobnicate", engine="link")) == (Place("collective", (("link", 1),)), [])
    assert one(Op(name="x", kind="Frobnicate", engine="cube")) == (Place("vector", (("cube", 1),)), [])


def test_a_recorded_engine_that_the_device_has_not_is_a_warning() -> None:
    place, warnings = one(Op(name="m", kind="MatMul", engine="sm"))
    assert place.needs == (("cube", 1),)
    assert len(warnings) == 1
    assert "'sm'" in warnings[0]
    assert "'toy'" in warnings[0]


def test_a_view_that_was_measured_to_take_time_is_vector_work() -> None:
    assert one(Op(name="d", kind="Dropout", duration_ns=5))[0] == Place("vector", (("vector", 1),))
    assert one(Op(name="d", kind="Dropout", duration_ns=0))[0] == Place("free", ())
    assert one(Op(name="d", kind="Dropout", duration_ns=5), {"Dropout": "free"})[0] == Place("free", ())


def test_an_override_wins_over_the_table_and_over_the_recorded_engine() -> None:
    softmax = Op(name="s", kind="Softmax", engine="vector")
    assert one(softmax, {"Softmax": "control"})[0] == Place("control", (("cpu", 1),))
    assert one(softmax, {"Softmax": {"cube": 1, "vector": 3}})[0] == Place("vector", (("cube", 1), ("vector", 3)))
    assert one(softmax, {"Softmax": "free"})[0] == Place("free", ())


def test_an_override_by_engine_keeps_the_class_that_prices_the_op() -> None:
    assert one(Op(name="m", kind="MatMul"), {"MatMul": {"vector": 2}})[0].work == "matrix"
    assert one(Op(name="r", kind="Reshape"), {"Reshape": {"vector": 1}})[0].work == "vector"


def test_an_override_names_the_kind_exactly_and_unused_ones_are_warnings() -> None:
    place, warnings = one(Op(name="s", kind="SoftmaxV2"), {"Softmax": "control"})
    assert place.work == "vector"
    assert warnings == ["placement: no op is of kind 'Softmax'"]


def test_an_override_silences_the_warning_of_an_unknown_kind() -> None:
    assert one(Op(name="f", kind="Frobnicate"), {"Frobnicate": "matrix"}) == (Place("matrix", (("cube", 1),)), [])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("tensor", "'tensor' is no class of work; there are: matrix"),
        ("image", "no place for 'image'"),
        ({"sm": 1}, "no engine 'sm'; there are: cube, vector"),
        ({"cube": 5}, "5 units of 'cube'; a whole number from 1 to 4"),
        ({"cube": 0}, "0 units of 'cube'"),
        ({"cube": 1.5}, "1.5 units of 'cube'"),
        ({"cube": True}, "True units of 'cube'"),
        ({}, "is needed"),
        (3, "is needed, not 3"),
    ],
)
def test_an_override_that_the_device_cannot_follow_is_refused(value: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message) as caught:
        one(Op(name="s", kind="Softmax"), {"Softmax": value})
    assert "'Softmax'" in str(caught.value)
    assert "'toy'" in str(caught.value)


def test_work_that_the_device_has_no_place_for_is_refused_with_a_way_out() -> None:
    with pytest.raises(ProblemError, match=r"op 'd' \(DecodeJpeg\) is image work, and device 'toy'.*placement="):
        one(Op(name="d", kind="DecodeJpeg"))
