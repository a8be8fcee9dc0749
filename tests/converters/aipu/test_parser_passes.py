"""Rewrites of the Compass Parser, one at a time: what the live tool made of each, and neighbors that stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.converters.aipu.drawn_networks import CHAINS
from tests.converters.aipu.networks import as_converters_write
from tests.support.float_forms import NONE, built_of, dense_then, row, step, to, turn
from tests.support.float_networks import WHOLE, Make, Network
from tflq.converters.aipu import AIPU
from tflq.converters.aipu.emit import float_network_of
from tflq.converters.aipu.passes.layers import Layers
from tflq.converters.aipu.translate import translate
from tflq.converters.calibration import StatisticsOptions, calibrate
from tflq.converters.settings import parse_settings
from tflq.graph import Graph, Node, Range
from tflq.graph.rewriting import trace_passes
from tflq.interpreter import lower
from tflq.schemas.aipu import Layer

Shape = tuple[int, ...]


def test_layers_of_one_name_are_numbered_from_0() -> None:
    layers = Layers()
    assert [layers.add(Node("relu", (), (), name="x")).name for _ in range(3)] == ["x", "x_0", "x_1"]


def layers_of(graph: Graph, faults: bool = False) -> dict[str, Layer]:
    return {layer.name: layer for layer in float_network_of(translate(graph, "m", faults=faults), "m").layers}


def made(make: Make, faults: bool = False) -> list[str]:
    """The layers in order, a function by its name; inputs and Constants apart."""
    found = layers_of(as_converters_write(built_of(make)[0]), faults).values()
    each = [str(layer.entries.get("method", layer.type)) for layer in found]
    return [word for word in each if word not in ("Input", "Constant")]


def constant(layer: Layer, key: str) -> np.ndarray[Any, Any]:
    return np.asarray(layer.constants[key].data)


def named(name: str, low: float, high: float, activation: str = "none") -> Graph:
    """A filter whose result has a name and a range, as files of quantization-aware training state them."""

    def make(b: Network) -> int:
        given = (b.reals(3, 1, 1, 4), b.reals(3))
        keys = {**WHOLE, "fused_activation_function": activation}
        return b.do("tanh", b.do("conv_2d", b.real("x"), *given, shape=(1, 5, 6, 3), **keys))

    graph = built_of(make)[0]
    t = graph.nodes[0].outputs[0]
    limits = Range(np.array([low], np.float32), np.array([high], np.float32))
    graph.tensors[t] = replace(graph.tensors[t], name=name, range=limits)
    return graph


@pytest.mark.parametrize(
    ("name", "limits", "faults", "wanted"),
    [
        ("MobilenetV1/Conv2d_0/Relu6", (0.0, 5.999761581420898), False, "RELU6"),
        ("MobilenetV2/Conv/Relu6", (0.0, 6.0000128746032715), False, "RELU6"),
        ("conv/RELU", (0.0, 40.0), False, "RELU"),
        ("conv/Relu6", (0.0, 6.1), False, "NONE"),
        ("conv/Relu6", (0.0, 6.1), True, "RELU6"),
        ("conv/Relu", (-0.5, 4.0), False, "NONE"),
        ("conv/Relu", (-0.5, 4.0), True, "RELU"),
        ("conv/Relu6;bias", (0.0, 6.0), True, "NONE"),
    ],
)
def test_a_name_tells_the_activation(name: str, limits: tuple[float, float], faults: bool, wanted: str) -> None:
    graph = named(name, *limits)
    assert layers_of(graph, faults)[name.replace(" ", "_")].entries["with_activation"] == wanted


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("inverted/Relu6", (0.0, 6.0)), ("inverted/Relu6;bias", (-7.425260066986084, 6.704898834228516))],
)
def test_a_rectified_range_is_cut(name: str, wanted: tuple[float, float]) -> None:
    """The numbers are those of a public file (visual_wake_quant.tflite), and what the Parser made of them."""
    layer = layers_of(named(name, -7.425260066986084, 6.704898834228516, "relu6"))[name]
    assert layer.entries["with_activation"] == "RELU6"
    assert layer.entries["layer_top_range"] == (wanted,)


@pytest.mark.parametrize(
    ("shape", "slopes", "wanted"),
    [
        ((1, 4, 3, 2), (4, 3, 2), (4, 3, 2)),
        ((1, 4, 3, 2), (1, 1, 2), (1, 4, 3, 2)),
        ((2, 1, 6, 3), (1, 1, 3), (2, 1, 6, 3)),
        ((3, 2, 4), (1, 4), (3, 2, 4)),
        ((1, 5, 8), (1, 8), (5, 8)),
        ((1, 1, 8), (1, 8), (8,)),
        ((2, 8), (8,), (8,)),
    ],
)
def test_slopes_are_repeated(shape: Shape, slopes: Shape, wanted: Shape) -> None:
    def make(b: Network) -> int:
        return b.do("prelu", b.real("x", shape), b.reals(*slopes))

    graph = built_of(make)[0]
    layer = layers_of(graph)[graph.tensors[graph.outputs[0]].name]
    given = next(t.data for t in graph.tensors if t.data is not None)
    assert constant(layer, "negative_slope").shape == wanted
    assert np.array_equal(np.broadcast_to(constant(layer, "negative_slope"), shape), np.broadcast_to(given, shape))


FIVE_BY_24 = to(5, 24)
TANH = step("tanh")


@pytest.mark.parametrize(
    ("middle", "wanted"),
    [
        ([step("abs")], ["TANH", "Abs", "Reshape", "Softmax"]),
        ([step("abs"), step("neg")], ["TANH", "Abs", "Reshape", "Negative", "Softmax"]),
        ([step("maximum", 0.25), step("minimum", 0.75)], ["TANH", "CLIP", "Reshape", "Softmax"]),
        ([step("relu_n1_to_1")], ["TANH", "Reshape", "CLIP", "Softmax"]),
        ([step("maximum", 0.5)], ["TANH", "Reshape", "MAX", "Softmax"]),
        ([step("prelu", np.linspace(-0.5, 0.5, 24, dtype=np.float32))], ["TANH", "Reshape", "PRELU", "Softmax"]),
    ],
)
def test_one_layer_passes_a_reshape(middle: Sequence[Any], wanted: list[str]) -> None:
    """Those of one operand; a CLIP that was a minimum and a maximum, but none of TFLite's own."""
    assert made(row(TANH, FIVE_BY_24, *middle, step("softmax", beta=1.0))) == wanted


