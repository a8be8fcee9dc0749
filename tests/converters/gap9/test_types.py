"""Which type each tensor gets: what was observed when the vendor's tool was run on a model made for the question."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.gap9_golden import quantized
from tests.support.gap9_nets import Net
from tests.support.gap9_types import check, check_type, convert, names, output_of, shown
from tflq.converters.gap9.types.network import UnitCell, UnitState
from tflq.converters.gap9.types.records import Choice, Codes, Decision
from tflq.converters.gap9.types.resolve import Resolved, Resolver
from tflq.converters.gap9.widths import precision_plan
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Range
from tflq.interpreter import Engine, lower

WIDE = (-4.0, 4.0)
RECTIFIED = (0.0, 4.3)
NE16, SQ8 = "gap9-ne16", "gap9-sq8"


@pytest.mark.parametrize("follower", ["filter", "padded", "mean"])
@pytest.mark.parametrize("target", [NE16, SQ8])
def test_range_of_relu6(target: str, follower: str) -> None:
    net = Net()
    x = net.conv(net.x, RECTIFIED, activation="relu6")
    y = net.mean(x, RECTIFIED) if follower == "mean" else net.conv(x, WIDE, (3, 3) if follower == "padded" else (1, 1))
    graph = convert(net, y, target)
    name = "CONV_2D_0_0_activation"
    if target == NE16:
        check(graph, name, "uint8", 6 / 255, 0)
        if follower == "mean":
            check(graph, "MEAN_0_1_qin0", "int8", 4.3 / 127, 0)
    elif follower == "filter":
        check(graph, name, "int8", 6 / 255, -128)
    else:
        check(graph, name, "int8", (4.3 if follower == "padded" else 6) / 127, 0)
    check_type(output_of(graph, "CONV_2D_0_0"), *shown(output_of(graph, name)))


def test_who_writes_int8_on_ne16() -> None:
    for activation, inserted in (("none", False), ("relu", True)):
        net = Net()
        y = net.mean(net.conv(net.x, RECTIFIED if inserted else WIDE, activation=activation), WIDE)
        graph = convert(net, y, NE16)
        assert ("MEAN_0_1_qin0" in names(graph)) == inserted
        assert ("MEAN_0_1_trans" in names(graph)) == inserted
        assert ("CONV_2D_0_0_trans_out0" in names(graph)) != inserted


def test_mixed_readers() -> None:
    net = Net()
    x = net.conv(net.x, WIDE)
    y = net.conv(x, WIDE)
    z = net.binary("mul", x, y, WIDE)
    graph = convert(net, z, NE16)
    # NNTool's own answer to this network: the first attempt that lowers the number of conflicts is kept.
    check(graph, "CONV_2D_0_0", "int8", 4 / 127, 0)
    check(graph, "CONV_2D_0_1_qin0", "uint8", 8 / 255, 128)
    check(graph, "CONV_2D_0_1", "uint8", 8 / 255, 128)
    check(graph, "MUL_0_2_qin1", "int8", 4 / 127, 0)


def test_equal_conversions_are_shared() -> None:
    net = Net()
    x = net.conv(net.x, RECTIFIED, activation="relu")
    y = net.binary("mul", x, x, (0.0, 9.0))
    z = net.conv(y, WIDE, (3, 3))
    out = net.binary("mul", z, x, WIDE)
    graph = convert(net, out, NE16)
    assert [n for n in names(graph) if "_qin" in n].count("MUL_0_1_qin0") == 1
    assert not any(n.startswith("MUL_0_3_qin") for n in names(graph))


def test_depthwise_5x5_falls_back() -> None:
    net = Net()
    x = net.depthwise(net.conv(net.x, WIDE), WIDE, kernel=5)
    graph = convert(net, net.conv(x, WIDE), NE16)
    node = next(n for n in graph.nodes if n.operator == "depthwise_conv_2d")
    assert node.attributes.text("engine") == "sq8"
    assert "5x5" in node.attributes.text("engine_reason")
    check(graph, "CONV_2D_0_0", "int8", 4 / 127, 0)
    assert shown(output_of(graph, "DEPTHWISE_CONV_2D_0_1"))[0] == "int8"
    assert shown(output_of(graph, "CONV_2D_0_2_qin0"))[0] == "uint8"


@pytest.mark.parametrize(
    ("target", "limits", "kernel", "expected"),
    [
        (NE16, (-1.0, 3.0), (1, 1), ("uint8", 4 / 255, 64)),
        (SQ8, (-1.0, 3.0), (1, 1), ("int8", 3 / 127, 0)),
        (SQ8, (0.0, 3.0), (1, 1), ("int8", 3 / 255, -128)),
        (SQ8, (0.0, 3.0), (3, 3), ("int8", 3 / 127, 0)),
    ],
)
def test_graph_input(
    target: str, limits: tuple[float, float], kernel: tuple[int, int], expected: tuple[str, float, int]
) -> None:
    net = Net(limits)
    graph = convert(net, net.conv(net.x, WIDE, kernel), target)
    check_type(graph.tensors[graph.inputs[0]].affine, *expected)


@pytest.mark.parametrize(("target", "kind", "zero_point"), [(NE16, "uint8", 128), (SQ8, "int8", 0)])
def test_graph_output_is_symmetric(target: str, kind: str, zero_point: int) -> None:
    net = Net()
    y = net.conv(net.x, (-1.0, 3.0))
    check(convert(net, y, target), "CONV_2D_0_0", kind, 3 / 127, zero_point)
    graph = convert(net, y, target, sets=["allow_asymmetric_out=true"])
    assert shown(output_of(graph, "CONV_2D_0_0"))[2] == {NE16: 64, SQ8: -64}[target]


@pytest.mark.parametrize(
    ("target", "follower", "expected"),
    [
        (NE16, "conv", ("uint8", 1 / 255, 0)),
        (NE16, "mean", ("int8", 0.99609375 / 127, 0)),
        (NE16, "mul", ("int8", 1 / 127, 0)),
        (SQ8, "conv", ("int8", 1 / 127, 0)),
        (SQ8, "mean", ("int8", 1 / 127, 0)),
        (SQ8, "padded", ("int8", 1 / 127, 0)),
    ],
)
def test_fused_sigmoid(target: str, follower: str, expected: tuple[str, float, int]) -> None:
    net = Net()
    x = net.unary("logistic", net.conv(net.x, WIDE), (0.0, 0.99609375))
    if follower in ("conv", "padded"):
        y = net.conv(x, WIDE, (3, 3) if follower == "padded" else (1, 1))
    else:
        y = net.mean(x, (0.0, 1.0)) if follower == "mean" else net.binary("mul", x, x, (0.0, 1.0))
    graph = convert(net, y, target)
    check(graph, "LOGISTIC_0_1", *expected)
    check(graph, "CONV_2D_0_0", "int32", 2.0**-12, 0)


def test_fused_tanh_on_ne16() -> None:
    net = Net()
    graph = convert(net, net.conv(net.unary("tanh", net.conv(net.x, WIDE), (-1.0, 0.9921875)), WIDE), NE16)
    check(graph, "TANH_0_1", "uint8", 2 / 255, 128)


@pytest.mark.parametrize("operator", ["tanh", "logistic"])
def test_curves_that_stand_alone(operator: str) -> None:
    net = Net()
    x = net.binary("add", net.x, net.conv(net.x, WIDE), WIDE)
    graph = convert(net, net.conv(net.unary(operator, x, (-1.0, 1.0)), WIDE), SQ8)
    check(graph, "ADD_0_1", "int8", 8 / 127, 0)
    check(graph, f"{operator.upper()}_0_2", "int8", 1 / 127, 0)
    graph = convert(net, net.conv(net.unary(operator, x, (-1.0, 1.0)), WIDE), NE16)
    check(graph, "ADD_0_1", "int8", 4 / 127, 0)
    check(graph, f"{operator.upper()}_0_4_qin0", "int8", 8 / 127, 0)


def test_hard_swish_beside_a_filter_and_alone() -> None:
    net = Net((-3.0, 4.0))
    x = net.unary("hard_swish", net.x, (-0.375, 4.0))
    y = net.unary("hard_swish", net.conv(x, WIDE), (-0.375, 4.0))
    graph = convert(net, net.conv(y, WIDE), NE16)
    check(graph, "HARD_SWISH_0_0", "int8", 4 / 127, 0)
    check_type(graph.tensors[graph.inputs[0]].affine, "int8", 6 / 127, 0)
    check(graph, "CONV_2D_0_1", "int32", 6 / 127, 0)
    assert shown(output_of(graph, "HARD_SWISH_0_2"))[0] == "uint8"


def test_the_input_of_a_hard_swish_holds_wide_ranges() -> None:
    """Its 32-bit input: 6 / 127, or more where the range needs it."""
    for low, high, scale in ((-0.4, 1e9, 1e9 / (2**31 - 1)), (-2e9, 1.0, 2e9 / 2**31), (-1.0, 1.0, 6 / 127)):
        net = Net()
        y = net.unary("hard_swish", net.conv(net.x, (low, high)), (-0.375, 4.0))
        check(convert(net, net.conv(y, WIDE), NE16), "CONV_2D_0_0", "int32", scale, 0)


def test_filters_on_ne16_have_a_choice_of_width() -> None:
    net = Net()
    y = net.unary("relu", net.conv(net.x, WIDE), RECTIFIED)
    graph = net.graph(net.conv(y, WIDE))
    plan = precision_plan(graph, parse_settings(find_target(NE16).settings))
    assert [(layer.index, layer.operator, len(layer.widths)) for layer in plan.layers] == [
        (0, "conv_2d", 7),
        (2, "conv_2d", 7),
    ]


@pytest.mark.parametrize("bits", [8, 4, 3, 2])
def test_widths_to_choose_from_end_with_what_is_set(bits: int) -> None:
    """A filter with 2 bits has no choice, nor has one whose width a rule names: their bytes are fixed."""
    net = Net()
    graph = net.graph(net.conv(net.conv(net.x, WIDE, outputs=3), WIDE, outputs=5))
    sets = [f"weight_bits={bits}"]
    plan = precision_plan(graph, parse_settings(find_target(NE16).settings, sets))
    wanted = [[(b, -(-size * b // 8)) for b in range(bits, 1, -1)] for size in (12, 15)]
    assert [[(w.bits, w.size_bytes) for w in layer.widths] for layer in plan.layers] == (wanted if bits > 2 else [])
    assert plan.fixed_bytes == (0 if bits > 2 else 3 + 4)
    named = precision_plan(graph, parse_settings(find_target(NE16).settings, sets, [f"1:weight_bits={bits}"]))
    assert [layer.index for layer in named.layers] == ([0] if bits > 2 else [])
    assert named.fixed_bytes == -(-15 * bits // 8) + (3 if bits == 2 else 0)


@pytest.mark.parametrize(("target", "zero_point"), [(NE16, 0), (SQ8, -128)])
def test_concatenation_takes_the_largest_scale(target: str, zero_point: int) -> None:
    net = Net()
    x = net.unary("logistic", net.conv(net.x, WIDE), (0.0, 0.99609375))
    y = net.conv(net.x, RECTIFIED, activation="relu")
    graph = convert(net, net.conv(net.join([x, y], RECTIFIED), WIDE), target)
    for name in ("LOGISTIC_0_1", "CONV_2D_0_2_activation", "CONCATENATION_0_3"):
        check(graph, name, "uint8" if target == NE16 else "int8", 4.3 / 255, zero_point)


def test_a_product_beside_a_convolution_is_converted() -> None:
    net = Net()
    x = net.binary("mul", net.x, net.x, (0.0, 1.0))
    y = net.conv(net.x, RECTIFIED, activation="relu")
    graph = convert(net, net.conv(net.join([x, y], RECTIFIED), WIDE), NE16)
    assert "CONCATENATION_0_2_qin0" in names(graph)
    check(graph, "CONCATENATION_0_2", "uint8", 4.3 / 255, 0)


def test_pools_move_in_front_of_rectifiers() -> None:
    net = Net()
    x = net.pool(net.conv(net.x, RECTIFIED, (3, 3), activation="relu"), RECTIFIED)
    graph = convert(net, net.conv(x, WIDE), NE16)
    assert [n.operator for n in graph.nodes] == ["conv_2d", "max_pool_2d", "relu", "conv_2d"]
    assert {n.attributes.text("fusion", "") for n in graph.nodes[:3]} == {"CONV_2D_0_0_fusion"}
    assert graph.nodes[2].name == "CONV_2D_0_0_activation"
    net = Net()
    x = net.pool(net.conv(net.x, RECTIFIED, (3, 3), activation="relu"), RECTIFIED, "average")
    graph = convert(net, net.conv(x, WIDE), NE16)
    assert [n.attributes.text("fusion", "") for n in graph.nodes[:3]] == ["CONV_2D_0_0_fusion"] * 2 + [""]


def test_a_padded_pool_is_symmetric_on_sq8() -> None:
    net = Net()
    x = net.pool(net.conv(net.x, (-1.0, 3.0)), (-1.0, 3.0), size=3, padding="same")
    graph = convert(net, net.conv(x, WIDE), SQ8)
    check(graph, "MAX_POOL_2D_0_1", "int8", 3 / 127, 0)
    graph = convert(net, net.conv(x, WIDE), NE16)
    check(graph, "MAX_POOL_2D_0_1", "uint8", 4 / 255, 64)


def test_ranges_from_zero_are_rectified() -> None:
    net = Net()
    x = net.conv(net.x, RECTIFIED)
    y = net.pool(x, RECTIFIED)
    z = net.conv(y, (0.0, 6.0))
    graph = convert(net, net.dense(z, (0.0, 2.0)), NE16)
    assert [n.operator for n in graph.nodes] == [
        "conv_2d",
        "max_pool_2d",
        "relu",
        "conv_2d",
        "relu6",
        "fully_connected",
    ]


def test_parallel_convolutions_are_merged() -> None:
    net = Net()
    x, y = net.conv(net.x, (-1.0, 3.0), (3, 3)), net.conv(net.x, (-2.0, 2.0), (3, 3))
    graph = convert(net, net.conv(net.binary("mul", x, y, WIDE), WIDE), NE16)
    assert [n.operator for n in graph.nodes][:3] == ["conv_2d", "split", "mul"]
    check(graph, "CONV_2D_0_0_merged", "int8", 3 / 127, 0)
    x, y = net.conv(net.x, (-5.0, 1.0), (3, 3)), net.conv(net.x, (-2.0, 3.0), (3, 3))
    lower_end = convert(net, net.conv(net.binary("mul", x, y, WIDE), WIDE), NE16)
    check(lower_end, next(name for name in names(lower_end) if name.endswith("_merged")), "int8", 5 / 128, 0)
    plain = convert(net, net.binary("mul", x, net.conv(net.x, WIDE), WIDE), NE16)
    assert "split" not in [n.operator for n in plain.nodes]


def test_equal_operators_are_one() -> None:
    net = Net()
    x = net.conv(net.x, WIDE)
    y = net.binary("add", net.pool(x, WIDE), net.pool(x, WIDE), WIDE)
    graph = convert(net, net.conv(y, WIDE), SQ8)
    assert [n.operator for n in graph.nodes].count("max_pool_2d") == 1


def test_the_files_own_quantize_goes() -> None:
    net = Net()
    x = net.unary("quantize", net.conv(net.x, (-1.0, 3.0)), (-8.0, 8.0))
    graph = convert(net, net.conv(x, WIDE), NE16)
    assert "quantize" not in [n.operator for n in graph.nodes]
    check(graph, "CONV_2D_0_0", "uint8", 4 / 255, 64)


@pytest.mark.parametrize(("largest", "lost"), [(4.0, 0), (8.0, 1), (20.0, 2)])
def test_16_bit_inputs_give_up_bits(largest: float, lost: int) -> None:
    # max|y| / (S_x * S_w) is about 2^29.3, 2^30.3, 2^31.6: one bit more than its logarithm, rounded up, against 31
    net = Net((-1.0, 3.0))
    y = net.conv(net.x, (-largest, largest), scale=0.0001)
    graph = convert(net, y, NE16, sets=["feature_bits=16"])
    check_type(graph.tensors[graph.inputs[0]].affine, "uint16", 4 / 65535 * 2**lost, 16384)
    if lost == 2:
        with pytest.raises(UnsupportedError, match="int32 ends at"):
            convert(net, y, NE16, sets=["feature_bits=16", "max_precision_limit=0"])


def test_16_bit_features_around_int8_operators() -> None:
    net = Net()
    x = net.mean(net.conv(net.x, RECTIFIED, activation="relu"), RECTIFIED)
    graph = convert(net, net.unary("softmax", net.dense(x, WIDE), (0.0, 1.0), beta=1.0), NE16, sets=["feature_bits=16"])
    check(graph, "CONV_2D_0_0_activation", "uint16", 4.3 / 65535, 0)
    check(graph, "MEAN_0_1_qin0", "int8", 4.3 / 127, 0)
    check(graph, "FULLY_CONNECTED_0_2_qin0", "uint16", 4.3 / 65535, 0)
    check(graph, "FULLY_CONNECTED_0_2", "int16", 2.0**-12, 0)
    check(graph, "SOFTMAX_0_3", "int16", 2.0**-15, 0)


def test_short_softmax() -> None:
    net = Net()
    y = net.unary("softmax", net.dense(net.x, WIDE), (0.0, 1.0), beta=1.0)
    check(convert(net, y, NE16, sets=["softmax_out_8bits=true"]), "SOFTMAX_0_1", "int8", 2.0**-7, 0)


def test_moves_keep_one_type() -> None:
    net = Net()
    x = net.conv(net.x, (-1.0, 3.0))
    halves = net.builder.constant("begin", np.array([0, 0, 0, 0], np.int32))
    size = net.builder.constant("size", np.array([1, 4, 8, 4], np.int32))
    y = net.add("slice", [x, halves, size], (1, 4, 8, 4), (-1.0, 3.0))
    axis = net.builder.constant("axis", np.array([1], np.int32))
    z = net.add("reverse_v2", [y, axis], (1, 4, 8, 4), (-1.0, 3.0))
    graph = convert(net, net.conv(z, WIDE), NE16)
    # The piece that the slice drops is a graph output of NNTool's, and asks for symmetry.
    for name in ("CONV_2D_0_0", "SLICE_0_1", "REVERSE_V2_0_2"):
        check(graph, name, "uint8", 3 / 127, 128)


@pytest.mark.parametrize("operator", ["sum", "reduce_max"])
def test_global_pools(operator: str) -> None:
    net = Net()
    x = net.conv(net.x, WIDE)
    axes = net.builder.constant("axes", np.array([1, 2], np.int32))
    y = net.add(operator, [x, axes], (1, 4), (-64.0, 64.0) if operator == "sum" else WIDE, keep_dims=False)
    graph = convert(net, net.dense(y, WIDE), NE16)
    # A maximum asks for no symmetry: the filter keeps its own asymmetric type, in int8.
    check(graph, "CONV_2D_0_0", "int8", 8 / 255 if operator == "reduce_max" else 4 / 127, 0)
    assert shown(output_of(graph, f"{operator.upper()}_0_1"))[::2] == ("int8", 0)


@pytest.mark.parametrize("numerics", ["exact", "nntool"])
def test_a_maximum_writes_what_is_demanded_and_nntool_takes_what_arrives(numerics: str) -> None:
    """As NNTool's dumps of drawn networks have it: int8 of S = 0.0187, Z = -26 in front, 0.0225 and 0 behind."""
    net = Net()
    x = net.conv(net.x, (-1.0, 3.0))
    axes = net.builder.constant("axes", np.array([3], np.int32))
    y = net.add("reduce_max", [x, axes], (1, 8, 8), (-1.0, 3.0), keep_dims=False)
    graph = convert(net, y, SQ8, sets=[f"numerics={numerics}"])
    check(graph, "REDUCE_MAX_0_1", "int8", 3 / 127, 0)
    check(graph, "CONV_2D_0_0", "int8", *((4 / 255, -64) if numerics == "nntool" else (3 / 127, 0)))
    (said,) = (node.attributes.text("departure") for node in graph.nodes if node.operator == "reduce_max")
    assert "for those of another one (17.25)" in said


