"""Layers that compute, beside their float definition on what the input quantized values stand for.

Within what their bits allow.

A table gives the nearest code. A multiplier of m bits is off by at most 2^-m of itself, and so are the two factors of
15 bits that bring operands together. At 16 bits a table of 2^10 entries is read between two points of a grid that is up
to one entry off (docs/rules/aipu/values.md#tables).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from tests.support.aipu_layers import MODES, Output, float_layer, limits_of, run_layer
from tflq.converters.aipu import AIPU
from tflq.converters.aipu.origin import Origin
from tflq.converters.settings import parse_settings
from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, GraphBuilder, Model, Range
from tflq.graph.attributes import Attribute

ULP = 1e-3
"""Share of a quantized value for what float32 rounds in the definition's favor or not."""


@dataclass(frozen=True)
class Curve:
    """A function of one number, by table; `method` where it is an Activation."""

    name: str
    function: Callable[[Array], Array]
    low: float = -6.0
    high: float = 5.0
    attributes: dict[str, Attribute] = field(default_factory=dict)

    @property
    def operator(self) -> str:
        """The layer."""
        return "activation" if self.name.isupper() else self.name


def _elu(x: Array, alpha: float) -> Array:
    return np.where(x > 0, x, alpha * (np.exp(np.minimum(x, 0)) - 1))


SELU = (1.67326319, 1.05070102)
CURVES = [
    Curve("ELU", lambda x: _elu(x, 0.75), attributes={"alpha": 0.75}),
    Curve("SELU", lambda x: SELU[1] * _elu(x, SELU[0]), attributes={"alpha": SELU[0], "gamma": SELU[1]}),
    Curve("SIGMOID", lambda x: 1 / (1 + np.exp(-x))),
    Curve("SOFTPLUS", lambda x: np.log(1 + np.exp(x))),
    Curve("SOFTSIGN", lambda x: x / (1 + np.abs(x))),
    Curve("TANH", np.tanh),
    Curve("HARDSWISH", lambda x: x * np.clip(x + 3, 0, 6) / 6),
    Curve("bnll", lambda x: np.log(1 + np.exp(x))),
    Curve("exp", np.exp, -3, 1),
    Curve("log", np.log, 0.5, 9),
    Curve("sqrt", np.sqrt, 0, 9),
    Curve("rsqrt", lambda x: 1 / np.sqrt(x), 0.5, 9),
    Curve("reciprocal", np.reciprocal, 0.5, 9),
    Curve("square", np.square),
    Curve("floor", np.floor),
    Curve("ceil", np.ceil),
    Curve("round", np.rint),
]

UNREPEATED = {"bnll": 127, "round": 128}
"""Tables of 256 points over 254 steps, and where the value 0 is read."""


def _spread(low: float, high: float) -> Array:
    return np.linspace(low, high, 400).astype(np.float32).reshape(4, 1, 100)


@pytest.mark.parametrize("mode", ["symmetric", "asymmetric", "restricted"])
@pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.name)
def test_a_table_gives_the_nearest_code(curve: Curve, mode: str) -> None:
    x = _spread(curve.low, curve.high)
    keys = {"method": curve.name, **curve.attributes} if curve.name.isupper() else curve.attributes
    y = curve.function(x.astype(np.float64))
    ran = run_layer(float_layer(curve.operator, [x], [Output((1, 100), limits_of(y))], **keys), [x], MODES[mode])
    read = ran.inputs[0]
    if mode == "restricted" and curve.name in UNREPEATED:
        scale = float(ran.graph.tensors[0].affine.scale[0])
        read = (np.rint(read / scale) + UNREPEATED[curve.name]) * (254 / 255 * scale) - 127 * scale
    wanted = np.clip(curve.function(read), *ran.limits[0])
    assert np.abs(ran.outputs[0] - wanted).max() <= (0.5 + ULP) * ran.steps[0]


