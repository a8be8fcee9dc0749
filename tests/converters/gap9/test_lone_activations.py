"""Curves that stand alone: in front of NE16's filters, among 16-bit features, behind unsigned types."""

from __future__ import annotations

import pytest

from tests.support.gap9_golden import quantized
from tests.support.gap9_nets import Limits, Net
from tflq.converters.gap9.departures import departures_of
from tflq.errors import UnsupportedError
from tflq.graph import DType, Graph, Model
from tflq.interpreter import lower
from tflq.interpreter.kernels.gap9.activations import HardCurveParams


@pytest.mark.parametrize(("lowest", "written"), [(0.0, DType.UINT8), (-0.4, DType.INT8)])
@pytest.mark.parametrize("behind", [False, True])
def test_a_lone_hard_swish_obeys_a_demand_with_zero_point_0(lowest: float, written: DType, behind: bool) -> None:
    net = Net()
    x = net.conv(net.x, (0.0, 3.0), activation="relu") if behind else net.x
    bent = net.unary("hard_swish", x, (lowest, 3.0))
    graph = quantized(net.model(net.conv(bent, (-3.0, 3.0))), "gap9-ne16")
    (node,) = (n for n in graph.nodes if n.operator == "hard_swish")
    assert graph.tensors[node.outputs[0]].dtype is written
    assert (f"{_reader(behind)}_qin0" in [n.name for n in graph.nodes]) == (written is DType.INT8)


def _reader(behind: bool) -> str:
    """The convolution behind the hard swish."""
    return f"CONV_2D_0_{1 + behind}"


_LIMITS = (-3.0, 3.0)


def _behind_a_product(operator: str, limits: Limits, read: str = "conv") -> Model:
    net = Net()
    x = net.binary("mul", net.conv(net.x, _LIMITS), net.conv(net.x, _LIMITS, (3, 3)), _LIMITS)
    bent = net.unary(operator, x, limits, **({"alpha": 0.1} if operator == "leaky_relu" else {}))
    return net.model(net.conv(bent, _LIMITS) if read == "conv" else net.mean(bent, limits))


def _type(graph: Graph, tensor: int) -> tuple[object, ...]:
    tensor_ = graph.tensors[tensor]
    return tensor_.dtype, pytest.approx(float(tensor_.affine.scale[0]), rel=1e-6), int(tensor_.affine.zero_point[0])


@pytest.mark.parametrize("read", ["conv", "mean"])
@pytest.mark.parametrize(
    ("operator", "limits", "taken", "written"),
    [
        ("logistic", (0.0, 1.0), (DType.INT8, 8 / 127, 0), (DType.INT16, 3.051851e-05, 0)),
        ("tanh", (-1.0, 1.0), (DType.INT8, 8 / 127, 0), (DType.INT16, 3.051851e-05, 0)),
        ("hard_swish", (-0.375, 3.0), (DType.INT8, 0.0472441, 0), (DType.UINT16, 9.155553e-05, 32768)),
        ("hard_swish", (0.0, 3.0), (DType.INT8, 0.0472441, 0), (DType.UINT16, 9.155553e-05, 32768)),
        ("leaky_relu", _LIMITS, (DType.INT8, 9.155553e-05, 0), (DType.INT16, 9.155553e-05, 0)),
    ],
)
def test_a_lone_curve_among_16_bit_features(
    operator: str, limits: Limits, taken: tuple[object, ...], written: tuple[object, ...], read: str
) -> None:
    """The types are those of NNTool's dumps of these networks."""
    sets = ["feature_bits=16", "numerics=nntool"]
    graph = lower(quantized(_behind_a_product(operator, limits, read), "gap9-ne16", sets), "gap9")
    (node,) = (n for n in graph.nodes if n.operator == operator)
    assert _type(graph, node.inputs[0]) == taken
    assert _type(graph, node.outputs[0]) == written
    assert ("17.22" in departures_of(graph).get(node.name, "")) is (operator == "leaky_relu")
    if operator == "leaky_relu":
        right = lower(quantized(_behind_a_product(operator, limits, read), "gap9-ne16", sets[:1]), "gap9")
        assert "17.22" in departures_of(right)[node.name]
        assert right.tensors[node.inputs[0]].affine.scale[0] == pytest.approx(3 / 127)


def test_multipliers_of_a_lone_hard_swish_among_16_bit_features() -> None:
    """NNTool, run on the network, has M = 65 and N = 4."""
    graph = quantized(_behind_a_product("hard_swish", (-0.375, 3.0)), "gap9-ne16", ["feature_bits=16"])
    params = next(n.params for n in lower(graph, "gap9").nodes if n.operator == "hard_swish")
    assert isinstance(params, HardCurveParams)
    assert (params.mul_bias.multiplier.tolist(), params.mul_bias.shift.tolist()) == ([65], [4])


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize(
    ("operator", "limits"), [("tanh", (-1.0, 1.0)), ("logistic", (0.0, 1.0)), ("leaky_relu", _LIMITS)]
)
def test_a_lone_curve_behind_what_is_unsigned(operator: str, limits: Limits, bits: int) -> None:
    """NNTool, run on the networks, reads S = 2^-12 and Z = 256, or 65536; of a leaky ReLU Z = 0 and the output's S."""
    options = {"alpha": 0.1} if operator == "leaky_relu" else {}
    net = Net()
    x = net.conv(net.x, _LIMITS)
    bent = net.unary(operator, x, limits, **options)
    model = net.model(net.conv(bent, _LIMITS), net.conv(x, _LIMITS, (3, 3)))
    sets = [f"feature_bits={bits}"]
    found = departures_of(lower(quantized(model, "gap9-ne16", sets), "gap9"))
    (name,) = (name for name, text in found.items() if "17.23" in text)
    assert name.startswith(operator.upper())
    assert not departures_of(lower(quantized(model, "gap9-sq8"), "gap9"))
    if operator != "leaky_relu":
        with pytest.raises(UnsupportedError, match=r"17\.23.*numerics=exact computes it in int8"):
            quantized(model, "gap9-ne16", [*sets, "numerics=nntool"])
        return
    graph = quantized(model, "gap9-ne16", [*sets, "numerics=nntool"])
    (node,) = (n for n in graph.nodes if n.operator == operator)
    unsigned, scale = (DType.UINT8, 0.0235294122) if bits == 8 else (DType.UINT16, 9.15541313e-05)
    assert _type(graph, node.inputs[0]) == (unsigned, scale, 0)
    assert _type(graph, node.outputs[0]) == (unsigned, scale, 1 << (bits - 1))