@pytest.mark.parametrize("target", [NE16, SQ8])
def test_curves_behind_a_global_pool(target: str) -> None:
    """NNTool fuses a sigmoid, signed on NE16, too; a tanh stands alone, and asks for int8 of [-8, 8]."""
    for curve, range_ in (("logistic", (0.0, 1.0)), ("tanh", (-1.0, 1.0))):
        net = Net()
        mean = net.mean(net.conv(net.x, WIDE), (-2.0, 3.0))
        graph = convert(net, net.dense(net.add(curve, [mean], net.shapes[mean], range_), WIDE), target)
        fused = [n.attributes.text("fusion", "") for n in graph.nodes if n.operator in ("mean", curve)]
        assert fused == (["MEAN_0_1_fusion"] * 2 if curve == "logistic" else ["", ""])
        check(graph, f"{curve.upper()}_0_2", "int8", 1 / 127, 0)
        check(graph, "MEAN_0_1", *(("int32", 2.0**-12, 0) if curve == "logistic" else ("int8", 8 / 127, 0)))


def test_a_fully_connected_layer_that_is_read_has_the_relu_of_its_range() -> None:
    net = Net()
    last = net.dense(net.dense(net.x, RECTIFIED), RECTIFIED)
    graph = convert(net, last, NE16)
    assert [n.name for n in graph.nodes if n.operator == "relu"] == ["FULLY_CONNECTED_0_0_activation"]