@pytest.mark.parametrize("curve", CURVES[:9], ids=lambda c: c.name)
def test_a_table_between_its_entries(curve: Curve) -> None:
    x = _spread(curve.low, curve.high)
    keys = {"method": curve.name, **curve.attributes} if curve.name.isupper() else curve.attributes
    y = curve.function(x.astype(np.float64))
    ran = run_layer(float_layer(curve.operator, [x], [Output((1, 100), limits_of(y))], **keys), [x], MODES["16 bits"])
    entry = 65 * 2 * max(abs(curve.low), abs(curve.high)) / 65535
    near = np.stack([curve.function(ran.inputs[0] + entry * k) for k in (-1, 0, 1)])
    assert (ran.outputs[0] >= near.min(axis=0) - 2 * ran.steps[0]).all()
    assert (ran.outputs[0] <= near.max(axis=0) + 2 * ran.steps[0]).all()


@dataclass(frozen=True)
class Rescaled:
    """A layer that ends in one multiplier."""

    name: str
    operator: str
    definition: Callable[..., Array]
    inputs: int = 1
    attributes: dict[str, Attribute] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)
    steps: float = 0.5
    """Roundings of the result, in quantized values, beside the multiplier's."""
    slope_bits: tuple[int, int] = (99, 99)
    """Bits of fraction of a slope, at 8 and at 16 bits."""


SLOPES = np.random.default_rng(21).uniform(0.1, 0.9, 8).astype(np.float32)
UNITED: dict[str, Attribute] = {"with_activation": "NONE"}
RESCALED = [
    Rescaled("RELU", "activation", lambda x: np.maximum(x, 0), attributes={"method": "RELU"}),
    Rescaled("RELU6", "activation", lambda x: np.clip(x, 0, 6), attributes={"method": "RELU6"}),
    Rescaled(
        "CLIP",
        "activation",
        lambda x: np.clip(x, -1.5, 2),
        attributes={"method": "CLIP", "clip_min": -1.5, "clip_max": 2.0},
        steps=0.51,
    ),
    Rescaled(
        "LEAKYRELU",
        "activation",
        lambda x: np.where(x < 0, 0.3 * x, x),
        attributes={"method": "LEAKYRELU", "negative_slope_type": "float32", "negative_slope_value": 0.3},
        steps=1,
        slope_bits=(8, 16),
    ),
    Rescaled(
        "PRELU",
        "activation",
        lambda x: np.where(x < 0, x * SLOPES, x),
        attributes={"method": "PRELU"},
        constants={"negative_slope": SLOPES},
        steps=1,
        slope_bits=(12, 12),
    ),
    Rescaled(
        "CRELU",
        "crelu",
        lambda x: np.concatenate([np.maximum(x, 0), np.maximum(-x, 0)], axis=3),
        attributes={"axis": 2},
    ),
    Rescaled("abs", "abs", np.abs),
    Rescaled("eltwise MAX", "eltwise", np.maximum, 2, {**UNITED, "method": "MAX"}),
    Rescaled("eltwise MIN", "eltwise", np.minimum, 2, {**UNITED, "method": "MIN"}),
    Rescaled("eltwise ADD", "eltwise", np.add, 2, {**UNITED, "method": "ADD"}),
    Rescaled("eltwise SUB", "eltwise", np.subtract, 2, {**UNITED, "method": "SUB"}),
    Rescaled("eltwise MUL", "eltwise", np.multiply, 2, {**UNITED, "method": "MUL"}),
    Rescaled("mat_mul", "mat_mul", lambda x, y: x @ np.swapaxes(y, -1, -2), 2, {"trans_a": False, "trans_b": True}),
    Rescaled(
        "reduce MEAN", "reduce", lambda x: x.mean(axis=2, keepdims=True), attributes={"method": "MEAN", "axis": (1,)}
    ),
    Rescaled(
        "reduce SUM", "reduce", lambda x: x.sum(axis=2, keepdims=True), attributes={"method": "SUM", "axis": (1,)}
    ),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("layer", RESCALED, ids=lambda r: r.name)
def test_a_multiplier_is_off_by_its_last_bit(layer: Rescaled, mode: str) -> None:
    rng = np.random.default_rng(22)
    x = [rng.normal(0.3, 2 + i, (3, 2, 5, 8)).astype(np.float32) for i in range(layer.inputs)]
    y = layer.definition(*(v.astype(np.float64) for v in x))
    graph = float_layer(layer.operator, x, [Output(y.shape[1:], limits_of(y))], layer.constants, **layer.attributes)
    ran = run_layer(graph, x, MODES[mode])
    wanted = layer.definition(*ran.inputs)
    is_wide = mode == "16 bits"
    allowed = (layer.steps + ULP) * ran.steps[0] + np.abs(wanted) * 2.0 ** -(15 if is_wide else 8)
    allowed += np.abs(ran.inputs[0]).max() * 0.5 ** (layer.slope_bits[is_wide] + 1)
    if layer.operator == "eltwise":
        allowed += sum(np.abs(v).max() for v in ran.inputs) * 2.0**-15
    np.testing.assert_array_less(np.abs(ran.outputs[0] - np.clip(wanted, *ran.limits[0])), allowed)


@pytest.mark.parametrize("mode", MODES)
def test_negative_and_sign_are_exact(mode: str) -> None:
    x = _spread(-3, 2)
    for operator, definition in (("negative", np.negative), ("sign", np.sign)):
        ran = run_layer(float_layer(operator, [x], [Output((1, 100))]), [x], MODES[mode])
        wanted = definition(ran.inputs[0])
        limit = ran.steps[0] * 1.001 if operator == "negative" else 0
        assert np.abs(ran.outputs[0] - wanted).max() <= limit


@pytest.mark.parametrize("mode", ["symmetric", "asymmetric"])
def test_softmax(mode: str) -> None:
    x = np.random.default_rng(23).normal(0, 2, (3, 4, 10)).astype(np.float32)
    y = np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)
    ran = run_layer(float_layer("softmax", [x], [Output((4, 10), limits_of(y))], axis=1), [x], MODES[mode])
    powers = np.exp(ran.inputs[0])
    wanted = powers / powers.sum(axis=-1, keepdims=True)
    assert np.abs(ran.outputs[0] - wanted).max() <= 2 * ran.steps[0]


