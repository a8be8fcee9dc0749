"""Layers whose result on the chip is not the right one are named, each with its reason."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.data import data_path
from tests.support.gap9_golden import quantized
from tests.support.gap9_nets import Net, encoding
from tflq import convert
from tflq.converters.gap9.departures import departures_of
from tflq.converters.tflite import read_model
from tflq.errors import UnsupportedError
from tflq.graph import Affine, DType, GraphBuilder, Model
from tflq.interpreter import Engine, lower
from tflq.interpreter.kernels.gap9.activations import KERNELS
from tflq.interpreter.kernels.gap9.elementwise import SumParams


@pytest.mark.parametrize(
    ("network", "layers"),
    [
        ("reduces", {"SUM_0_2": "17.2"}),
        ("m_tile", {"TILE_0_1": "17.3"}),
        ("dwodd", {"DEPTHWISE_CONV_2D_0_5": "17.1", "DEPTHWISE_CONV_2D_0_6": "17.8"}),
        ("unet_1_39_mm", {"CONV_2D_0_2": "17.7"}),
        (
            "actalone",
            {"CONV_2D_0_2": "18", "MUL_0_6": "generates no code for a lone MUL", "FULLY_CONNECTED_0_12": "17.15"},
        ),
        ("acts", {}),
    ],
)
def test_departures(tmp_path: Path, network: str, layers: dict[str, str]) -> None:
    found = convert(data_path("cases", "gap9_networks") / f"{network}.tflite", "gap9-ne16", tmp_path / "out")
    assert set(found.departures) == set(layers)
    for name, section in layers.items():
        assert section in found.departures[name]
    assert found.to_dict()["departures"] == dict(found.departures)
    listed = {row["layer"]: row["difference"] for row in found.to_dict()["differences"]}
    assert listed == dict(found.departures)
    assert "differs from NNTool here" in [table.title for table in found.tables()]
    shown = found.table("differences").lines
    assert shown == [f"  {name}: {text}" for name, text in found.departures.items()]


def _said(
    operator: str, kinds: list[tuple[tuple[int, ...], str, int]], constant: list[int] | None, **options: int | str
) -> str:
    """What is said of one operator of GAP9's types: those of its inputs, then that of its output."""
    b = GraphBuilder("one")
    types = [
        (shape, DType(kind), Affine.per_tensor(0.05, z, DType(kind).bits, kind[0] == "i")) for shape, kind, z in kinds
    ]
    operands = [b.input(f"x{i}", *of) for i, of in enumerate(types[:-1])]
    operands += [] if constant is None else [b.constant("c", np.array(constant, np.int32))]
    graph = b.build([b.add(operator, operands, *types[-1], **options)])
    return "; ".join(departures_of(lower(graph, "gap9")).values())


@pytest.mark.parametrize(
    ("shape", "times", "flawed"),
    [
        *(((1, 3, 4), [1, 2, 1], True), ((1, 3, 4), [1, 1, 2], True), ((1, 3, 1), [1, 2, 2], True)),
        *(((1, 3, 4), [1, 1, 1], False), ((1, 3, 1), [1, 1, 2], False), ((1, 1, 1), [1, 2, 3], False)),
    ],
)
def test_repetitions_that_nntool_orders_otherwise(shape: tuple[int, ...], times: list[int], flawed: bool) -> None:
    """Each element in its place is another order only along an axis of several."""
    out = tuple(n * k for n, k in zip(shape, times, strict=True))
    assert ("17.3" in _said("tile", [(shape, "int8", 0), (out, "int8", 0)], times)) == flawed


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16"])
def test_average_pools_of_16_bits_wrap(kind: str) -> None:
    window = {"padding": "valid", "stride_h": 2, "stride_w": 2, "filter_height": 2, "filter_width": 2}
    said = _said("average_pool_2d", [((1, 4, 4, 2), kind, 0), ((1, 2, 2, 2), kind, 0)], None, **window)
    assert ("17.4" in said) == kind.endswith("16")