def test_equal_quantize_nodes_stay_apart_beside_a_direct_reader() -> None:
    for direct in (False, True):
        net = Net()
        x = net.conv(net.x, RECTIFIED, activation="relu")
        outputs = [net.mean(x, RECTIFIED), net.mean(x, WIDE)] + [net.conv(x, WIDE)] * direct
        graph = lower(quantized(net.model(*outputs), NE16, [], []), "gap9")
        found = [n for n in graph.nodes if n.operator == "quantize" and n.name.startswith("MEAN")]
        assert [n.name for n in found] == ["MEAN_0_1_qin0", "MEAN_0_2_qin0"][: 1 + direct]


def _beside(net: Net, outputs: int, scale: float, groups: int, *, is_biased: bool = True, **options: int) -> int:
    """A convolution 2x2 of 8x8 pixels and 4 channels, with the fields of a window as they are given."""
    codes = net.random.integers(-127, 128, (outputs, 2, 2, 4 // groups)).astype(np.int8)
    zeros = np.zeros(outputs, np.int64)
    inputs = [net.x, net.builder.constant("w", codes, Affine(np.full(outputs, scale, np.float32), zeros, 0))]
    if is_biased:
        bias = net.random.integers(-500, 500, outputs).astype(np.int32)
        product = np.full(outputs, scale * net.limits[net.x][1] / 127.5, np.float32)
        inputs.append(net.builder.constant("b", bias, Affine(product, zeros, 0, 32)))
    else:
        inputs.append(-1)
    window = {
        "padding": "same",
        "stride_h": 1,
        "stride_w": 1,
        "dilation_h_factor": 1,
        "dilation_w_factor": 1,
        **options,
    }
    side = 8 if window["stride_h"] == window["stride_w"] == 1 and window["padding"] == "same" else 4
    return net.add("conv_2d", inputs, (1, side, side, outputs), WIDE, **window)


@pytest.mark.parametrize("target", [NE16, SQ8])
@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [
        ({}, {}, True),
        ({"stride_h": 2, "stride_w": 2}, {"stride_h": 2, "stride_w": 2}, True),
        ({"dilation_h_factor": 2}, {"dilation_h_factor": 2}, True),
        ({"dilation_h_factor": 2}, {}, False),
        ({"dilation_w_factor": 2}, {}, False),
        ({"stride_h": 2, "stride_w": 2}, {}, False),
    ],
)
def test_windows_of_convolutions_that_are_merged(
    target: str, first: dict[str, int], second: dict[str, int], merged: bool
) -> None:
    net = Net()
    outputs = [_beside(net, 3, 0.01, 1, **first), _beside(net, 3, 0.02, 1, is_biased=False, **second)]
    graph = lower(quantized(net.model(*outputs), target), "gap9")
    assert any(name.endswith("_merged") for name in names(graph)) == merged
    codes = net.random.integers(-128, 128, (2, 1, 8, 8, 4)).astype(np.int8)
    plain = Engine(net.graph(*outputs)).run([codes])
    into = graph.tensors[graph.inputs[0]].affine
    source = net.graph(*outputs).tensors[net.x].affine
    real = np.float64(codes.astype(np.int64) - source.zero_point[0]) * source.scale[0]
    feed = np.clip(np.floor(real / into.scale[0] + 0.5) + into.zero_point[0], into.minimum_code, into.maximum_code)
    found = Engine(graph).run([feed.astype(graph.tensors[graph.inputs[0]].dtype.storage)])
    for ours, theirs in zip(graph.outputs, net.graph(*outputs).outputs, strict=True):
        a, b = graph.tensors[ours].affine, net.graph(*outputs).tensors[theirs].affine
        mine = (found[ours].astype(np.float64) - a.zero_point[0]) * a.scale[0]
        his = (plain[theirs].astype(np.float64) - b.zero_point[0]) * b.scale[0]
        assert np.abs(mine - his).max() <= 0.12


@pytest.mark.parametrize(
    ("outputs", "groups", "layers", "merged"),
    [
        ((3, 3), (1, 1), [], True),
        ((3, 4), (1, 1), [], False),
        ((4, 4), (2, 2), [], False),
        ((4, 4), (2, 1), [], False),
        ((3, 3), (1, 1), ["0:weight_bits=4"], False),
        ((3, 3), (1, 1), ["0:weight_bits=4", "1:weight_bits=4"], True),
        ((3, 3, 3), (1, 1, 1), ["1:weight_bits=4"], True),
    ],
)
def test_convolutions_that_are_merged(
    outputs: tuple[int, ...], groups: tuple[int, ...], layers: list[str], merged: bool
) -> None:
    net = Net()
    made = [_beside(net, n, 0.01, g) for n, g in zip(outputs, groups, strict=True)]
    graph = quantized(net.model(*made), NE16, [], layers)
    assert any(name.endswith("_merged") for name in names(graph)) == merged
    assert sum(node.operator == "conv_2d" for node in graph.nodes) == len(made) - merged


@pytest.mark.parametrize("changed", [None, 0, 1, 2])
def test_members_follow_where_any_type_is_another(changed: int | None) -> None:
    """Inputs and outputs of what the members decided beside those of the unit."""

    def resolved(other: int | None) -> Resolved:
        tops = [np.float32([2 if place == other else 1]) for place in range(3)]
        ranges = [Range(np.float32([-1]), top) for top in tops]
        made = [Choice.made(range_, Codes(8, True), True) for range_ in ranges]
        return Resolved((Decision((made[0], made[1]), (made[2],)),))

    state = UnitState(resolved(None), resolved(changed))
    resolver = Resolver(str, (), is_filter=False, on_bytes=None, is_last=False)
    assert UnitCell(0, resolver, [], [], state).members_followed() == (changed is not None)
