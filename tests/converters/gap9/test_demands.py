"""How demands for types spread over NNTool's graph: who asks whom, and who takes an answer back."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.gap9_golden import quantized
from tests.support.gap9_nets import Net
from tests.support.gap9_types import check, check_type, convert, names, output_of
from tflq.converters.gap9.departures import departures_of
from tflq.converters.gap9.emit.hardware import constants_of
from tflq.errors import UnsupportedError
from tflq.graph import Affine, DType, GraphBuilder, Model
from tflq.interpreter import Engine, lower

WIDE = (-4.0, 4.0)
RECTIFIED = (0.0, 4.3)
NE16, SQ8 = "gap9-ne16", "gap9-sq8"


@pytest.mark.parametrize(("activation", "follows"), [("relu", True), ("relu6", False)])
def test_only_a_filter_that_keeps_its_output_follows_inside_a_fusion(activation: str, follows: bool) -> None:
    """The concatenation widens what the second filter reads; NNTool's M and N follow where a ReLU stands behind it."""
    net = Net()
    x = net.conv(net.x, (0.0, 1.0), activation="relu")
    inside = net.conv(x, (0.0, 2.0), activation=activation)
    joined = net.join([x, net.conv(net.x, (-4.0, 4.0), outputs=5)], (-4.0, 4.0))
    ends = net.conv(inside, WIDE), net.conv(joined, WIDE)
    graph = lower(quantized(net.model(*ends), NE16, ["numerics=nntool"], []), "gap9")
    node = next(n for n in graph.nodes if n.name == "CONV_2D_0_1")
    assert ("inside_scale" in node.attributes) == follows


def test_bits_of_m_inside_a_fusion_follow_the_bias_in_units_of_the_changed_input() -> None:
    """M and N as NNTool has them, run on the network: in units of what the filter reads the biases have 3 bits more."""

    class Biased(Net):
        def _bias(self, outputs: int) -> int:
            codes = np.array([40000, -13000, 21000, 9000, 50000][:outputs], np.int32)
            scales = Affine(np.full(outputs, 1e-4, np.float32), np.zeros(outputs, np.int64), 0, 32)
            return self.builder.constant("b", codes, scales)

    net = Biased()
    x = net.conv(net.x, (0.0, 1.0), activation="relu")
    inside = net.conv(x, (0.0, 2.0), activation="relu")
    joined = net.join([x, net.conv(net.x, (-4.0, 4.0), outputs=5)], (-4.0, 4.0))
    model = net.model(net.conv(inside, WIDE), net.conv(joined, WIDE))
    graph = lower(quantized(model, NE16, ["feature_bits=16", "numerics=nntool"], []), "gap9")
    constants = constants_of(graph)
    assert constants["CONV_2D_0_1/multiplier"].tolist() == [143, 41, 77, 227]
    assert constants["CONV_2D_0_1/shift"].tolist() == [4, 2, 3, 5]


def test_a_padded_pool_takes_an_asymmetric_demand() -> None:
    net = Net()
    x = net.conv(net.x, (-2.0, 1.0))
    pooled = net.add(
        "max_pool_2d",
        [x],
        (1, 8, 8, 4),
        (-2.0, 1.0),
        padding="same",
        stride_h=1,
        stride_w=1,
        filter_height=3,
        filter_width=3,
    )
    joined = net.join([pooled, net.conv(net.x, (-4.0, 2.0))], (-4.0, 2.0))
    graph = convert(net, net.conv(joined, WIDE), SQ8)
    check(graph, "MAX_POOL_2D_0_1", "int8", 6 / 255, 42)


def test_a_depthwise_filter_of_the_cluster_among_16_bit_features() -> None:
    """It reads int8 and writes int16; a ReLU6 whose [0, 6] is not the file's range cannot be typed with it."""
    net = Net()
    y = net.conv(net.depthwise(net.conv(net.x, RECTIFIED, activation="relu"), (0.0, 3.0), 5, "relu"), WIDE)
    graph = convert(net, y, NE16, sets=["feature_bits=16"])
    check(graph, "DEPTHWISE_CONV_2D_0_1_fusion_qin0", "int8", 4.3 / 127, 0)
    check(graph, "DEPTHWISE_CONV_2D_0_1_activation", "int16", 3 / 65535, -32768)
    check(graph, "CONV_2D_0_2_qin0", "uint16", 3 / 65535, 0)
    net = Net()
    y = net.depthwise(net.x, (0.0, 3.0), 5, "relu6")
    with pytest.raises(UnsupportedError, match="cannot type them together"):
        convert(net, y, NE16, sets=["feature_bits=16"])