@pytest.mark.parametrize("source", ["int8", "int16"])
@pytest.mark.parametrize("written", ["int8", "uint8", "int16", "uint16"])
def test_hard_swishes_from_16_bits_to_16_wrap(source: str, written: str) -> None:
    said = _said("hard_swish", [((1, 4), source, 0), ((1, 4), written, 0)], None)
    assert ("17.4" in said) == (source == "int16" and written.endswith("16"))


@pytest.mark.parametrize(("first", "second"), [(0, 0), (3, 0), (0, 3), (3, 3)])
def test_differences_keep_both_zero_points(first: int, second: int) -> None:
    types = [((1, 4), "uint8", first), ((1, 4), "uint8", second), ((1, 4), "uint8", 9)]
    assert ("17.5" in _said("sub", types, None)) == (first > 0 or second > 0)
    assert "17.5" not in _said("add", types, None)


def test_products_that_can_wrap_are_named() -> None:
    model = read_model(data_path("models", "vww_96_int8.tflite"))
    found = departures_of(lower(quantized(model, "gap9-sq8"), "gap9"))
    assert list(found) == ["DEPTHWISE_CONV_2D_0_23"]
    assert "in 1 channels: 122 (17.6)" in found["DEPTHWISE_CONV_2D_0_23"]


def test_two_hard_sigmoids_that_share_a_constant() -> None:
    """NNTool finds the first; the second product then takes the constant's quantized value for its number."""
    net = Net()
    sixth = net.builder.constant("sixth", np.array([127], np.int8), Affine.per_tensor(np.float32(1 / 6 / 127), 0))
    outputs = []
    for _ in range(2):
        x = net.conv(net.x, (0.0, 6.0), outputs=4 + len(outputs), activation="relu6")
        outputs.append(net.add("mul", [x, sixth], net.shapes[x], (0.0, 1.0), fused_activation_function="none"))
    for numerics, scale in (("exact", 1 / 6 / 127), ("nntool", 1.0)):
        graph = lower(quantized(net.model(*outputs), "gap9-ne16", [f"numerics={numerics}"]), "gap9")
        assert "17.10" in departures_of(graph)["MUL_0_3"]
        product = next(n for n in graph.nodes if n.name == "MUL_0_3")
        held = graph.tensors[product.inputs[1]]
        assert held.data is not None
        assert held.data.tolist() == [127]
        assert float(held.affine.scale[0]) == pytest.approx(scale, rel=0.01)


def test_a_maximum_with_a_relu_behind_it() -> None:
    """NNTool cannot quantize the two where negative numbers arrive; where a ReLU stands in front, it can."""
    for activation, range_, fails in (("none", (-1.0, 3.0), True), ("relu", (0.0, 3.0), False)):
        net = Net()
        x = net.conv(net.x, range_, activation=activation)
        axes = net.builder.constant("axes", np.array([1, 2], np.int32))
        y = net.add("reduce_max", [x, axes], (1, 4), range_, keep_dims=False)
        model = net.model(net.dense(net.add("relu6", [y], (1, 4), (0.0, 3.0)), (-4.0, 4.0)))
        assert ("ReLU behind it" in str(departures_of(lower(quantized(model, "gap9-sq8"), "gap9")))) == fails
        if fails:
            with pytest.raises(UnsupportedError, match=r"the ReLU behind it where negative numbers arrive \(17.25\)"):
                quantized(model, "gap9-sq8", ["numerics=nntool"])


@pytest.mark.parametrize("activation", ["none", "relu"])
@pytest.mark.parametrize("pool", ["average_pool_2d", "max_pool_2d"])
def test_an_average_pool_behind_the_sum_of_merged_convolutions(pool: str, activation: str) -> None:
    net = Net()
    parts = [net.conv(net.x, (-4.0, 4.0)) for _ in range(2)]
    range_ = (0.0, 6.0) if activation == "relu" else (-6.0, 6.0)
    y = net.add("add", parts, net.shapes[parts[0]], range_, fused_activation_function=activation)
    options = {"filter_height": 2, "filter_width": 2, "stride_h": 2, "stride_w": 2, "padding": "valid"}
    z = net.add(pool, [y], (1, 4, 4, 4), range_, **options, fused_activation_function="none")
    graph = lower(quantized(net.model(net.conv(z, (-4.0, 4.0))), "gap9-ne16"), "gap9")
    assert any(node.name.endswith("_merged_split") for node in graph.nodes)
    assert ("17.27" in str(departures_of(graph))) == (pool == "average_pool_2d")


