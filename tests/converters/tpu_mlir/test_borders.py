"""What is refused beside its neighbors that are taken, and what a layer computes in at the borders of each rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.converters.tpu_mlir.networks import FLOAT, IMAGE, binary, quantized, ranged, run, unary
from tflq.converters.tpu_mlir.check import problems_of
from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Graph, GraphBuilder
from tflq.interpreter.kernels.tpu_mlir.multiplier import find_multiplier, find_normalized_multiplier

Operand = Array | tuple[int, ...] | None
"""A constant, the shape of an input, or an operand that is absent."""
NONE: dict[str, Any] = {"fused_activation_function": "none"}
WINDOW: dict[str, Any] = {"padding": "valid", "stride_h": 1, "stride_w": 1}
WEIGHTS, BIAS = np.ones((2, 1, 1, 2), np.float32), np.ones(2, np.float32)
CHANNELS, WIDTH = np.float32([1, 2]), np.arange(1, 5, dtype=np.float32).reshape(4, 1)
NUMBER = np.array(2, np.float32)


def whole(*values: int) -> Array:
    return np.array(values, np.int32)


def single(
    operator: str, operands: list[Operand], shape: tuple[int, ...] = IMAGE, kind: DType = FLOAT, **options: Any
) -> Graph:
    """One operator; inputs are float32, or what `kind` says of a comparison's."""
    b, inputs = GraphBuilder(operator), []
    for i, operand in enumerate(operands):
        if isinstance(operand, np.ndarray):
            inputs.append(b.constant(f"c{i}", operand))
        else:
            inputs.append(-1 if operand is None else b.input(f"x{i}", operand, kind))
    return b.build([b.add(operator, inputs, shape, FLOAT, **options)])


RUN_TIME, OTHER_RULE = "computed at run time", "another rule"
SEVERAL, POWER = "the quotient with a constant of several numbers", "a power other than of one constant exponent"
RESIZED: list[tuple[tuple[int, int], dict[str, Any], str]] = [
    ((8, 8), {}, ""), ((8, 8), {"half_pixel_centers": True}, ""), ((8, 8), {"align_corners": True}, OTHER_RULE),
    ((8, 12), {}, ""), ((8, 12), {"half_pixel_centers": True}, OTHER_RULE),
    ((12, 8), {"half_pixel_centers": True}, OTHER_RULE), ((8, 12), {"align_corners": True}, OTHER_RULE),
]  # fmt: skip
CASES: list[tuple[str, list[Operand], dict[str, Any], str]] = [
    ("conv_2d", [IMAGE, WEIGHTS, BIAS], WINDOW, ""),
    ("conv_2d", [IMAGE, WEIGHTS], WINDOW, ""),
    ("conv_2d", [IMAGE, WEIGHTS, None], WINDOW, ""),
    ("conv_2d", [IMAGE, (2, 1, 1, 2), BIAS], WINDOW, RUN_TIME),
    ("conv_2d", [IMAGE, WEIGHTS, (2,)], WINDOW, RUN_TIME),
    ("depthwise_conv_2d", [IMAGE, np.ones((1, 1, 1, 2), np.float32), BIAS], {**WINDOW, "depth_multiplier": 1}, ""),
    ("depthwise_conv_2d", [IMAGE, (1, 1, 1, 2), BIAS], {**WINDOW, "depth_multiplier": 1}, RUN_TIME),
    ("transpose_conv", [whole(*IMAGE), WEIGHTS, IMAGE], WINDOW, ""),
    ("transpose_conv", [whole(*IMAGE), WEIGHTS, IMAGE, BIAS], WINDOW, ""),
    ("transpose_conv", [whole(*IMAGE), WEIGHTS, IMAGE, None], WINDOW, ""),
    ("transpose_conv", [whole(*IMAGE), (2, 1, 1, 2), IMAGE, BIAS], WINDOW, RUN_TIME),
    ("transpose_conv", [whole(*IMAGE), WEIGHTS, IMAGE, (2,)], WINDOW, RUN_TIME),
    ("prelu", [IMAGE, CHANNELS], {}, ""),
    ("prelu", [IMAGE, (2,)], {}, RUN_TIME),
    ("gelu", [IMAGE], {"approximate": False}, ""),
    ("gelu", [IMAGE], {}, ""),
    ("gelu", [IMAGE], {"approximate": True}, "gelu by tanh"),
    ("pow", [IMAGE, NUMBER], {}, ""),
    ("pow", [IMAGE, np.full((1, 1, 1, 2), 2, np.float32)], {}, ""),
    ("pow", [IMAGE, CHANNELS], {}, POWER),
    ("pow", [NUMBER, IMAGE], {}, POWER),
    ("pow", [IMAGE, IMAGE], {}, POWER),
    ("div", [IMAGE, IMAGE], NONE, ""),
    ("div", [IMAGE, NUMBER], NONE, ""),
    ("div", [NUMBER, IMAGE], NONE, ""),
    ("div", [IMAGE, CHANNELS], NONE, ""),
    ("div", [CHANNELS, IMAGE], NONE, ""),
    ("div", [IMAGE, np.float32([1, 0])], NONE, SEVERAL),
    ("div", [np.float32([1, 0]), IMAGE], NONE, ""),
    ("div", [IMAGE, WIDTH], NONE, SEVERAL),
    ("div", [WIDTH, IMAGE], NONE, SEVERAL),
    ("mul", [IMAGE, WIDTH], NONE, ""),
    ("layer_normalization", [IMAGE, np.float32([1, 1]), np.float32([0, 0])], {"epsilon": 0.1}, ""),
    ("layer_normalization", [IMAGE, np.float32([1, 2]), np.float32([0, 1])], {"epsilon": 0.1}, ""),
    ("layer_normalization", [IMAGE, np.float32([1, 1]), np.float32([0, 1])], {"epsilon": 0.1}, "beta and without"),
    ("layer_normalization", [IMAGE, np.float32([1, 1]), np.float32([-1, 1])], {"epsilon": 0.1}, "beta and without"),
    ("tanh", [IMAGE], {}, ""),
    ("erfc", [IMAGE], {}, "no mapping to BM1684X"),
    *(("add", [IMAGE, IMAGE], {"fused_activation_function": c}, "") for c in ("none", "relu", "relu6", "relu_0_to_1")),
    ("add", [IMAGE, IMAGE], {"fused_activation_function": "tanh"}, "fused activation tanh"),
    ("maximum", [IMAGE, IMAGE], {"fused_activation_function": "relu"}, "fused activation relu; TPU-MLIR fuses"),
]  # fmt: skip