@pytest.mark.parametrize(("activation", "kept"), [("none", 7 / 255), ("relu", 3 / 255)])
def test_a_filter_that_is_asked_and_then_gets_another_input_takes_its_answer_back(activation: str, kept: float) -> None:
    """The dropped piece asks for symmetry: the concatenation asks the filter, and then the filter's input changes."""
    net = Net()
    x = net.conv(net.x, (-4.0, 3.0))
    begin = net.builder.constant("begin", np.zeros(4, np.int32))
    size = net.builder.constant("size", np.array([1, 8, 8, 2], np.int32))
    cut = net.add("slice", [x, begin, size], (1, 8, 8, 2), (-4.0, 3.0))
    y = net.conv(x, (0.0, 3.0) if activation == "relu" else (-4.0, 3.0), (3, 3), activation=activation)
    graph = convert(net, net.conv(net.join([y, cut], (-4.0, 3.0)), WIDE), NE16)
    name = next(n.name for n in graph.nodes if n.operator == "conv_2d" and graph.nodes[0] is not n)
    check_type(output_of(graph, name), "uint8", kept, 0 if activation == "relu" else 146)
    assert any(n.startswith("CONCATENATION") and n.endswith("_qin0") for n in names(graph)), names(graph)


@pytest.mark.parametrize("numerics", ["exact", "nntool"])
def test_members_of_a_fusion_write_what_it_was_asked_for_in_vain(numerics: str) -> None:
    """The ReLU has [0, 3], the filter alone [-4, 3]: NNTool's two keep the symmetric type that was asked for."""
    net = Net()
    x = net.conv(net.x, (-4.0, 3.0))
    begin = net.builder.constant("begin", np.zeros(4, np.int32))
    end = net.builder.constant("end", np.array([1, 8, 8, 2], np.int32))
    step = net.builder.constant("step", np.ones(4, np.int32))
    masks = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)
    cut = net.add("strided_slice", [x, begin, end, step], (1, 8, 8, 2), (-4.0, 3.0), **masks)
    y = net.conv(x, (-4.0, 3.0), (3, 3), activation="relu")
    graph = convert(net, net.conv(net.join([y, cut], (-4.0, 3.0)), WIDE), NE16, sets=[f"numerics={numerics}"])
    node = next(
        n for n in graph.nodes if n.attributes.text("fusion", "").startswith("CONV_2D") and n.operator != "relu"
    )
    taken = next(n for n in graph.nodes if n.name.startswith("CONCATENATION") and n.operator == "quantize")
    if numerics == "exact":
        check_type(output_of(graph, node.name), "uint8", 3 / 255, 0)
        assert "outside_scale" not in node.attributes
        return
    check_type(output_of(graph, node.name), "uint8", 4 / 128, 128)
    for reader in (node, taken):
        assert reader.attributes.real("outside_scale") == pytest.approx(3 / 255)
        assert reader.attributes.integer("outside_zero_point") == 0


@pytest.mark.parametrize(("ratio", "fits"), [(1 + 3e-8, True), (1 + 1e-3, False)])
def test_a_concatenation_takes_scales_that_nntool_counts_as_equal(ratio: float, fits: bool) -> None:
    builder = GraphBuilder("joined")
    types = [Affine.per_tensor(0.0435 * factor, 0) for factor in (1.0, ratio)]
    inputs = [builder.input(f"x{i}", (1, 4), DType.INT8, affine) for i, affine in enumerate(types)]
    graph = builder.build([builder.add("concatenation", inputs, (1, 8), DType.INT8, types[0], axis=1)])
    if not fits:
        with pytest.raises(UnsupportedError, match="quantized otherwise"):
            lower(graph, "gap9")
        return
    rows = [np.arange(4, dtype=np.int8)[None, None] + 4 * i for i in range(2)]
    found = Engine(lower(graph, "gap9")).run(rows)[graph.outputs[0]]
    assert found.ravel().tolist() == list(range(8))