@pytest.mark.parametrize("target", ["gap9-ne16", "gap9-sq8"])
def test_what_reads_a_softmax(target: str) -> None:
    net = Net()
    x = net.conv(net.x, (-4.0, 4.0))
    y = net.add("softmax", [x], net.shapes[x], (0.0, 1.0), beta=1.0)
    found = departures_of(lower(quantized(net.model(net.conv(y, (-4.0, 4.0))), target), "gap9"))
    assert "17.26" in found["CONV_2D_0_2"]


@pytest.mark.parametrize(
    ("first", "kernel", "bits", "fails"),
    [(1, 3, 8, True), (1, 1, 8, False), (0, 3, 8, False), (1, 1, 16, True), (0, 3, 16, False)],
)
def test_slices_on_which_nntool_fails(first: int, kernel: int, bits: int, fails: bool) -> None:
    net = Net()
    x = net.conv(net.x, (-1.0, 3.0))
    begin = net.builder.constant("begin", np.array([0, first, 0, 0], np.int32))
    size = net.builder.constant("size", np.array([1, 7, 8, 4], np.int32))
    kept = net.add("slice", [x, begin, size], (1, 7, 8, 4), (-1.0, 3.0))
    model = net.model(net.conv(kept, (-4.0, 4.0), (kernel, kernel)))
    sets = [f"feature_bits={bits}"]
    found = departures_of(lower(quantized(model, "gap9-ne16", sets), "gap9"))
    assert ("17.11" in found.get("SLICE_0_1", "")) == fails
    if fails:
        with pytest.raises(UnsupportedError, match="numerics=exact converts it"):
            quantized(model, "gap9-ne16", [*sets, "numerics=nntool"])


def _trained_with_fake_quantization() -> Model:
    """What TFLiteConverter writes of quantization-aware training without optimizations: float between the pairs."""
    builder = GraphBuilder("trained")
    x = builder.input("x", (1, 6), DType.FLOAT32)

    def pair(t: int, high: float) -> int:
        codes = builder.add("quantize", [t], (1, 6), DType.INT8, Affine.per_tensor(np.float32(high / 255), -128))
        return builder.add("dequantize", [codes], (1, 6), DType.FLOAT32)

    return Model([builder.build([pair(builder.add("tanh", [pair(x, 3.0)], (1, 6), DType.FLOAT32), 0.5)])])


def test_ranges_of_float_operators_come_from_the_quantize_behind_them() -> None:
    """NNTool takes [0, 1] for all of them: said, and refused where its integers are asked for."""
    graph = lower(quantized(_trained_with_fake_quantization(), "gap9-sq8"), "gap9")
    (range_,) = (graph.tensors[t].range for t in graph.nodes[-1].outputs)
    assert range_ is not None
    assert range_.maximum[0] == pytest.approx(0.5)
    assert "takes [0, 1] (17.12)" in departures_of(graph)["TANH_0_2"]
    with pytest.raises(UnsupportedError, match=r"17\.12.*numerics=exact takes the range of QUANTIZE"):
        quantized(_trained_with_fake_quantization(), "gap9-sq8", ["numerics=nntool"])


@pytest.mark.parametrize("matcher", ["expressions=false", "expressions=true"])
@pytest.mark.parametrize(
    ("first", "second", "warned"), [("add", "add", True), ("mul", "mul", True), ("mul", "add", False)]
)
def test_a_tensor_with_itself_behind_another_sum_or_product_of_it(
    first: str, second: str, warned: bool, matcher: str
) -> None:
    limits = (-4.0, 4.0)
    net = Net()
    x, y = net.conv(net.x, limits), net.conv(net.x, limits)
    shape = (1, 8, 8, 4)
    outputs = net.add(first, [x, y], shape, limits), net.add(second, [x, x], shape, limits)
    found = departures_of(lower(quantized(net.model(*outputs), "gap9-ne16", [matcher], []), "gap9"))
    assert any("17.16" in text for text in found.values()) == warned