@pytest.mark.parametrize(("operator", "operands", "options", "words"), CASES)
def test_operands_and_options(operator: str, operands: list[Operand], options: dict[str, Any], words: str) -> None:
    found = problems_of(single(operator, operands, **options))
    assert [words in line for line in found] == ([True] if words else [])


def test_weights_of_the_first_tensor_may_be_computed_at_run_time() -> None:
    b = GraphBuilder("transposed")
    weights, x = b.input("w", (2, 1, 1, 2), FLOAT), b.input("x", IMAGE, FLOAT)
    shape, bias = b.constant("shape", whole(*IMAGE)), b.constant("bias", BIAS)
    graph = b.build([b.add("transpose_conv", [shape, weights, x, bias], IMAGE, FLOAT, **WINDOW)])
    assert RUN_TIME in problems_of(graph)[0]


@pytest.mark.parametrize("operator", ["mul", "div"])
@pytest.mark.parametrize("fused", ["none", "relu"])
@pytest.mark.parametrize("count", [1, 2])
def test_a_rectifier_behind_a_product_with_one_number_is_named(operator: str, fused: str, count: int) -> None:
    """TPU-MLIR loses it (5)."""
    constant = NUMBER if count == 1 else CHANNELS
    graph = ranged(single(operator, [IMAGE, constant], fused_activation_function=fused),
                   {"x0": (-1.0, 1.0), f"{operator}_0": (-2.0, 2.0)})  # fmt: skip
    said = [node.attributes.text("engine_reason", "") for node in quantized(graph).nodes]
    assert any("loses the rectifier" in words for words in said) is (fused == "relu" and count == 1)


@pytest.mark.parametrize(("sizes", "options", "words"), RESIZED)
def test_resizes(sizes: tuple[int, int], options: dict[str, Any], words: str) -> None:
    for operator in ("resize_nearest_neighbor", "resize_bilinear"):
        found = problems_of(single(operator, [IMAGE, whole(*sizes)], (1, *sizes, 2), **options))
        is_refused = words and operator == "resize_nearest_neighbor"
        assert [words in line for line in found] == ([True] if is_refused else [])


@pytest.mark.parametrize("kind", [FLOAT, DType.INT32, DType.FLOAT16])
def test_reals_are_compared(kind: DType) -> None:
    found = problems_of(single("less", [IMAGE, IMAGE], kind=kind))
    assert ["only reals are compared" in line for line in found] == ([] if kind is FLOAT else [True])