def test_an_attempt_on_which_no_type_fits_is_undone() -> None:
    """What the mean and the padded filter insist on meets in the second concatenation: NNTool puts a Quantize node."""
    net = Net()
    x = net.conv(net.x, (0.0, 1.8), (3, 3), activation="relu")
    x = net.join([x, net.conv(x, (0.0, 1.8), (3, 3), activation="relu6")], (0.0, 1.8))
    x = net.join([x, net.conv(x, (0.0, 1.8), (3, 3), activation="relu")], (0.0, 1.8))
    graph = convert(net, net.dense(net.mean(x, (0.0, 0.5)), WIDE), SQ8)
    assert [n for n in names(graph) if "_qin" in n] == ["CONCATENATION_0_4_qin0"]
    check_type(output_of(graph, "CONCATENATION_0_2"), "int8", 1.8 / 127, 0)
    check_type(output_of(graph, "CONCATENATION_0_4"), "int8", 6 / 127, 0)


@pytest.mark.parametrize("bits", [8, 16])
def test_a_filter_is_resolved_on_each_way_that_reaches_it(bits: int) -> None:
    """Two ways lead to the last layer; on the second nobody demands symmetry any more. NNTool's own answers."""
    net = Net()
    x = net.conv(net.x, (-4.0, 3.0))
    x = net.unary("leaky_relu", x, (-0.4, 3.0), alpha=0.1)
    y = net.binary("mul", x, x, (0.0, 9.0), activation="relu")
    y = net.binary("mul", y, y, (0.0, 80.0))
    z = net.binary("add", x, net.unary("tanh", net.conv(net.x, WIDE), (-1.0, 1.0)), (-2.0, 4.0))
    model = net.model(net.dense(y, (-3.0, 4.0)), net.conv(z, WIDE))
    graph = lower(quantized(model, NE16, [f"feature_bits={bits}"]), "gap9")
    if bits == 8:
        check(graph, "FULLY_CONNECTED_0_7", "uint8", 4 / 127, 128)
        assert "output_1_qin0" not in names(graph)
    else:
        check(graph, "FULLY_CONNECTED_0_7", "uint16", 7 / 65535, 28086)
        check(graph, "output_1_qin0", "uint16", 4 / 32767, 32768)


def test_a_16_bit_input_gives_up_bits_once_for_all_readers() -> None:
    """The two filters become one, which its outputs ask for int8: resolved again, it reckons from the first scale."""
    net = Net()
    x = net.conv(net.x, (0.0, 4.0), activation="relu")
    ends = net.conv(x, WIDE, scale=6e-5), net.conv(x, WIDE, scale=1e-5)
    graph = lower(quantized(net.model(*ends), NE16, ["feature_bits=16"]), "gap9")
    check(graph, "CONV_2D_0_0", "uint16", 4 * 4 / 65535, 0)


def test_a_concatenation_does_not_give_up_bits() -> None:
    """A Quantize node does, in front of the filter that asks for it."""
    net = Net()
    joined = net.join([net.conv(net.x, WIDE), net.conv(net.x, WIDE, (3, 3))], WIDE)
    y = net.conv(net.conv(joined, WIDE, scale=2e-5), WIDE)
    graph = lower(quantized(net.model(y), NE16, ["feature_bits=16"]), "gap9")
    name = next(n.name for n in graph.nodes if n.name.startswith("CONCATENATION"))
    check(graph, name, "uint16", 8 / 65535, 32768)
    check(graph, "CONV_2D_0_3_qin0", "uint16", 2 * 8 / 65535, 32768)


def test_a_concatenation_behind_a_filter_and_its_padded_reader_is_symmetric() -> None:
    """The concatenation's type comes first, then the padded filter's: NNTool's whole graph becomes symmetric."""
    net = Net()
    stated = (-2.0, 3.0)
    x = net.conv(net.x, stated, (3, 3), activation="relu")
    x = net.join([x, net.conv(x, stated, (3, 3))], stated)
    graph = convert(net, net.dense(net.pool(x, stated, "average"), WIDE), SQ8)
    assert not [n for n in names(graph) if "_qin" in n]
    for name in ("CONV_2D_0_0_activation", "CONV_2D_0_1", "CONCATENATION_0_2", "AVERAGE_POOL_2D_0_3"):
        check_type(output_of(graph, name), "int8", 3 / 127, 0)