@pytest.mark.parametrize(("engine", "fails"), [("ne16", True), ("sq8", False)])
def test_a_pool_and_the_relu6_behind_it_in_unsigned_types(engine: str, fails: bool) -> None:
    """A ReLU in front does not make the ReLU6 idle that the pool's range implies."""
    model = _pool_and_relu6("max")
    found = departures_of(lower(quantized(model, f"gap9-{engine}"), "gap9"))
    assert ("17.9" in found.get("MAX_POOL_2D_0_1", "")) is fails, found
    if fails:
        with pytest.raises(UnsupportedError, match=r"17\.9.*numerics=exact"):
            quantized(model, f"gap9-{engine}", ["numerics=nntool"])


@pytest.mark.parametrize("kind", ["max", "average"])
def test_a_pool_and_the_relu6_behind_it_among_16_bit_features(kind: str) -> None:
    """NNTool, run on the network: a Quantize node to int8, S = 6/127, and a pool of its codes in int16, S = 6/32767."""
    model = _pool_and_relu6(kind)
    for numerics in ("exact", "nntool"):
        graph = lower(quantized(model, "gap9-ne16", ["feature_bits=16", f"numerics={numerics}"]), "gap9")
        name = f"{kind.upper()}_POOL_2D_0_1"
        assert "17.9" in departures_of(graph)[name]
    named = {n.name: n for n in graph.nodes}
    before, pool = named[f"{name}_fusion_qin0"].outputs[0], named[name].outputs[0]
    assert [graph.tensors[t].dtype for t in (before, pool)] == [DType.INT8, DType.INT16]
    scales = [float(graph.tensors[t].affine.scale[0]) for t in (before, pool)]
    np.testing.assert_allclose(scales, [6 / 127, 6 / 32767], rtol=1e-12)
    x = np.random.default_rng(1).integers(0, 1 << 16, (2, 1, 8, 8, 4)).astype(np.uint16)
    codes, pooled = (v.astype(np.int64) for v in Engine(graph).run([x], [before, pool]).values())
    windows = codes.reshape(2, 1, 4, 2, 4, 2, 4)
    expected = windows.max((3, 5)) if kind == "max" else (windows.sum((3, 5)) + 2) >> 2
    np.testing.assert_array_equal(pooled, expected)


def _pool_and_relu6(kind: str) -> Model:
    net = Net()
    x = net.conv(net.x, (0.0, 6.4), activation="relu")
    return net.model(net.conv(net.pool(x, (0.0, 6.4), kind), (-1.0, 1.0)), net.conv(x, (-2.0, 2.0)))


def test_a_bias_of_add_beyond_16_bits() -> None:
    """NNTool, run on the network, has -34843 + 2^16."""
    net = Net()
    a, b = net.conv(net.x, (-220.0, 170.0)), net.conv(net.x, (-600.0, 500.0), (3, 3))
    total = net.add("add", [a, b], (1, 8, 8, 4), (0.0, 6.0), fused_activation_function="relu6")
    model = net.model(*(net.conv(t, (-1.0, 1.0)) for t in (total, a, b)))
    with pytest.raises(UnsupportedError, match="a bias of -34843, 16 bits end at 32767"):
        lower(quantized(model, "gap9-ne16"), "gap9")
    graph = lower(quantized(model, "gap9-ne16", ["numerics=nntool"]), "gap9")
    params = next(n.params for n in graph.nodes if n.name == "ADD_0_2")
    assert isinstance(params, SumParams)
    assert params.bias == 30693
    assert "wraps in 16 bits" in departures_of(graph)["ADD_0_2"]