@pytest.mark.parametrize("constant", [NUMBER, CHANNELS, WIDTH])
def test_one_number_is_compared(constant: Array) -> None:
    found = problems_of(single("less", [IMAGE, constant]))
    assert ["a comparison with a constant of several" in line for line in found] == [True] * (constant.size > 1)


@pytest.mark.parametrize(("outer", "inner", "position", "is_taken"), [
    ("div", "pow", 1, False), ("div", "pow", 0, True), ("mul", "pow", 1, True), ("div", "exp", 1, True),
])  # fmt: skip
def test_divisors_that_are_powers(outer: str, inner: str, position: int, is_taken: bool) -> None:
    b = GraphBuilder("quotient")
    x, y = (b.input(name, IMAGE, FLOAT) for name in "xy")
    z = b.add(inner, [y, b.constant("two", NUMBER)] if inner == "pow" else [y], IMAGE, FLOAT)
    found = problems_of(b.build([b.add(outer, [x, z] if position else [z, x], IMAGE, FLOAT, **NONE)]))
    assert ["the divisor is a power" in line for line in found] == ([] if is_taken else [True])


@pytest.mark.parametrize("operator", ["average_pool_2d", "max_pool_2d"])
@pytest.mark.parametrize(("strides", "outputs", "far"), [
    ((15, 15), (3, 3), 0), ((16, 1), (3, 40), 16), ((1, 17), (40, 3), 17), ((16, 1), (1, 40), 0), ((15, 16), (3, 1), 0),
    ((15, 16), (3, 2), 16),
])  # fmt: skip
def test_strides(operator: str, strides: tuple[int, int], outputs: tuple[int, int], far: int) -> None:
    """One row or column of results needs no stride."""
    sides = [(o - 1) * s + 1 for o, s in zip(outputs, strides, strict=True)]
    options = {"padding": "valid", "filter_height": 1, "filter_width": 1}
    options |= {"stride_h": strides[0], "stride_w": strides[1]}
    found = problems_of(single(operator, [(1, *sides, 1)], (1, *outputs, 1), **options))
    is_refused = far and operator == "average_pool_2d"
    assert [f"a stride of {far}; TPU-MLIR's code generation takes up to 15" in line for line in found] == (
        [True] if is_refused else []
    )


@pytest.mark.parametrize("behind", ["concatenation", "maximum"])
@pytest.mark.parametrize("operator", ["relu", "relu6", "tanh"])
def test_rectifiers_behind_what_is_joined(operator: str, behind: str) -> None:
    b = GraphBuilder("rectified")
    inputs = [b.input(name, IMAGE, FLOAT) for name in "xy"]
    axis = {"axis": 0} if behind == "concatenation" else {}
    shape = (2, *IMAGE[1:]) if axis else IMAGE
    joined = b.add(behind, inputs, shape, FLOAT, **axis)
    found = problems_of(b.build([b.add(operator, [joined], shape, FLOAT), joined]))
    is_refused = axis and operator != "tanh"
    assert ["it follows a concatenation" in line for line in found] == ([True] if is_refused else [])


def test_outputs_that_no_operator_computes() -> None:
    b = GraphBuilder("idle")
    x, y = (b.input(name, IMAGE, FLOAT) for name in "xy")
    graph = b.build([x, b.add("add", [x, y], IMAGE, FLOAT, **NONE)])
    assert problems_of(graph) == ("output 'x': no operator computes it; remove it from the outputs",)


@pytest.mark.parametrize("asymmetric", ["false", "true"])
def test_numbers_of_channels_are_divided_in_float32(asymmetric: str) -> None:
    """As the live tool has it (tests/data/tpu_mlir_networks.json.xz: its operand is float32)."""
    graph = ranged(single("div", [np.float32([1, -3]), IMAGE], **NONE), {"x1": (1.0, 2.0), "div_0": (-3.0, 1.0)})
    x = np.random.default_rng(3).uniform(1, 2, (2, *IMAGE)).astype(np.float32)
    made = quantized(graph, [f"asymmetric={asymmetric}"])
    assert [n.operator for n in made.nodes] == ["div"]
    assert np.array_equal(run(made, [x])["div_0_Div"], np.float32([1, -3]) / x)


def engine(graph: Graph, operator: str, *sets: str) -> str:
    (node,) = (n for n in quantized(graph, sets).nodes if n.operator == operator)
    return node.attributes.text("engine")