def test_a_lone_hard_swish_behind_16_bits_takes_int16() -> None:
    """NNTool, run on the network: a filter in int16, S = 6/32767."""
    net = Net()
    x = net.conv(net.x, _LIMITS)
    bent = net.unary("hard_swish", x, (-0.375, 3.0))
    model = net.model(net.conv(bent, _LIMITS), net.conv(x, _LIMITS, (3, 3)))
    for numerics in ("exact", "nntool"):
        graph = lower(quantized(model, "gap9-ne16", ["feature_bits=16", f"numerics={numerics}"]), "gap9")
        (node,) = (n for n in graph.nodes if n.operator == "hard_swish")
        assert _type(graph, node.inputs[0]) == (DType.INT16, 6 / 32767, 0)
        assert "17.4" in departures_of(graph)[node.name]


@pytest.mark.parametrize("kind", ["max", "average"])
def test_a_pool_with_a_relu_behind_int16_among_16_bit_features(kind: str) -> None:
    """NNTool, run on the network, puts a Quantize node to int8, S = 1/127, in front of the pool (17.9)."""
    net = Net()
    x = net.binary("mul", net.conv(net.x, _LIMITS), net.conv(net.x, _LIMITS, (3, 3)), _LIMITS)
    pool = net.pool(net.unary("logistic", x, (0.0, 1.0)), (0.0, 1.0), kind)
    graph = quantized(net.model(net.conv(pool, _LIMITS)), "gap9-ne16", ["feature_bits=16", "numerics=nntool"])
    (node,) = (n for n in graph.nodes if n.name.endswith("_fusion_qin0"))
    assert _type(graph, node.outputs[0]) == (DType.INT8, 1 / 127, 0)


@pytest.mark.parametrize(
    ("highest", "scale", "zero_point"), [(3.0, 3 / 127, 0), (3.02, 3 / 255, -128), (2.5, 3 / 255, -128)]
)
def test_a_lone_relu_is_symmetric_where_zero_point_0_arrives(highest: float, scale: float, zero_point: int) -> None:
    """NNTool, run on the networks: int8 of [-3, 3] has zero point 0 by chance, which counts."""
    net = Net()
    x = net.conv(net.x, (-3.0, highest))
    model = net.model(net.conv(net.unary("relu", x, (0.0, 3.0)), _LIMITS), net.conv(x, _LIMITS))
    graph = quantized(model, "gap9-sq8")
    (node,) = (n for n in graph.nodes if n.operator == "relu")
    assert _type(graph, node.outputs[0]) == (DType.INT8, scale, zero_point)


@pytest.mark.parametrize("engine", ["sq8", "ne16"])
def test_the_relu_of_a_pool_that_enters_a_concatenation_stays_behind_it(engine: str) -> None:
    """NNTool, run on the networks: the pool alone enters the branches, a Quantize node stands before its ReLU."""
    net = Net()
    x = net.join([net.conv(net.x, _LIMITS), net.conv(net.x, _LIMITS, (3, 3))], _LIMITS)
    graph = quantized(net.model(net.conv(net.pool(x, (0.0, 3.0)), _LIMITS)), f"gap9-{engine}")
    named = {n.name: n for n in graph.nodes}
    assert named["MAX_POOL_2D_0_3"].attributes.text("fusion") == "CONV_2D_0_0_fusion"
    assert named["MAX_POOL_2D_0_3_1"].attributes.text("fusion") == "CONV_2D_0_1_fusion"
    order = [n.name for n in graph.nodes if n.operator in ("concatenation", "quantize", "relu")]
    assert order[:3] == ["CONCATENATION_0_2", "MAX_POOL_2D_0_3_activation_qin0", "MAX_POOL_2D_0_3_activation"]


def test_a_second_pool_behind_a_concatenation_runs() -> None:
    """Its ReLU was raised into the branches of the first one's; NNTool, run on the network, has 16 bits throughout."""
    net = Net()
    x = net.join([net.conv(net.x, _LIMITS), net.conv(net.x, _LIMITS, (3, 3))], _LIMITS)
    for _ in range(2):
        x = net.pool(x, (0.0, 3.0))
    graph = quantized(net.model(net.conv(x, _LIMITS)), "gap9-ne16", ["feature_bits=16"])
    assert {graph.tensors[n.outputs[0]].dtype for n in graph.nodes} == {DType.UINT16}