def test_softmax_over_more_than_4096_terms_is_refused() -> None:
    x = np.zeros((1, 1, 4097), np.float32)
    with pytest.raises(UnsupportedError, match="softmax over 4097 terms; allowed are 4096"):
        run_layer(float_layer("softmax", [x], [Output((1, 4097), (0, 1))], axis=1), [x], MODES["symmetric"])


def test_all_restrictions_are_listed_at_once_each_with_layer_value_and_limit() -> None:
    b = GraphBuilder("layers")
    x = b.input("x", (1, 4097), DType.FLOAT32)
    fast = b.add("activation", [x], (1, 4097), DType.FLOAT32, method="FAST")
    soft = b.add("softmax", [fast], (1, 4097), DType.FLOAT32, axis=1)
    graph = b.build([soft])
    limits = Range(np.zeros(1, np.float32), np.ones(1, np.float32))
    graph.tensors = [replace(t, range=limits) for t in graph.tensors]
    graph.extra = Origin("layers", {"x": "x"}, ())
    quantized = AIPU.quantize(graph, parse_settings(AIPU.settings))
    with pytest.raises(UnsupportedError) as caught:
        AIPU.emit(quantized, Model([quantized]))
    first, second = str(caught.value).split("; operator 1 ")
    assert first.startswith("operator 0 (activation 'ACTIVATION_0_0'): method=FAST; allowed")
    assert second.startswith("(softmax 'SOFTMAX_0_1'): softmax over 4097 terms; allowed are 4096")


def test_an_unknown_method_is_refused_with_those_that_are_known() -> None:
    x = np.zeros((1, 1, 4), np.float32)
    with pytest.raises(UnsupportedError, match="method=FAST; allowed is RELU, RELU6, CLIP, LEAKYRELU, PRELU"):
        run_layer(float_layer("activation", [x], [Output((1, 4), (0, 1))], method="FAST"), [x], MODES["symmetric"])