@pytest.mark.parametrize(("low", "high", "kind"), [
    (1.0, 64.0, "INT8"), (1.0, np.nextafter(np.float32(64), np.float32(99)), "F16"), (0.5, 32.0, "INT8"),
    (0.5, 32.5, "F16"),
])  # fmt: skip
def test_sums_of_ranges_that_lie_apart(low: float, high: float, kind: str) -> None:
    for a, b in ((low, high), (high, low)):
        for asymmetric in ("false", "true"):
            ranges = {"a": (-a, a / 2), "b": (-b / 2, b), "y": (-b, b)}
            assert engine(binary("add", ranges), "add", f"asymmetric={asymmetric}") == kind


@pytest.mark.parametrize(("reach", "kinds"), [(2.0, ("INT8", "F32")), (2.0001, ("F16", "F16")), (0.5, ("INT8", "F32"))])
def test_differences_whose_operands_reach_further(reach: float, kinds: tuple[str, str]) -> None:
    for name, other in ("ab", "ba"):
        ranges = {name: (-reach, 0.25), other: (-0.25, 0.5), "y": (-1.0, 2.0)}
        found = [engine(binary("sub", ranges), "sub", f"asymmetric={a}") for a in ("false", "true")]
        assert tuple(found) == kinds


@pytest.mark.parametrize("reach", ["operand", "constant", "result"])
@pytest.mark.parametrize(("constant", "kinds"), [
    (NUMBER, ("INT8", "INT8")), (CHANNELS, ("INT8", "F32")), (WIDTH, ("INT8", "F32")),
])  # fmt: skip
def test_differences_from_a_constant(constant: Array, kinds: tuple[str, str], reach: str) -> None:
    """They are integers unless x or the constant reaches further than the result."""
    largest = float(np.abs(constant).max())
    high, low = {"operand": (1.0, -9.0), "constant": (largest * 0.99, -0.1), "result": (5.0, -1.0)}[reach]
    graph = ranged(single("sub", [constant, IMAGE], **NONE), {"x1": (low, 0.1), "sub_0": (-0.1, high)})
    found = tuple(engine(graph, "sub", f"asymmetric={a}") for a in ("false", "true"))
    assert found == (kinds if reach == "result" else ("F16", "F16"))


def test_what_nobody_reads_is_no_reader() -> None:
    """In the live tool, too: a rectifier on an input makes it uint8, whatever else reads it for nothing."""
    b = GraphBuilder("idle")
    x = b.input("x", IMAGE, FLOAT)
    y, idle = (b.add(operator, [x], IMAGE, FLOAT) for operator in ("relu", "tanh"))
    b.add("exp", [idle], IMAGE, FLOAT)
    graph = b.build([y])
    made = quantized(ranged(graph, {graph.tensors[t].name: (-1.0, 1.0) for t in (x, y, idle)}))
    assert [n.operator for n in made.nodes] == ["quantize", "relu", "dequantize"]
    assert made.tensors[made.nodes[0].outputs[0]].dtype is DType.UINT8


@pytest.mark.parametrize(("shape", "kind"), [((3, 5), "INT8"), ((1, 5), "INT8"), ((1, 3, 5), "F16"), ((5,), "F16")])
def test_softmax_over_the_second_of_two_axes(shape: tuple[int, ...], kind: str) -> None:
    graph = ranged(single("softmax", [shape], shape, beta=1.0), {"x0": (-1.0, 1.0)})
    assert engine(graph, "softmax") == kind