@pytest.mark.parametrize(("numerics", "bias"), [("exact", -51), ("nntool", 51)])
def test_a_constant_taken_off_unsigned_values(numerics: str, bias: int) -> None:
    """NNTool, run on the network, has 51: it keeps + on the zero point -128 of the constant."""
    net = Net()
    x = net.conv(net.x, (0.0, 3.0), activation="relu")
    codes = net.random.integers(-128, 128, (1, 8, 8, 4)).astype(np.int8)
    constant = net.builder.constant("k", codes, encoding((0.0, 2.0)))
    y = net.binary("sub", x, constant, (0.0, 5.0))
    graph = lower(quantized(net.model(net.conv(y, (-3.0, 3.0))), "gap9-ne16", [f"numerics={numerics}"]), "gap9")
    (node,) = (n for n in graph.nodes if n.operator == "sub")
    assert isinstance(node.params, SumParams)
    assert node.params.bias == bias
    assert "17.5" in departures_of(graph)[node.name]


@pytest.mark.parametrize(("top", "shifts"), [(1.0, True), (4.0, False)])
def test_a_quantize_node_between_two_widths_whose_scales_nntool_counts_as_one(top: float, shifts: bool) -> None:
    """S_8 = top/127 and 256 S_16 = 256 top/32767 differ by less than 1e-4: NNTool shifts by 8, else it multiplies."""
    net = Net()
    x, y = (net.conv(net.x, (-top, top), outputs=n) for n in (4, 4))
    product = net.binary("mul", x, net.unary("logistic", y, (0.0, 1.0)), (0.0, top), "relu")
    model = net.model(net.conv(product, (-1.0, 1.0)), x)
    for numerics in ("exact", "nntool"):
        graph = lower(quantized(model, "gap9-ne16", ["feature_bits=16", f"numerics={numerics}"]), "gap9")
        name = next(n.name for n in graph.nodes if n.name.startswith("MUL") and n.name.endswith("_activation_qin0"))
        node = next(n for n in graph.nodes if n.name == name)
        assert ("17.17" in departures_of(graph).get(name, "")) is shifts
        ratio = 256.0 if shifts and numerics == "nntool" else 32767 / 127
        codes = np.arange(-127, 128, dtype=np.int8)
        (made,) = KERNELS["quantize"].run(node.params, codes)
        np.testing.assert_array_equal(made, np.floor(codes * ratio + 0.5))


def _warned(net: Net, outputs: tuple[int, ...], section: str, *sets: str, engine: str = "ne16") -> list[str]:
    graph = lower(quantized(net.model(*outputs), f"gap9-{engine}", list(sets)), "gap9")
    return [name for name, reason in departures_of(graph).items() if section in reason]


@pytest.mark.parametrize(("bits", "product", "warned"), [(16, "mul", True), (8, "mul", False), (16, "add", False)])
def test_a_filter_beside_what_a_product_stands_behind(bits: int, product: str, warned: bool) -> None:
    """In squeeze_excite_10501_31_mm, mobilenet_v3_7411_125_mm and _9313_5_mm NNTool's filter writes other bits."""
    limits = (-4.0, 4.0)
    net = Net()
    x = net.conv(net.x, limits)
    x = net.conv(net.binary(product, x, net.conv(x, limits), limits), limits)
    y = net.binary("add", x, net.conv(net.conv(x, limits), limits), limits)
    found = _warned(net, (y,), "17.18", f"feature_bits={bits}")
    assert bool(found) is warned, found


@pytest.mark.parametrize("engine", ["ne16", "sq8"])
@pytest.mark.parametrize(("other", "warned"), [("relu", False), ("none", True)])
def test_a_pool_whose_relu_nntool_may_keep(engine: str, other: str, warned: bool) -> None:
    """densenet_6007_25 and inception_5001_17_mm: a concatenation of unlike bounds stands in front."""
    high = (0.0, 3.0)
    net = Net()
    x = net.join(
        [net.conv(net.x, high, activation="relu"), net.conv(net.x, (-3.0, 3.0) if warned else high, activation=other)],
        high,
    )
    pool = net.pool(net.conv(x, high, activation="relu"), high)
    found = _warned(net, (net.conv(pool, (-1.0, 1.0)),), "17.19", engine=engine)
    assert found == (["MAX_POOL_2D_0_4"] if warned else [])