@pytest.mark.parametrize(
    ("behind", "wanted"),
    [
        ([step("mul", 0.75, **NONE)], ["FullyConnected", "TANH"]),
        ([step("mul", 0.75, **NONE), step("mul", 0.5, **NONE)], ["FullyConnected", "Mul", "TANH"]),
        ([step("mul", 0.75, **NONE), step("add", 0.5, **NONE)], ["FullyConnected", "TANH"]),
        ([step("add", 0.75, **NONE), step("mul", 0.5, **NONE)], ["FullyConnected", "Mul", "TANH"]),
        (
            [step("add", np.arange(1, 7, dtype=np.float32), **NONE), step("mul", 0.5, **NONE)],
            ["FullyConnected", "TANH"],
        ),
    ],
)
def test_the_next_layer_alone_goes_into_weights(behind: Sequence[Any], wanted: list[str]) -> None:
    """Behind a bias of each channel one more; a product and a sum are one BatchNorm."""
    assert made(dense_then(*behind, TANH)) == wanted


@pytest.mark.parametrize(("behind", "count"), [(True, 1), (False, 0)])
def test_a_number_minus_rows_of_more_axes_stays(behind: bool, count: int) -> None:
    made_of = made(CHAINS[f"form, dense, {'one minus' if behind else 'sub of one'}, keeps True"])
    assert sum(word in ("Sub", "SUB") for word in made_of) == count