@pytest.mark.parametrize(("size", "window", "stride", "padding", "kind"), [
    ((4, 4), (2, 2), (2, 2), "valid", "INT8"), ((5, 4), (2, 2), (2, 2), "valid", "F32"),
    ((4, 5), (2, 2), (2, 2), "valid", "F32"), ((5, 5), (3, 3), (2, 2), "valid", "INT8"),
    ((5, 6), (3, 3), (1, 1), "same", "INT8"), ((6, 6), (3, 3), (3, 3), "valid", "INT8"),
    ((7, 6), (3, 3), (3, 3), "valid", "F32"), ((6, 7), (3, 3), (3, 3), "valid", "F32"),
])  # fmt: skip
def test_averages_that_leave_pixels_over(
    size: tuple[int, int], window: tuple[int, int], stride: tuple[int, int], padding: str, kind: str
) -> None:
    sides = size if padding == "same" else tuple((n - k) // s + 1 for n, k, s in zip(size, window, stride, strict=True))
    options = {"padding": padding, "filter_height": window[0], "filter_width": window[1]}
    options |= {"stride_h": stride[0], "stride_w": stride[1]}
    graph = single("average_pool_2d", [(1, *size, 2)], (1, *sides, 2), **options)
    graph = ranged(graph, {"x0": (-1.0, 2.0), "average_pool_2d_0": (-1.0, 2.0)})
    assert engine(graph, "average_pool_2d", "asymmetric=true") == kind
    assert engine(graph, "average_pool_2d") == "INT8"


@pytest.mark.parametrize(("constant", "is_signed"), [
    (np.float32([[[[0, 1]]]]) * WIDTH, False), (np.float32([[[[-0.5, 1]]]]) * WIDTH, True),
])  # fmt: skip
@pytest.mark.parametrize(("least", "may_be_negative"), [(0.0, False), (-0.0, False), (-1e-6, True)])
def test_products_that_begin_at_zero(constant: Array, is_signed: bool, least: float, may_be_negative: bool) -> None:
    """A file's range below 0 holds only where an operand may be negative."""
    graph = quantized(unary("mul", {"x": (least, 2.0), "y": (-2.0, 8.0)}, constant, **NONE))
    (line,) = (line for line in graph.extra.table.lines if line.name == "y_Mul")
    assert line.minimum == (-2.0 if is_signed or may_be_negative else 0.0)
    assert line.threshold == line.maximum == 8.0


@pytest.mark.parametrize(("find", "bits", "scale", "is_taken"), [
    (find_multiplier, 8, 2.0**30, False), (find_multiplier, 8, 2.0**30 - 64, True),
    (find_multiplier, 32, 2.0**30, False), (find_multiplier, 32, 2.0**30 - 64, True),
    (find_multiplier, 8, 2.0**-31 * 1.001, True), (find_multiplier, 8, 2.0**-31, False),
    (find_multiplier, 32, 2.0**-31 * 1.001, True), (find_multiplier, 32, 2.0**-31, False),
    (find_normalized_multiplier, 32, 2.0**-32, True), (find_normalized_multiplier, 32, 2.0**-33, False),
    (find_normalized_multiplier, 8, 2.0**-56, True), (find_normalized_multiplier, 8, 2.0**-57, False),
    (find_normalized_multiplier, 32, 2.0**30, False), (find_normalized_multiplier, 32, 2.0**30 - 64, True),
])  # fmt: skip
def test_the_ends_of_multipliers(find: Any, bits: int, scale: float, is_taken: bool) -> None:
    """m * 2^-s with s up to 30 of the tool's search, up to 62 of the manual's form; scales below 2^30."""
    if not is_taken:
        with pytest.raises(UnsupportedError, match=f"which no multiplier of {bits} bits"):
            find(scale, bits)
    else:
        found = find(scale, bits)
        exact = float(found.multiplier[0]) * 2.0 ** -int(found.shift[0])
        assert exact == pytest.approx(scale, rel=1.01 if find is find_multiplier and scale < 1 else 2.0**-6)


THIRD = np.float32(1 / 3)
SEVERAL_THIRDS = np.arange(1, 5, dtype=np.float32).reshape(4, 1) * THIRD


@pytest.mark.parametrize(("operator", "operands", "options", "is_rounded"), [
    *((o, [IMAGE, THIRD], NONE, [False]) for o in ("add", "sub")),
    *((o, [IMAGE, SEVERAL_THIRDS], NONE, [True]) for o in ("add", "sub", "mul", "maximum")),
    ("add", [np.array(THIRD), IMAGE], NONE, [False]),
    ("mul", [IMAGE, np.array(THIRD)], NONE, [True]),
    ("conv_2d", [IMAGE, WEIGHTS * THIRD, BIAS * THIRD], WINDOW, [True, False]),
    ("conv_2d", [IMAGE, WEIGHTS * THIRD], WINDOW, [True]),
    ("fully_connected", [(3, 2), np.full((5, 2), THIRD), np.full(5, THIRD)], NONE, [True, True]),
    ("prelu", [IMAGE, np.float32([THIRD, -THIRD])], {}, [False]),
])  # fmt: skip
@pytest.mark.parametrize("mode", ["F16", "F32"])
def test_constants_of_layers_in_reals(
    operator: str, operands: list[Operand], options: dict[str, Any], is_rounded: list[bool], mode: str
) -> None:
    """docs/targets/tpu_mlir.md#files: weights are rounded to float16, biases of convolutions and one number of a sum
    are not."""
    operands = [np.array(o) if isinstance(o, np.float32) else o for o in operands]
    shape = (3, 5) if operator == "fully_connected" else IMAGE
    graph = single(operator, operands, shape, **options)
    limits = {graph.tensors[t].name: (-1.0, 1.0) for t in (*graph.inputs, *graph.outputs)}
    made = quantized(ranged(graph, limits), (), (f"*:mode={mode}",))
    (node,) = (n for n in made.nodes if n.operator == operator)
    found = [made.tensors[t].data for t in node.inputs if t >= 0 and made.tensors[t].is_constant]
    given = [o for o in operands if isinstance(o, np.ndarray)]
    for data, value, rounded in zip(found, given, is_rounded, strict=True):
        wanted = value.astype(np.float16).astype(np.float32) if rounded and mode == "F16" else value
        assert np.array_equal(data, wanted)


@pytest.mark.parametrize(("operator", "is_unrounded"), [
    ("resize_bilinear", True), ("resize_nearest_neighbor", True), ("tanh", False), ("mean", False),
])  # fmt: skip
@pytest.mark.parametrize("mode", ["F16", "F32"])
def test_what_float16_does_not_round_is_quantized_as_float16(operator: str, is_unrounded: bool, mode: str) -> None:
    """docs/rules/tpu_mlir_operators.md#elementwise-operators: the simulator leaves such results in float32, and takes
    them for float16 behind."""
    b = GraphBuilder("reals")
    x, y = b.input("x", IMAGE, FLOAT), (1, 12, 12, 2)
    if operator == "tanh":
        z, y = b.add(operator, [x], IMAGE, FLOAT), IMAGE
    elif operator == "mean":
        y = (1, 1, 1, 2)
        z = b.add(operator, [x, b.constant("axes", whole(1, 2))], y, FLOAT, keep_dims=True)
    else:
        z = b.add(operator, [x, b.constant("size", whole(12, 12))], y, FLOAT)
    graph = b.build([b.add("exp", [z], y, FLOAT)])
    graph = ranged(graph, {tensor.name: (-1.0, 1.0) for tensor in graph.tensors if not tensor.is_constant})
    made = quantized(graph, (), (f"{operator}:mode={mode}",))
    (last,) = (n for n in made.nodes if n.operator == "quantize" and n.inputs[0] not in made.inputs)
    assert last.attributes.boolean("half", False) == (is_unrounded and mode == "F16")


IN_FLOAT32 = ("tanh", "logistic", "elu", "gelu", "sin", "cos", "sqrt", "rsqrt", "average_pool_2d", "mean")
IN_FLOAT16 = ("exp", "hard_swish", "softmax", "relu_n1_to_1", "round", "floor", "sign", "abs", "reduce_max",
              "max_pool_2d", "mean of channels")  # fmt: skip


@pytest.mark.parametrize(
    ("operator", "kind"), [*((o, "F32") for o in IN_FLOAT32), *((o, "F16") for o in IN_FLOAT16), ("reshape", "INT8")]
)
@pytest.mark.parametrize("mode", ["F16", "F32"])
def test_what_asks_for_float16_may_get_float32(operator: str, kind: str, mode: str) -> None:
    """As the live TPU-MLIR lowers one layer of each with `*:mode=F16`: the type of its result."""
    b = GraphBuilder("asked")
    x, shape = b.input("x", IMAGE, FLOAT), IMAGE
    name, _, of_channels = operator.partition(" of ")
    options: dict[str, Any] = {}
    operands = [x]
    if name in ("mean", "reduce_max"):
        shape = (1, 4, 4, 1) if of_channels else (1, 1, 1, 2)
        operands.append(b.constant("axes", whole(*((3,) if of_channels else (1, 2)))))
        options = {"keep_dims": True}
    elif name == "reshape":
        shape = (1, 16, 2)
        operands.append(b.constant("shape", whole(*shape)))
    elif name.endswith("pool_2d"):
        shape, options = (1, 2, 2, 2), {**WINDOW, "stride_h": 2, "stride_w": 2, "filter_height": 2, "filter_width": 2}
    graph = b.build([b.add(name, operands, shape, FLOAT, **options)])
    graph = ranged(graph, {tensor.name: (0.5, 1.0) for tensor in graph.tensors if not tensor.is_constant})
    made = quantized(graph, (), (f"{name}:mode={mode}",))
    (node,) = (n for n in made.nodes if n.operator == {"rsqrt": "pow"}.get(name, name))
    assert node.attributes.text("engine") == ("F32" if mode == "F32" and name != "reshape" else kind)