@pytest.mark.parametrize(("other", "stays"), [("relu", False), ("relu6", True)])
def test_a_relu_behind_a_quantize_node_of_the_loader_stays(other: str, stays: bool) -> None:
    """NNTool was run on both: of the first it removes the pool's ReLU, of the second it does not, and fails on ne16."""
    net = Net(shape=(1, 6, 6, 4))
    x = net.conv(net.x, (0.0, 4.0), activation="relu")
    y = net.conv(x, (0.0, 2.0), (3, 3), activation=other)
    pool = net.pool(net.join([x, y], (0.0, 4.0)), (0.0, 4.0))
    model = net.model(net.conv(pool, (-4.0, 4.0)))
    graph = quantized(model, "gap9-sq8", ["numerics=nntool"])
    assert any(node.name == "MAX_POOL_2D_0_3_activation" for node in graph.nodes) == stays
    if stays:
        with pytest.raises(UnsupportedError, match=r"17\.9"):
            quantized(model, "gap9-ne16", ["numerics=nntool"])


@pytest.mark.parametrize(("top", "warned"), [(6.4, True), (6.0, False)])
def test_a_mean_behind_a_relu6_that_stands_alone(top: float, warned: bool) -> None:
    """conv1d_9137_36: the pool's range rounds to [0, 6], and the mean's input has that range in NNTool."""
    net = Net()
    pool = net.pool(net.conv(net.x, (0.0, top), activation="relu"), (0.0, top))
    flat = net.builder.constant("flat", np.array([1, 16, 4], np.int32))
    axes = net.builder.constant("axes", np.array([1], np.int32))
    y = net.add("mean", [net.add("reshape", [pool, flat], (1, 16, 4), (0.0, top)), axes], (1, 4), (0.0, 2.0))
    assert bool(_warned(net, (net.dense(y, (-1.0, 1.0)),), "17.20")) is warned


@pytest.mark.parametrize(("before", "after", "warned"), [(1, 0, True), (0, 1, True), (1, 1, False)])
def test_padding_that_autotiler_does_not_get(before: int, after: int, warned: bool) -> None:
    net = Net()
    pads = net.builder.constant("pads", np.array([[0, 0], [before, after], [before, after], [0, 0]], np.int32))
    x = net.add("pad", [net.x, pads], (1, 8 + before + after, 8 + before + after, 4), (-1.0, 1.0))
    found = _warned(net, (net.conv(x, (-4.0, 4.0), (3, 3), padding="valid"),), "(19)")
    assert bool(found) is warned


@pytest.mark.parametrize("engine", ["gap9-ne16", "gap9-sq8"])
@pytest.mark.parametrize("activation", ["none", "relu", "relu6"])
@pytest.mark.parametrize("is_read", [False, True])
def test_the_activation_of_a_last_fully_connected_layer(is_read: bool, activation: str, engine: str) -> None:
    """NNTool, run on 107 such networks (test_recorded_networks.py), leaves it out."""
    net = Net()
    limits = {"none": (-2.0, 3.0), "relu": (0.0, 3.0), "relu6": (0.0, 6.0)}[activation]
    y = net.dense(net.mean(net.x, (-1.0, 1.0)), limits, activation=activation)
    output = net.dense(y, (-1.0, 1.0)) if is_read else y
    lost = activation != "none" and not is_read
    for numerics in ("exact", "nntool"):
        graph = lower(quantized(net.model(output), engine, [f"numerics={numerics}"]), "gap9")
        assert any("17.30" in text for text in departures_of(graph).values()) is lost
        kept = [node.operator for node in graph.nodes if node.operator in ("relu", "relu6")]
        assert kept == ([] if activation == "none" or (lost and numerics == "nntool") else [activation])
