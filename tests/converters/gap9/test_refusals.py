"""What GAP9 cannot hold: one line with the layer, the value, the limit and the way out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.support.data import data_path
from tests.support.gap9_golden import quantized
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target
from tflq.converters.tflite import read_model
from tflq.errors import OptionError, TflqError, UnsupportedError
from tflq.graph import Affine, DType, Graph, GraphBuilder, Model, Range
from tflq.interpreter import lower

BOTH = ("gap9-ne16", "gap9-sq8")


def affine(scale: float, zero_point: int = 0) -> Affine:
    return Affine.per_tensor(np.float32(scale), zero_point)


def convolution(
    weight_scale: float = 0.01,
    output_scale: float = 0.1,
    bias: int = 0,
    channels: int = 8,
    depth: int | None = None,
    weight: int = 127,
    alternating: bool = False,
) -> Graph:
    b = GraphBuilder("conv")
    x = b.input("x", (1, 4, 4, channels), DType.INT8, affine(0.1, 3))
    depth = depth or channels
    codes = np.full((8, 1, 1, depth), weight, np.int8)
    if alternating:
        codes[..., ::2] *= -1
    scales = Affine(np.full(8, weight_scale, np.float32), np.zeros(8, np.int64), 0)
    w = b.constant("w", codes, scales)
    biases = Affine(np.full(8, 0.1 * weight_scale, np.float32), np.zeros(8, np.int64), 0, 32)
    c = b.constant("b", np.full(8, bias, np.int32), biases)
    options = {"padding": "same", "stride_h": 1, "stride_w": 1}
    y = b.add("conv_2d", [x, w, c], (1, 4, 4, 8), DType.INT8, affine(output_scale, 5), **options)
    return b.build([y])


def refused(
    graph: Graph, target: str, kind: type[TflqError], sets: Sequence[str] = (), layers: Sequence[str] = ()
) -> str:
    with pytest.raises(kind) as caught:
        lower(quantized(Model([graph]), target, sets, layers), "gap9")
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("bits", [-1, 1, 9, 16])
def test_weight_bits_have_limits(bits: int) -> None:
    known = find_target("gap9-ne16").settings
    with pytest.raises(OptionError, match=rf"weight_bits={bits}: allowed is a whole number, minimum 2 and maximum 8"):
        parse_settings(known, [f"weight_bits={bits}"])


def test_narrow_weights_on_sq8() -> None:
    for sets, layers, target in (
        (["weight_bits=4"], [], "gap9-sq8"),
        ([], ["conv_2d:weight_bits=4,use_ne16=false"], "gap9-ne16"),
    ):
        message = refused(convolution(), target, OptionError, sets, layers)
        assert "operator 0 (conv_2d 'CONV_2D_0_0'): weight_bits=4" in message
        assert "SQ8 takes 8: set use_ne16=true or weight_bits=8" in message


def test_a_layer_that_falls_back_keeps_eight_bits() -> None:
    model = read_model(data_path("models", "kws_ref_model.tflite"))
    graph = lower(quantized(model, "gap9-ne16", ["weight_bits=2"], ["0:use_ne16=false"]), "gap9")
    bits = [n.params.filter.weight_bits for n in graph.nodes if "CONV" in n.name and hasattr(n.params, "filter")]
    assert bits == [8] + [2] * 8


@pytest.mark.parametrize("target", BOTH)
def test_ratio_of_scales(target: str) -> None:
    message = refused(convolution(weight_scale=10.0, output_scale=1e-4), target, UnsupportedError)
    assert "operator 0 (conv_2d 'CONV_2D_0_0')" in message
    assert "must be below 256: widen the range of the output" in message


def test_shift_beyond_the_field() -> None:
    message = refused(convolution(weight_scale=1e-9, output_scale=100.0), "gap9-sq8", UnsupportedError)
    assert "shift above 31" in message


@pytest.mark.parametrize("target", BOTH)
def test_no_bit_for_the_multiplier(target: str) -> None:
    message = refused(convolution(channels=1 << 18, weight=0), target, UnsupportedError)
    assert "no bit is left for the multiplier" in message


def test_bias_overflow() -> None:
    # this bias fits; with the folded zero points it does not
    message = refused(convolution(bias=(1 << 31) - 20000, weight=-127), "gap9-ne16", UnsupportedError)
    assert "int32 ends at 2147483647" in message


def test_accumulator_overflow() -> None:
    message = refused(
        convolution(channels=1 << 10, output_scale=1.0, alternating=True),
        "gap9-ne16",
        UnsupportedError,
        ["feature_bits=16"],
    )
    assert "accumulator" in message
    assert "features of 8 bits" in message


def test_wide_features_on_sq8() -> None:
    for target, layers in (("gap9-sq8", []), ("gap9-ne16", ["0:use_ne16=false"])):
        message = refused(convolution(), target, OptionError, ["feature_bits=16"], layers)
        assert "operator 0 (conv_2d 'CONV_2D_0_0'): feature_bits=16" in message
        assert "SQ8 takes 8" in message


def test_groups_run_on_the_cluster() -> None:
    model = Model([convolution(channels=16, depth=4)])
    for numerics, engine in (("exact", "sq8"), ("nntool", "ne16")):
        (node,) = (n for n in quantized(model, "gap9-ne16", [f"numerics={numerics}"]).nodes if n.operator == "conv_2d")
        assert node.attributes.text("engine") == engine
        assert "4 groups" in node.attributes.text("engine_reason")
        assert "17.8" in node.attributes.text("departure")


@pytest.mark.parametrize("target", BOTH)
def test_all_unknown_operators_at_once(target: str) -> None:
    b = GraphBuilder("odd")
    x = b.input("x", (1, 4), DType.INT8, affine(0.1))
    y = b.add("gelu", [x], (1, 4), DType.INT8, affine(0.1))
    z = b.add("relu", [y], (1, 4), DType.INT8, affine(0.1))
    graph = b.build([b.add("cumsum", [z], (1, 4), DType.INT8, affine(0.1))])
    message = refused(graph, target, UnsupportedError)
    assert "operator 0 (gelu 'GELU_0_0')" in message
    assert "operator 2 (cumsum 'CUMSUM_0_2')" in message
    assert "relu" not in message


def test_leaky_slope() -> None:
    b = GraphBuilder("leaky")
    x = b.input("x", (1, 4), DType.INT8, affine(0.1))
    graph = b.build([b.add("leaky_relu", [x], (1, 4), DType.INT8, affine(0.1), alpha=1.2)])
    assert "alpha is 1.2; GAP9 takes -1 to below 0.996" in refused(graph, "gap9-sq8", UnsupportedError)


@pytest.mark.parametrize("target", BOTH)
def test_a_float_model_needs_ranges(target: str) -> None:
    model = read_model(data_path("models", "kws_ref_model_float32.tflite"))
    message = refused(model.main, target, UnsupportedError)
    assert "have no range" in message
    assert "calibrate" in message


def test_a_float_model_with_ranges_is_taken() -> None:
    b = GraphBuilder("float")
    x = b.input("x", (1, 4), DType.FLOAT32)
    w = b.constant("w", np.eye(4, dtype=np.float32))
    y = b.add("fully_connected", [x, w, -1], (1, 4), DType.FLOAT32)
    graph = b.build([y])
    limits = Range(np.array([-1], np.float32), np.array([2], np.float32))
    graph.tensors = [t if t.is_constant else type(t)(t.name, t.shape, t.dtype, range=limits) for t in graph.tensors]
    lowered = lower(quantized(Model([graph]), "gap9-sq8"), "gap9")
    assert lowered.tensors[lowered.inputs[0]].dtype is DType.INT8


def test_fused_activations_without_mapping() -> None:
    graph = convolution()
    graph.nodes[0] = type(graph.nodes[0])(
        "conv_2d",
        graph.nodes[0].inputs,
        graph.nodes[0].outputs,
        graph.nodes[0].attributes.updated(fused_activation_function="relu_n1_to_1"),
        graph.nodes[0].name,
    )
    assert "fused activation relu_n1_to_1" in refused(graph, "gap9-ne16", UnsupportedError)


@pytest.mark.parametrize("target", BOTH)
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("place", [1, 2])
@pytest.mark.parametrize("operator", ["fully_connected", "conv_2d"])
def test_filters_take_constants(operator: str, place: int, first: bool, target: str) -> None:
    """Weights or bias come in from outside, as the first tensor of the file or as a later one."""
    image = (1,) if operator == "fully_connected" else (1, 1, 1)
    shapes = {0: (*image, 4), 1: (3, *image[1:], 4), 2: (3,)}
    b, inputs = GraphBuilder("computed"), dict[int, int]()
    for position in sorted(shapes, key=lambda p: (p != place) == first):
        if position in (0, place):
            inputs[position] = b.input(f"x{position}", shapes[position], DType.FLOAT32)
        else:
            inputs[position] = b.constant(f"x{position}", np.ones(shapes[position], np.float32))
    assert (inputs[place] == 0) == first
    y = b.add(operator, [inputs[p] for p in range(3)], (*image, 3), DType.FLOAT32, padding="valid", stride_h=1,
              stride_w=1, fused_activation_function="none")  # fmt: skip
    (line,) = find_target(target).check(b.build([y]), parse_settings(find_target(target).settings))
    assert "weights or bias are computed at run time; GAP9 takes constants" in line