def test_a_concatenation_that_follows_takes_the_largest_scale_and_no_demand() -> None:
    """Else the second concatenation would take the mean's type at once, and the first one stay behind."""
    net = Net()
    stated = (0.0, 3.0)
    x = net.conv(net.x, stated, (3, 3), activation="relu")
    x = net.join([x, net.conv(x, stated, (3, 3), activation="relu")], stated)
    x = net.join([x, net.conv(x, stated, (3, 3), activation="relu6")], stated)
    graph = convert(net, net.dense(net.mean(x, (0.0, 1.0)), WIDE), SQ8)
    assert not [n for n in names(graph) if "_qin" in n]
    for name in ("CONV_2D_0_0_activation", "CONCATENATION_0_2", "CONV_2D_0_3_activation", "CONCATENATION_0_4"):
        check_type(output_of(graph, name), "int8", 6 / 127, 0)


def test_a_reader_of_a_graph_input_that_was_asked_does_not_follow_it() -> None:
    """The sum asks the second filter for int8, the concatenation then its input: that filter gets a Quantize node."""
    net = Net()
    stated = (-4.0, 3.96875)  # scale 1/32 whether symmetric or not
    other = net.input(stated, (1, 8, 8, 4))
    a = net.unary("hard_swish", net.conv(net.x, (-4.0, 4.0)), (-0.4, 4.0))
    b = net.conv(other, stated)
    ends = net.conv(net.join([b, other], stated), (-5.0, 5.2)), net.conv(net.binary("add", a, b, WIDE), WIDE)
    graph = lower(quantized(net.model(*ends), NE16, [], []), "gap9")
    check_type(graph.tensors[graph.inputs[1]].affine, "int8", 1 / 32, 0)
    check(graph, "CONV_2D_0_2_qin0", "uint8", 1 / 32, 128)
    check(graph, "CONV_2D_0_2", "int8", 1 / 32, 0)
    check(graph, "CONCATENATION_0_3", "int8", 1 / 32, 0)


def test_edges_with_quantize_nodes_of_the_first_decision_come_last() -> None:
    """NNTool, run on the network: the Quantize node stands in front of the sum, not of the padded convolution."""
    net = Net()
    x = net.conv(net.x, (0.0, 1.06), activation="relu6")
    y = net.unary("logistic", net.conv(x, (-3.0, 5.0), (3, 3)), (0.0, 1.0))
    total = net.binary("add", x, net.conv(y, (-4.0, 9.8)), (0.0, 9.8), "relu")
    graph = convert(net, net.conv(total, (-1.0, 1.0)), SQ8)
    check(graph, "CONV_2D_0_0_activation", "int8", 1.06 / 127, 0)
    check(graph, "ADD_0_4_fusion_qin0", "int8", 6 / 127, 0)
    assert "CONV_2D_0_1_fusion_qin0" not in names(graph)


def test_a_fusion_that_is_asked_again_for_nothing_takes_back() -> None:
    """NNTool, run on the network: x + x reads uint8, the fusion's member writes int8; no Quantize node stands there."""
    net = Net()
    x = net.unary("leaky_relu", net.conv(net.x, (-1.2, 0.9)), (-0.12, 0.93), alpha=0.1)
    y = net.conv(net.x, (-8.0, 7.9))
    twice, total = net.binary("add", x, x, (-0.24, 1.87)), net.binary("add", x, y, (-8.5, 8.6))
    products = net.binary("mul", total, twice, (-8.5, 8.6)), net.binary("mul", y, twice, (-9.6, 7.0))
    model = net.model(net.conv(products[0], WIDE), net.conv(products[1], WIDE))
    graph = lower(quantized(model, NE16), "gap9")
    check(graph, "ADD_0_3", "uint8", 2.11 / 255, 29)
    check(graph, "ADD_0_4_qin0", "int8", 0.93 / 127, 0)
    check(graph, "MUL_0_5_qin1", "int8", 1.87 / 127, 0)
    assert "17.14" in departures_of(graph)["CONV_2D_0_0"]
    with pytest.raises(UnsupportedError, match=r"17\.14.*numerics=exact converts it"):
        quantized(model, NE16, ["numerics=nntool"])


