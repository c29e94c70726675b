"""ONNX: small models built here, whose shapes and figures are worked out beside them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import onnx
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from msched.errors import FormatError, MschedError, OptionError
from msched.formats.onnx import parse, recognises
from msched.formats.onnx.costs import attribute
from msched.graph import Matmul, OpGraph, Tensor

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
Value = tuple[str, int, list[Any] | None]


def model(
    nodes: list[onnx.NodeProto],
    inputs: list[Value],
    outputs: list[Value],
    weights: Sequence[onnx.TensorProto] = (),
    functions: Sequence[onnx.FunctionProto] = (),
    domains: tuple[str, ...] = (),
    opset: int = 17,
) -> bytes:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(*value) for value in inputs],
        [helper.make_tensor_value_info(*value) for value in outputs],
        list(weights),
    )
    sets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    return bytes(helper.make_model(graph, opset_imports=sets, functions=list(functions)).SerializeToString())


def weight(name: str, *shape: int, kind: int = FLOAT) -> onnx.TensorProto:
    count = 1
    for size in shape:
        count *= size
    return helper.make_tensor(name, kind, shape, [1] * count)


def one(
    op_type: str, *shapes: tuple[int, ...] | None, kind: int = FLOAT, opset: int = 17, **attributes: Any
) -> OpGraph:
    """A model of one node, its inputs all network inputs `a`, `b`, `c`, ... of the given shapes."""
    names = ["abcdefgh"[i] if shape is not None else "" for i, shape in enumerate(shapes)]
    node = helper.make_node(op_type, names, ["y"], **attributes)
    values: list[Value] = [(n, kind, list(s)) for n, s in zip(names, shapes, strict=True) if s is not None]
    return parse(model([node], values, [("y", kind, None)], opset=opset), "one")


def tensor(graph: OpGraph, name: str) -> Tensor:
    return next(t for t in graph.tensors if t.name == name)


# Matrix shapes. A convolution of 8 channels into 16 by 3 x 3 on 10 x 10 padded by 1 keeps 10 x 10 = 100 places a image.
@pytest.mark.parametrize(
    ("graph", "matmul"),
    [
        (one("Conv", (2, 8, 10, 10), (16, 8, 3, 3), pads=[1] * 4), Matmul(1, 200, 16, 72)),
        (one("Conv", (2, 8, 10, 10), (16, 8, 3, 3), pads=[1] * 4, strides=[2, 2]), Matmul(1, 50, 16, 72)),
        (one("Conv", (2, 8, 10, 10), (16, 2, 3, 3), pads=[1] * 4, group=4), Matmul(4, 200, 4, 18)),
        (one("Conv", (1, 8, 10, 10), (8, 1, 3, 3), group=8), Matmul(8, 64, 1, 9)),  # depthwise, 8 x 8 left
        (one("Conv", (3, 4, 50), (6, 4, 5)), Matmul(1, 3 * 46, 6, 20)),  # of one dimension, 46 places left
        # each of the 2 x 5 x 5 input places meets 16 x 3 x 3 weights of each of its 8 channels
        (one("ConvTranspose", (2, 8, 5, 5), (8, 16, 3, 3)), Matmul(1, 50, 144, 8)),
        (one("Gemm", (4, 5), (5, 6)), Matmul(1, 4, 6, 5)),
        (one("Gemm", (5, 4), (6, 5), transA=1, transB=1), Matmul(1, 4, 6, 5)),
        (one("MatMul", (4, 5), (5, 6)), Matmul(1, 4, 6, 5)),
        (one("MatMul", (2, 3, 4, 5), (5, 6)), Matmul(1, 24, 6, 5)),  # one matrix for all 2 x 3 x 4 rows
        (one("MatMul", (2, 3, 4, 5), (2, 3, 5, 6)), Matmul(6, 4, 6, 5)),
        (one("MatMul", (2, 1, 4, 5), (3, 5, 6)), Matmul(6, 4, 6, 5)),  # 2 x 1 and 3 broadcast to 2 x 3
        (one("MatMul", (4, 5), (3, 5, 6)), Matmul(3, 4, 6, 5)),
        (one("MatMul", (5,), (5, 6)), Matmul(1, 1, 6, 5)),
        (one("MatMul", (5,), (3, 5, 6)), Matmul(3, 1, 6, 5)),
        (one("MatMul", (4, 5), (5,)), Matmul(1, 4, 1, 5)),
        (one("MatMul", (5,), (5,)), Matmul(1, 1, 1, 5)),
        (one("Einsum", (2, 4, 5), (2, 5, 6), equation="bik, bkj -> bij"), Matmul(2, 4, 6, 5)),
        (one("Einsum", (4, 5), (5, 6), equation="ik,kj"), Matmul(1, 4, 6, 5)),  # implied: the labels that occur once
    ],
)
def test_matrix_shapes(graph: OpGraph, matmul: Matmul) -> None:
    assert graph.ops[0].matmul == matmul
    assert graph.ops[0].flops == 2 * matmul.batch * matmul.m * matmul.n * matmul.k


@pytest.mark.parametrize(
    ("graph", "flops"),
    [
        (one("Relu", (2, 3, 4)), 24),
        (one("Add", (2, 3), (3,)), 6),
        (one("Add", (2, 1), (1, 3)), 6),  # both broadcast: 2 x 3 come out
        (one("ReduceMean", (2, 3, 4)), 24),  # every element that goes in is added
        (one("GlobalAveragePool", (1, 8, 5, 5)), 200),
        (one("MaxPool", (1, 8, 6, 6), kernel_shape=[3, 2]), 8 * 4 * 5 * 6),  # 4 x 5 windows of 3 x 2
        (one("Transpose", (2, 3)), 0),
        (one("Concat", (2, 3), (2, 3), axis=0), 0),
        (one("Einsum", (2, 3), equation="ij->ji"), 6),  # no product of two
        # 7 steps of a batch of 2, each a product with (4 x 5) x 3 and (4 x 5) x 5 weights
        (one("LSTM", (7, 2, 3), (1, 20, 3), (1, 20, 5), hidden_size=5), 2 * 14 * (60 + 100)),
    ],
)
def test_other_arithmetic(graph: OpGraph, flops: int) -> None:
    assert (graph.ops[0].flops, graph.ops[0].matmul) == (flops, None)


def test_a_matrix_product_of_nothing_is_none() -> None:
    assert one("MatMul", (0, 5), (5, 6)).ops[0].matmul is None


@pytest.mark.parametrize(
    ("kind", "bits"),
    [("FLOAT", 32), ("FLOAT16", 16), ("BFLOAT16", 16), ("DOUBLE", 64), ("INT64", 64), ("UINT8", 8), ("BOOL", 8),
     ("FLOAT8E4M3FN", 8), ("INT4", 4), ("COMPLEX64", 64), ("STRING", 0)],
)  # fmt: skip
def test_element_sizes(kind: str, bits: int) -> None:
    graph = one("Identity", (3, 5), kind=getattr(TensorProto, kind), opset=23)
    assert tensor(graph, "a").bytes == -(-15 * bits // 8)


def test_bytes_are_those_of_each_distinct_tensor() -> None:
    assert (one("Mul", (2, 3), (3,)).ops[0].bytes_read, one("Mul", (2, 3), (3,)).ops[0].bytes_written) == (36, 24)
    square = model([helper.make_node("Mul", ["x", "x"], ["y"])], [("x", FLOAT, [6])], [("y", FLOAT, None)])
    assert parse(square, "m").ops[0].bytes_read == 24


def test_a_look_up_reads_only_the_rows_that_it_takes() -> None:
    node = helper.make_node("Gather", ["table", "rows"], ["y"])
    data = model([node], [("table", FLOAT, [1000, 8]), ("rows", INT64, [5])], [("y", FLOAT, None)])
    op = parse(data, "m").ops[0]
    assert (op.bytes_read, op.bytes_written) == (5 * 8 * 4 + 5 * 8, 5 * 8 * 4)


def test_reading_a_shape_reads_nothing() -> None:
    data = model([helper.make_node("Shape", ["x"], ["y"])], [("x", FLOAT, [4, 4])], [("y", INT64, None)])
    assert (parse(data, "m").ops[0].bytes_read, parse(data, "m").ops[0].bytes_written) == (0, 16)


def test_tensors_know_where_they_come_from_and_go_to() -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="first"),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Add", ["h", "r"], ["y"], name="last"),
    ]
    graph = parse(model(nodes, [("x", FLOAT, [2, 3])], [("y", FLOAT, None)], [weight("w", 3, 4)]), "named")
    assert graph.name == "named"
    assert [(op.name, op.kind) for op in graph.ops] == [("first", "MatMul"), ("r", "Relu"), ("last", "Add")]
    assert graph.tensors == (
        Tensor(name="x", bytes=24, consumers=(0,), persistent=True),
        Tensor(name="w", bytes=48, consumers=(0,), persistent=True),
        Tensor(name="h", bytes=32, producer=0, consumers=(1, 2)),
        Tensor(name="r", bytes=32, producer=1, consumers=(2,)),
        Tensor(name="y", bytes=32, producer=2, output=True),
    )
    assert graph.warnings == ()


def test_constants_and_what_follows_from_them_fold() -> None:
    shape = helper.make_tensor("v", INT64, [2], [3, 4])
    nodes = [
        helper.make_node("Constant", [], ["shape"], value=shape),
        helper.make_node("ConstantOfShape", ["shape"], ["w"]),
        helper.make_node("Transpose", ["w"], ["wt"]),
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("MatMul", ["h", "wt"], ["y"]),
        helper.make_node("Add", ["w", "w"], ["side"]),
    ]
    outputs: list[Value] = [("y", FLOAT, None), ("side", FLOAT, None)]
    graph = parse(model(nodes, [("x", FLOAT, [2, 3])], outputs), "m")
    assert [op.name for op in graph.ops] == ["h", "y"]
    persistent = {t.name: (t.bytes, t.consumers, t.output) for t in graph.tensors if t.persistent}
    assert persistent == {
        "x": (24, (0,), False),
        "w": (48, (0,), False),
        "wt": (48, (1,), False),
        "side": (48, (), True),
    }


@pytest.mark.parametrize(
    "node",
    [
        helper.make_node("RandomNormal", [], ["w"], shape=[3]),
        helper.make_node("RandomUniformLike", ["c"], ["w"]),
        helper.make_node("Mystery", ["c"], ["w"], domain="strange"),
        helper.make_node("SequenceEmpty", [], ["w"]),
    ],
)
def test_what_is_not_the_same_every_time_does_not_fold(node: onnx.NodeProto) -> None:
    graph = parse(model([node], [], [("w", FLOAT, None)], [weight("c", 3)], domains=("strange",)), "m")
    assert len(graph.ops) == 1


def test_weights_that_nobody_uses_do_not_count() -> None:
    data = model([helper.make_node("Relu", ["x"], ["y"])], [("x", FLOAT, [2])], [("y", FLOAT, None)], [weight("w", 9)])
    assert [t.name for t in parse(data, "m").tensors] == ["x", "y"]


def test_weights_listed_as_inputs_too_are_weights() -> None:
    nodes = [helper.make_node("ConstantOfShape", ["s"], ["w"]), helper.make_node("Add", ["x", "w"], ["y"])]
    shape = helper.make_tensor("s", INT64, [1], [7])
    data = model(nodes, [("x", FLOAT, [7]), ("s", INT64, [1])], [("y", FLOAT, None)], [shape])
    graph = parse(data, "m")
    assert [op.name for op in graph.ops] == ["y"]
    assert [t.name for t in graph.tensors] == ["x", "w", "y"]


def test_names_are_made_unique_in_order() -> None:
    names = ["same", "same", "same#2", "same"]
    nodes = [helper.make_node("Relu", [f"t{i}"], [f"t{i + 1}"], name=name) for i, name in enumerate(names)]
    graph = parse(model(nodes, [("t0", FLOAT, [1])], [("t4", FLOAT, None)]), "m")
    labels = [op.name for op in graph.ops]
    assert labels[0] == "same"
    assert labels[2] == "same#2"
    assert len(set(labels)) == 4


def test_custom_operators_keep_their_domain() -> None:
    node = helper.make_node("Mystery", ["x"], ["y"], domain="com.example")
    graph = parse(model([node], [("x", FLOAT, [2])], [("y", FLOAT, [2])], domains=("com.example",)), "m")
    assert graph.ops[0].kind == "com.example.Mystery"
    unknown = parse(model([node], [("x", FLOAT, [2])], [("y", FLOAT, [3])]), "m")
    assert tensor(unknown, "y").bytes == 12  # as the file declares, since inference gave up
    assert "shape inference gave up" in unknown.warnings[0]


def test_local_functions_are_inlined() -> None:
    body = [helper.make_node("MatMul", ["a", "w"], ["t"]), helper.make_node("Relu", ["t"], ["b"])]
    layer = helper.make_function("my", "Layer", ["a", "w"], ["b"], body, [helper.make_opsetid("", 17)])
    nodes = [
        helper.make_node("Layer", ["x", "w"], ["h"], domain="my"),
        helper.make_node("Layer", ["h", "w"], ["y"], domain="my"),
    ]
    data = model(nodes, [("x", FLOAT, [2, 4])], [("y", FLOAT, None)], [weight("w", 4, 4)], [layer], ("my",))
    graph = parse(data, "m")
    assert [op.kind for op in graph.ops] == ["MatMul", "Relu", "MatMul", "Relu"]
    assert [op.flops for op in graph.ops] == [64, 8, 64, 8]


def function(name: str, *callees: str) -> onnx.FunctionProto:
    nodes = [helper.make_node(callee, ["a"], [f"b{i}"], domain="my") for i, callee in enumerate(callees)]
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)]
    return helper.make_function("my", name, ["a"], [nodes[-1].output[0]], nodes, sets)


def test_functions_that_call_themselves() -> None:
    call = helper.make_node("F", ["x"], ["y"], domain="my")
    functions = [function("F", "G"), function("G", "F")]
    with pytest.raises(FormatError, match=r"local function '[FG]' calls itself"):
        parse(model([call], [("x", FLOAT, [1])], [("y", FLOAT, None)], [], functions, ("my",)), "m")


def test_functions_that_double_forty_times() -> None:
    call = helper.make_node("F0", ["x"], ["y"], domain="my")
    functions = [function(f"F{i}", f"F{i + 1}", f"F{i + 1}") for i in range(40)]
    with pytest.raises(FormatError, match="more than 1000000 nodes with its local functions inlined"):
        parse(model([call], [("x", FLOAT, [1])], [("y", FLOAT, None)], [], functions, ("my",)), "m")


def branch(name: str, output: str, *nodes: onnx.NodeProto) -> onnx.GraphProto:
    return helper.make_graph(list(nodes), name, [], [helper.make_tensor_value_info(output, FLOAT, [3])])


def test_control_flow_stays_one_op_that_reads_what_its_body_captures() -> None:
    inner = helper.make_node(
        "If",
        ["c"],
        ["deep"],
        then_branch=branch("t", "d1", helper.make_node("Relu", ["far"], ["d1"])),
        else_branch=branch("e", "d2", helper.make_node("Neg", ["near"], ["d2"])),
    )
    near = helper.make_node("Abs", ["x"], ["near"])
    held = helper.make_node("Constant", [], ["k"], value=weight("k", 3))
    outer = helper.make_node(
        "If",
        ["c"],
        ["y"],
        name="choice",
        then_branch=branch("t", "deep", near, inner),
        else_branch=branch("e", "k", held),
    )
    nodes = [helper.make_node("Exp", ["x"], ["far"]), outer]
    inputs: list[Value] = [("x", FLOAT, [3]), ("c", TensorProto.BOOL, [])]
    graph = parse(model(nodes, inputs, [("y", FLOAT, [3])]), "m")
    assert [(op.kind, op.flops) for op in graph.ops] == [("Exp", 3), ("If", 0)]
    assert [t.name for t in graph.tensors if 1 in t.consumers] == ["x", "c", "far", "choice.body"]
    assert tensor(graph, "choice.body").persistent
    assert graph.warnings == ("control flow kept as one op, its body is neither scheduled nor costed: choice (If)",)


OPEN: list[Value] = [("x", FLOAT, ["N", 3, None])]


def test_open_dimensions_are_one_and_told() -> None:
    graph = parse(model([helper.make_node("Relu", ["x"], ["y"])], OPEN, [("y", FLOAT, ["N", 3, "M"])]), "m")
    assert tensor(graph, "y").bytes == 12
    assert graph.warnings == (
        "open dimensions taken as 1: N, x_2; give their sizes as 'workload.dimensions={N: 1, x_2: 1}' on the command "
        "line, as dimensions={...} in Python",
    )


def test_open_dimensions_can_be_bound() -> None:
    data = model([helper.make_node("Relu", ["x"], ["y"])], OPEN, [("y", FLOAT, ["N", 3, "M"])])
    graph = parse(data, "m", dimensions={"N": 5, "x[2]": 7})
    assert tensor(graph, "y").bytes == 5 * 3 * 7 * 4
    assert graph.warnings == ()
    assert tensor(parse(data, "m", dimensions={"x_0": 2, "x_2": 7}), "y").bytes == 2 * 3 * 7 * 4
    assert tensor(parse(data, "m", dimensions={"x[0]": 2, "x[2]": 7}), "y").bytes == 2 * 3 * 7 * 4


def test_dimensions_that_share_a_question_mark_are_bound_apart() -> None:
    data = model([helper.make_node("Relu", ["x.1"], ["y"])], [("x.1", FLOAT, ["?", "?"])], [("y", FLOAT, None)])
    assert parse(data, "m").warnings[0].startswith("open dimensions taken as 1: x_1_0, x_1_1;")
    assert tensor(parse(data, "m", dimensions={"x_1_0": 2, "x_1_1": 3}), "y").bytes == 2 * 3 * 4


def test_names_of_open_dimensions_are_unique_and_no_numbers() -> None:
    # "1" and "1_" would both give 1__0, null and 1_0 are no text on a command line, and M_0 is a symbol
    inputs: list[Value] = [(name, FLOAT, ["null"]) for name in ("1", "a.b", "a_b")] + [("M", FLOAT, [None, "M_0"])]
    data = model([helper.make_node("Relu", ["M"], ["y"])], inputs, [("y", FLOAT, None)])
    names = ["dim_1_0", "a_b_0", "a_b_0_", "M_0_", "M_0"]
    assert parse(data, "m").warnings[0].startswith(f"open dimensions taken as 1: {', '.join(names)};")
    graph = parse(data, "m", dimensions={name: size for size, name in enumerate(names, 2)})
    assert [tensor(graph, name).bytes // 4 for name in ("1", "a.b", "a_b", "M")] == [2, 3, 4, 5 * 6]
    assert graph.warnings == ()


def test_the_override_of_the_warning_works_on_the_command_line() -> None:
    data = model([helper.make_node("Relu", ["x"], ["y"])], [("x", FLOAT, ["N", 3, None, "?"])], [("y", FLOAT, None)])
    override = re.findall("'(.+?)'", parse(data, "m").warnings[0])
    sizes = OverridesParser.create().parse_override(override[0].replace("N: 1", "N: 2")).value()
    graph = parse(data, "m", dimensions=sizes)
    assert tensor(graph, "y").bytes == 2 * 3 * 4
    assert graph.warnings == ()
    assert "'workload.dimensions={N: 5, x_2: 1, x_3: 1}'" in parse(data, "m", dimensions={"N": 5}).warnings[0]


def test_a_negative_dimension_is_an_open_one() -> None:
    data = model([helper.make_node("Relu", ["x"], ["y"])], [("x", FLOAT, [-1, 3])], [("y", FLOAT, None)])
    assert tensor(parse(data, "m", dimensions={"x[0]": 4}), "y").bytes == 48


@pytest.mark.parametrize(
    ("dimensions", "message"),
    [
        ({"M": 2}, r"dimensions: M is no open dimension of this model; open are: N, x_2"),
        ({"N": 0}, "dimensions: N is 0; a whole number of at least 1 is needed"),
        ({"N": 2.5}, r"dimensions: N is 2\.5; a whole number"),
        ({"N": True}, "dimensions: N is True"),
        ("N=2", "dimensions is 'N=2'; a mapping of symbols to sizes is needed"),
    ],
)
def test_dimensions_that_make_no_sense(dimensions: Any, message: str) -> None:
    data = model([helper.make_node("Relu", ["x"], ["y"])], OPEN, [("y", FLOAT, None)])
    with pytest.raises(OptionError, match=message):
        parse(data, "m", dimensions=dimensions)


def test_unknown_shapes_count_nothing_and_are_told() -> None:
    data = model(
        [helper.make_node("MatMul", ["x", "z"], ["y"])], [("x", FLOAT, None), ("z", FLOAT, None)], [("y", FLOAT, None)]
    )
    graph = parse(data, "m")
    assert (graph.ops[0].flops, graph.ops[0].bytes_read) == (0, 0)
    assert graph.warnings == ("shape not known, counted as 0 bytes: x, z, y",)


def test_large_weights_need_no_copy_for_inference_and_none_is_read_from_elsewhere() -> None:
    outside = TensorProto(name="w", data_type=FLOAT, dims=[4, 4], data_location=TensorProto.EXTERNAL)
    outside.external_data.add(key="location", value="/etc/passwd")
    data = model(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", FLOAT, [2, 4])], [("y", FLOAT, None)], [outside]
    )
    assert tensor(parse(data, "m"), "w").bytes == 64
    stored = weight("w", 64, 64)
    data = model(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", FLOAT, [2, 64])], [("y", FLOAT, None)], [stored]
    )
    assert tensor(parse(data, "m"), "y").bytes == 512


def test_a_sparse_weight_takes_its_values_and_their_places() -> None:
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    proto = onnx.ModelProto.FromString(model([node], [("x", FLOAT, [2, 4])], [("y", FLOAT, [2, 4])]))
    places = helper.make_tensor("i", INT64, [3], [0, 5, 9])
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(weight("w", 3), places, [4, 4]))
    assert tensor(parse(proto.SerializeToString(), "m"), "w").bytes == 3 * 3 * 4  # a value and two coordinates each


RELU = model([helper.make_node("Relu", ["x"], ["y"], name="act")], [("x", FLOAT, [1])], [("y", FLOAT, None)])


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (
            [helper.make_node("Relu", ["gone"], ["y"], name="act")],
            "node 'act' reads 'gone', which nothing in the graph",
        ),
        (
            [helper.make_node("Relu", ["x"], ["y"], name=n) for n in "ab"],
            "node 'b' writes 'y', already written by node 'a'",
        ),
        ([helper.make_node("Relu", ["x"], ["x"], name="act")], "node 'act' writes 'x', already written by an input"),
    ],
)
def test_broken_graphs_name_the_node(nodes: list[onnx.NodeProto], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        parse(model(nodes, [("x", FLOAT, [1])], [("y", FLOAT, None)]), "m")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (RELU[:20], "no complete ONNX model: .*; the file may be truncated"),
        (b"\x08\x08", "holds no graph; the file may be truncated"),
        (b"\x08\x08\x3a\x00", "names no operator set"),
        (RELU.replace(b"act", b"\xff\xfe\xfd"), "onnx.NodeProto.name: .* is not UTF-8 text"),
        (
            model([], [], [], [TensorProto(name="w", data_type=FLOAT, dims=[-3])]),
            r"initializer 'w' has the shape \[-3\]",
        ),
    ],
)
def test_files_that_are_no_whole_model(data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        parse(data, "m")


@settings(max_examples=300)
@given(st.data())
def test_a_damaged_model_is_read_or_refused_and_nothing_else(data: st.DataObject) -> None:
    damaged = bytearray(RELU)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        damaged[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    try:
        graph = parse(bytes(damaged), "m")
    except MschedError:
        return
    assert OpGraph.from_json(graph.to_json()) == graph


@pytest.mark.parametrize("cut", [1, 2, 10, len(RELU)])
def test_models_are_recognised_by_their_beginning(cut: int) -> None:
    assert recognises(RELU[:cut])


@pytest.mark.parametrize("head", [b"\x08\x08\x0b", b"\x12\x02ab", b"PK\x03\x04", b"\x0a\x02ab", b"{}", b"\x80" * 30])
def test_other_bytes_are_not(head: bytes) -> None:
    assert not recognises(head)


def test_attributes_have_defaults() -> None:
    node = helper.make_node("Conv", ["x"], ["y"], group=4)
    assert (attribute(node, "group", 1), attribute(node, "strides", [1, 1])) == (4, [1, 1])