@pytest.mark.parametrize(
    ("operator", "shape", "axes", "wanted"),
    [
        ("sum", (1, 5, 1, 4), (0, 2), ["TANH", "Softmax"]),
        ("reduce_max", (1, 5, 1, 4), (2,), ["TANH", "Softmax"]),
        ("sum", (1, 5, 2, 4), (0, 2), ["TANH", "SUM", "Softmax"]),
    ],
)
def test_a_reduce_of_one_element_goes(operator: str, shape: Shape, axes: Shape, wanted: list[str]) -> None:
    """Unless it is an output."""
    new = tuple(1 if a in axes else n for a, n in enumerate(shape))
    steps = (TANH, step(operator, np.array(axes, np.int32), new=new, keep_dims=True))
    assert made(row(*steps, step("softmax", beta=1.0), shape=shape)) == wanted
    assert len(made(row(*steps, shape=shape))) == 2


def test_transposes_meet_before_a_product_is_lifted() -> None:
    x = (2, 3, 4)
    there, back = turn(x, 2, 1, 0), turn((4, 3, 2), 2, 1, 0)
    assert made(row(TANH, there, back, step("mul", 0.5, **NONE), TANH, shape=x)) == ["TANH", "Mul", "TANH"]
    ones = turn((1, 6, 1, 4), 2, 1, 0, 3)
    assert made(row(TANH, ones, step("softmax", beta=1.0), shape=(1, 6, 1, 4))) == ["TANH", "Softmax"]


LOST = ("tanh", "elu")


@pytest.mark.parametrize("operator", LOST)
@pytest.mark.parametrize("rectifier", ["relu", "relu6", "leaky_relu"])
def test_a_rectifier_behind_a_function_stays_and_is_named(operator: str, rectifier: str) -> None:
    options = {"alpha": 0.25} if rectifier == "leaky_relu" else {}
    make = row(step(operator), step(rectifier, **options), step("softmax", beta=1.0))
    method = {"leaky_relu": "LEAKYRELU"}.get(rectifier, rectifier.upper())
    assert made(make) == [operator.upper(), method, "Softmax"]
    assert made(make, faults=True) == [operator.upper(), "Softmax"]
    graph, samples = built_of(make)
    ranged = calibrate(graph, [x[:4] for x in samples], StatisticsOptions("extrema"))
    found = {
        faults: AIPU.departures(
            lower(AIPU.quantize(ranged, parse_settings(AIPU.settings, [f"parser_faults={faults}"])), AIPU.arithmetic)
        )
        for faults in ("false", "true")
    }
    assert f"the Parser loses it behind {operator.upper()}" in "".join(found["false"].values())
    assert not found["true"]


@pytest.mark.parametrize(
    ("operator", "rectifier", "wanted"),
    [
        ("logistic", "relu", ["SIGMOID", "Softmax"]),
        ("logistic", "relu6", ["SIGMOID", "Softmax"]),
        ("hard_swish", "relu", ["HARDSWISH", "RELU", "Softmax"]),
        ("gelu", "relu6", ["GELU", "RELU6", "Softmax"]),
    ],
)
def test_a_rectifier_that_changes_nothing_goes(operator: str, rectifier: str, wanted: list[str]) -> None:
    """HARDSWISH and GELU keep it in the Parser, too."""
    make = row(step(operator), step(rectifier), step("softmax", beta=1.0))
    assert made(make) == made(make, faults=True) == wanted


def test_a_trace_names_the_pass_of_each_change() -> None:
    def make(b: Network) -> int:
        x = b.do("tanh", b.real("x"))
        return b.do("mul", x, b.do("logistic", x), **NONE)

    with trace_passes() as changes:
        assert made(make) == ["TANH", "SILU"]
    assert [(change.owner, change.name) for change in changes] == [("aipu", "recognize_activations")]
    (change,) = changes
    assert change.source == "Compass Parser, middle_passes.py, convert_sigmoid_mul_to_silu to merge_mish"
    assert [line.count("SIGMOID") for line in change.before] == [1, 0]
    assert [line.count("SILU") for line in change.after] == [1]