def test_a_filter_on_ne16_does_not_follow_int8_inside_a_fusion() -> None:
    """M and N as NNTool has them, run on the network: the product asks the sigmoid for int8."""
    net = Net()
    x = net.unary("logistic", net.conv(net.x, (-30.0, 30.0)), (0.0, 0.99609375))
    rectified = net.conv(x, (0.0, 3.7), activation="relu")
    product = net.binary("mul", net.conv(net.x, (-3.0, 3.0)), x, (-3.0, 3.0))
    model = net.model(net.conv(rectified, (-2.0, 2.0)), net.conv(product, (-2.0, 2.0)))
    graph = lower(quantized(model, NE16, ["numerics=nntool"]), "gap9")
    check(graph, "CONV_2D_0_2_fusion_qin0", "uint8", 1 / 255, 0)
    constants = constants_of(graph)
    assert constants["CONV_2D_0_2/multiplier"].tolist() == [177, 83, 245, 85]
    assert constants["CONV_2D_0_2/shift"].tolist() == [16, 15, 17, 15]
    assert "CONV_2D_0_2" not in departures_of(graph)


def _sum_beside(other: str, first: bool) -> Model:
    """A sigmoid that a product, or a sum of int8, reads, and a sum with a ReLU, as its first operand or its second."""
    shape = (1, 5, 7, 4)
    net = Net(shape=shape)
    curve = net.add("logistic", [net.conv(net.x, WIDE, (3, 3))], shape, (0.0, 1.0))
    filtered = net.conv(net.x, (0.0, 6.4), (5, 5), activation="relu")
    total = net.add("add", [curve, filtered] if first else [filtered, curve], shape, (0.0, 7.0))
    signed = net.conv(net.x, WIDE)
    if other == "add":
        signed = net.add("add", [curve, net.add("mul", [signed, filtered], shape, WIDE)], shape, WIDE)
    else:
        signed = net.add("mul", [curve, signed], shape, WIDE)
    return net.model(net.conv(total, WIDE), net.conv(signed, WIDE))


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("other", ["mul", "add"])
def test_a_sum_with_a_relu_does_not_follow_one_operand(other: str, first: bool) -> None:
    """NNTool was run on these networks: the Add stays uint8 behind a Quantize node.

    Its members have followed where the operand that changed is the first: int8 scales, uint8 quantized values.
    """
    model = _sum_beside(other, first)
    graph = lower(quantized(model, NE16), "gap9")
    check(graph, "LOGISTIC_0_1", "int8", 0.007874015748031496, 0)
    check(graph, f"ADD_0_3_fusion_qin{int(not first)}", "uint8", 0.00392156862745098, 0)
    check(graph, "ADD_0_3", "uint8", 0.02745098039215686, 0)
    assert ("17.21" in departures_of(graph).get("ADD_0_3", "")) == first
    if first:
        with pytest.raises(UnsupportedError, match=r"17\.21.*numerics=exact"):
            quantized(model, NE16, ["numerics=nntool"])


def test_a_fusion_on_ne16_takes_back_what_it_was_asked_for_where_int8_is_written() -> None:
    """Squeeze and excitation among 16-bit features; NNTool was run on it: no Quantize node between the two filters."""
    net = Net()
    x = net.conv(net.x, (0.0, 19.0), activation="relu")
    axes = net.builder.constant("axes", np.array([1, 2], np.int32))
    mean = net.add("mean", [x, axes], (1, 1, 1, 4), (0.0, 2.9), keep_dims=True)
    gate = net.conv(net.conv(mean, (0.0, 0.02), activation="relu"), (-3.0, 3.7))
    product = net.add("mul", [x, net.unary("logistic", gate, (0.0, 1.0))], net.shapes[x], (0.0, 7.8))
    model = net.model(net.binary("add", x, net.conv(product, (-1.9, 19.5)), (-2.0, 19.5)))
    graph = lower(quantized(model, NE16, ["feature_bits=16", "numerics=nntool"]), "gap9")
    assert not any(node.name == "CONV_2D_0_3_fusion_qin0" for node in graph.nodes)
    assert output_of(graph, "CONV_2D_0_2_activation").scale[0] == pytest.approx(1.2207217244504564e-06, rel=1e-6)
