"""The whitepaper's formulas, row by row: in exact fractions, beside what Compass computes, and near to float."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from tflq.converters.aipu import AIPU, graph_of
from tflq.converters.calibration import StatisticsOptions, calibrate
from tflq.converters.settings import parse_settings
from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Graph, GraphBuilder, Model, Range
from tflq.interpreter import Engine, lower
from tflq.schemas.aipu import Constant, Edge, Entry, Layer, Network, Value

Range2 = tuple[float, float]
Reals = NDArray[np.float64]
SIGNED = np.arange(-128, 128)
PAIRS = tuple(np.array([(a, b)[i] for a in range(-128, 128, 5) for b in range(-126, 128, 3)]) for i in range(2))
SHAPES = ((PAIRS[0].size,),) * 3


class _Layer:
    """One layer, quantized by Compass's rules and by the whitepaper's."""

    def __init__(
        self,
        kind: str,
        entries: Mapping[str, Entry],
        inputs: tuple[Range2, ...],
        outputs: tuple[Range2, ...],
        shapes: tuple[tuple[int, ...], ...],
        mode: str = "symmetric",
    ) -> None:
        ins = tuple(Edge(f"x{i}_0", shapes[i], "float32") for i in range(len(inputs)))
        outs = tuple(Edge(f"y_{i}", shapes[len(inputs) + i], "float32") for i in range(len(outputs)))
        layers = tuple(Layer(f"x{i}", "Input", (), (edge,)) for i, edge in enumerate(ins))
        header: dict[str, Value] = {
            "model_name": "m",
            "input_tensors": tuple(e.name for e in ins),
            "output_tensors": tuple(e.name for e in outs),
        }
        graph = graph_of(Network(header, (*layers, Layer("y", kind, ins, outs, entries))))
        for t, limits in zip((*graph.inputs, *graph.outputs), (*inputs, *outputs), strict=True):
            found = Range(*(np.array([x], np.float32) for x in limits))
            graph.tensors[t] = replace(graph.tensors[t], range=found)
        self.compass, self.paper = (
            AIPU.quantize(graph, parse_settings(AIPU.settings, [f"activations={mode}", f"variant={variant}"]))
            for variant in ("compass", "whitepaper")
        )

    def run(self, graph: Graph, *codes: Array) -> list[Reals]:
        """Return the quantized values of each output; inputs [N] are one sample."""
        lowered = lower(graph, "aipu")
        arrays = [
            c.astype(lowered.tensors[t].dtype.storage).reshape(1, *lowered.tensors[t].shape)
            for c, t in zip(codes, lowered.inputs, strict=True)
        ]
        found = Engine(lowered).run(arrays)
        return [found[t].astype(np.float64).reshape(-1) for t in lowered.outputs]

    def scale(self, t: int) -> Fraction:
        """Return s of an output of the whitepaper's graph."""
        affine = self.paper.tensors[self.paper.outputs[t]].affine
        return Fraction(float(np.float32(1 / affine.scale[0])))

    def offset(self, t: int) -> int:
        """Return zp of an output of the whitepaper's graph."""
        return -int(self.paper.tensors[self.paper.outputs[t]].affine.zero_point[0])


def _rne(x: Fraction) -> int:
    return round(x)


def _away(x: Fraction) -> int:
    return (1 if x > 0 else -1) * int(abs(x) + Fraction(1, 2))


def _clamp(x: int, low: int = -128, high: int = 127) -> int:
    return max(low, min(high, x))


def _check(layer: _Layer, formula: Callable[..., int], *codes: Array) -> None:
    """Compare with the formula, code by code; Compass's result is another one somewhere."""
    found = layer.run(layer.paper, *codes)[0]
    expected = [formula(*(int(c) for c in each)) for each in zip(*codes, strict=True)]
    assert found.tolist() == expected
    assert layer.run(layer.compass, *codes)[0].tolist() != expected


def test_leaky_relu() -> None:
    """4.39: to the output's scale first, then alpha. s_x = 1, s_y = 1/2: M / 2^N = 128 / 2^8; alpha = 77 / 2^8."""
    entries: dict[str, Entry] = {
        "method": "LEAKYRELU",
        "negative_slope_type": "float32",
        "negative_slope_value": 0.3,
    }
    layer = _Layer("Activation", entries, ((-127.5, 127.5),), ((-255.0, 255.0),), ((256,), (256,)))

    def paper(x: int) -> int:
        v = _rne(Fraction(x * 128, 256))
        return _clamp(max(v, 0) + _rne(Fraction(min(v, 0) * 77, 256)))

    _check(layer, paper, SIGNED)


def test_clip() -> None:
    """4.11: limits are quantized values of the output: -1 -> RNE(-12.75), 0.9805 -> RNE(12.501). r = 0.2 = 205 / 2^10.

    At 256 s_y Compass has 3200 for the upper limit, which becomes 12.5 and then 12.
    """
    entries: dict[str, Entry] = {"method": "CLIP", "clip_min": -1.0, "clip_max": 0.9805}
    layer = _Layer("Activation", entries, ((-2.0, 2.0),), ((-10.0, 10.0),), ((256,), (256,)))
    _check(layer, lambda x: max(-13, min(13, _rne(Fraction(x * 205, 1024)))), SIGNED)


def test_div() -> None:
    """4.23: a * M / b, rounded by the remainder, then 2^-N. s_a = s_b = s_y = 1: r = 1."""
    layer = _Layer("Div", {}, ((-127.5, 127.5),) * 2, ((-12.75, 12.75),), SHAPES)

    def paper(a: int, b: int) -> int:
        quotient = _away(Fraction(a * 160, b)) if b else 0  # r = 10: 160 / 2^4
        return _clamp(_rne(Fraction(quotient, 16)))

    _check(layer, paper, *PAIRS)


def test_negative() -> None:
    """4.47: zp_y = -zp_x, so that y = -x; Compass has zp_y = 1 - zp_x."""
    layer = _Layer("Negative", {}, ((-3.0, 1.0),), ((-1.0, 3.0),), ((256,), (256,)), "asymmetric")
    zp_x = -int(layer.paper.tensors[layer.paper.inputs[0]].affine.zero_point[0])
    assert (layer.offset(0), zp_x != 0) == (-zp_x, True)
    _check(layer, lambda x: _clamp(-x), SIGNED)


def test_mean() -> None:
    """4.53: the input's scale and zero point pass, y = RNE(mean of quantized values)."""
    layer = _Layer(
        "Reduce", {"method": "MEAN", "axis": (0,)}, ((-1.0, 2.0),), ((-0.5, 0.5),), ((4, 256), (1, 256)), "asymmetric"
    )
    codes = np.random.default_rng(0).integers(-128, 128, (4, 256))
    assert layer.paper.tensors[layer.paper.outputs[0]].quantization == (
        layer.paper.tensors[layer.paper.inputs[0]].quantization
    )
    expected = [_rne(Fraction(int(column.sum()), 4)) for column in codes.T]
    assert layer.run(layer.paper, codes)[0].tolist() == expected
    assert layer.run(layer.compass, codes)[0].tolist() != expected


@pytest.mark.parametrize("method", ["MAX", "MIN"])
def test_extremes(method: str) -> None:
    """4.25, 4.26: an M for each input. s_a = 2, s_b = 4, s_y = 3: 192 / 2^7 and 192 / 2^8, so 384 and 192 on 2^8."""
    limits = ((-63.75, 63.75), (-31.875, 31.875))
    entries: dict[str, Entry] = {"method": method, "with_activation": "NONE"}
    choose = max if method == "MAX" else min
    layer = _Layer("Eltwise", entries, limits, ((-42.5, 42.5),), SHAPES)
    _check(layer, lambda a, b: _clamp(_rne(Fraction(choose(a * 384, b * 192), 256))), *PAIRS)
    # Equal types: Compass forgets the output's scale, the whitepaper does not.
    layer = _Layer("Eltwise", entries, limits[:1] * 2, ((-42.5, 42.5),), SHAPES)
    _check(layer, lambda a, b: _clamp(_rne(Fraction(choose(a, b) * 192, 128))), *PAIRS)


def test_comparisons() -> None:
    """4.41: a * 2^N against b * M, M / 2^N = s_a / s_b = 2 / 3 = 21845 / 2^15."""
    layer = _Layer("Logical", {"method": "GREATER"}, ((-63.75, 63.75), (-42.5, 42.5)), ((0.0, 1.0),), SHAPES)
    _check(layer, lambda a, b: int(a * (1 << 15) > b * 21845), *PAIRS)


def test_moments() -> None:
    """4.46: (n * sum q^2 - (sum q)^2) / n^2, whole; with unbiased=true divided by n * (n - 1)."""
    codes = np.random.default_rng(1).integers(-30, 31, (5, 256))
    for unbiased in (False, True):
        entries: dict[str, Entry] = {"axis": (0,), "keepdims": True, "unbiased": unbiased}
        layer = _Layer(
            *("Moments", entries, ((-127.5, 127.5),), ((-127.5, 127.5), (0.0, 510.0))), ((5, 256), (1, 256), (1, 256))
        )
        divisor = 5 * (4 if unbiased else 5)
        values = [(5 * int((c * c).sum()) - int(c.sum()) ** 2) // divisor for c in codes.T]
        mean, variance = layer.run(layer.paper, codes)
        assert mean.tolist() == [_rne(Fraction(int(c.sum()), 5)) for c in codes.T]
        assert variance.tolist() == [_clamp(_rne(Fraction(v * 128, 256)), 0, 255) for v in values]  # s_v = 1/2
        assert layer.run(layer.compass, codes)[1].tolist() != variance.tolist()


def test_one_value_has_no_unbiased_variance() -> None:
    entries: dict[str, Entry] = {"axis": (0,), "keepdims": True, "unbiased": True}
    layer = _Layer("Moments", entries, ((-1.0, 1.0),), ((-1.0, 1.0), (0.0, 1.0)), ((1, 4), (1, 4), (1, 4)))
    with pytest.raises(UnsupportedError, match="the unbiased variance of one value is not defined"):
        lower(layer.paper, "aipu")


def test_histogram() -> None:
    """4.37: limits lose the zero point, as quantized values do.

    The float histogram of what quantized values stand for.
    """
    entries: dict[str, Entry] = {"min": -2.0, "max": 0.0, "nbins": 4, "discrete": True}
    layer = _Layer("Count", entries, ((-3.0, 1.0),), ((0.0, 256.0),), ((1, 256), (1, 4)), "asymmetric")
    affine = layer.paper.tensors[layer.paper.inputs[0]].affine
    codes = np.arange(256) ** 2 // 256 - 128
    real = (codes - affine.zero_point[0]) * affine.scale[0]
    expected = np.histogram(real, 4, (-2.0, 0.0))[0]
    found = layer.run(layer.paper, codes)[0]
    assert np.abs(found - expected).max() <= 1  # limits are rounded to quantized values
    assert layer.offset(0) == 0
    assert np.abs(layer.run(layer.compass, codes)[0] - expected).max() > 9


def test_bias_add() -> None:
    """4.8: x and B on the input's scale; Compass's sum loses the data."""
    biases = np.array([-30.0, 0.25, 50.5, 20.0], np.float32)
    entries: dict[str, Entry] = {"biases": Constant(biases, "float32")}
    layer = _Layer("BiasAdd", entries, ((-127.5, 127.5),), ((-255.0, 255.0),), ((64, 4), (64, 4)))
    codes = SIGNED.reshape(64, 4)
    sums = codes + np.array([-30, 0, 50, 20])  # RNE of 0.25 and 50.5
    expected = [_clamp(_rne(Fraction(int(v) * 128, 256))) for v in sums.reshape(-1)]
    assert layer.run(layer.paper, codes)[0].tolist() == expected
    assert layer.run(layer.compass, codes)[0].tolist() != expected


def test_softmax() -> None:
    """4.66: e * M / sum e, rounded by the remainder, s_y = 255 whatever was observed."""
    layer = _Layer("Softmax", {"axis": 1}, ((-8.0, 8.0),), ((0.0, 0.6),), ((64, 4), (64, 4)))
    codes = np.random.default_rng(2).integers(-128, 128, (64, 4))
    assert (float(layer.scale(0)), layer.offset(0)) == (255.0, 0)
    s = Fraction(float(np.float32(127.5 / 8)))
    table = [round(np.exp(float(Fraction(i - 255) / s)) * ((1 << 20) - 1)) for i in range(256)]
    expected = []
    for row in codes:
        e = [table[int(q - row.max()) + 255] for q in row]
        shares = [_away(Fraction(v * 32640, max(sum(e), 1))) for v in e]  # 255 = 32640 / 2^7
        expected += [_clamp(_rne(Fraction(v, 128)), 0, 255) for v in shares]
    assert layer.run(layer.paper, codes)[0].tolist() == expected
    assert layer.run(layer.compass, codes)[0].tolist() != expected


@pytest.mark.parametrize("mode", ["symmetric", "asymmetric"])
@pytest.mark.parametrize(
    ("kind", "entries", "function", "limits"),
    [
        ("Activation", {"method": "TANH"}, np.tanh, (-0.97, 0.97)),
        ("Activation", {"method": "SIGMOID"}, lambda v: 1 / (1 + np.exp(-v)), (0.0, 0.9)),
        ("Activation", {"method": "SOFTSIGN"}, lambda v: v / (1 + np.abs(v)), (-0.7, 0.7)),
        ("Sine", {}, np.sin, (-1.0, 1.0)),
        ("Cosine", {}, np.cos, (-1.0, 1.0)),
        ("Square", {}, np.square, (0.0, 4.0)),
    ],
)
def test_half_tables(
    kind: str, entries: dict[str, Entry], function: Callable[[Reals], Reals], limits: Range2, mode: str
) -> None:
    """3.3.2.2: half as many entries, mirrored; within a step of the function itself."""
    layer = _Layer(kind, entries, ((-2.0, 1.0),), (limits,), ((256,), (256,)), mode)
    affine, x = (layer.paper.tensors[t].affine for t in (*layer.paper.outputs, *layer.paper.inputs))
    exact = function((SIGNED - x.zero_point[0]) * x.scale[0]) / affine.scale[0] + affine.zero_point[0]
    wanted = np.clip(exact, affine.minimum_code, affine.maximum_code)
    assert np.abs(layer.run(layer.paper, SIGNED)[0] - wanted).max() <= 1.01
    entries_of = lower(layer.paper, "aipu").nodes[0].params
    size = getattr(entries_of, "entries").size  # noqa: B009 - the integers of any node
    assert size == 1 + np.abs(SIGNED - x.zero_point[0]).max()


@pytest.mark.parametrize("kind", ["int8", "int32"])
def test_cast(kind: str) -> None:
    """4.10: a table of the casts of what quantized values stand for.

    Towards zero, where Compass requantizes to the nearest, but beyond 16 bits.
    """
    edges = Edge("x_0", (256,), "float32"), Edge("y_0", (256,), kind)
    header: dict[str, Value] = {"model_name": "m", "input_tensors": ("x_0",), "output_tensors": ("y_0",)}
    keys: dict[str, Entry] = {"to_dtype": kind, "clip_mode": "TRUNCATION", "ignore_scale_zp": True}
    graph = graph_of(
        Network(header, (Layer("x", "Input", (), edges[:1]), Layer("y", "Cast", edges[:1], edges[1:], keys)))
    )
    found = Range(*(np.array([v], np.float32) for v in (-3.3, 3.3)))
    graph.tensors[graph.inputs[0]] = replace(graph.tensors[graph.inputs[0]], range=found)
    results = []
    for variant in ("whitepaper", "compass"):
        quantized = lower(AIPU.quantize(graph, parse_settings(AIPU.settings, [f"variant={variant}"])), "aipu")
        results.append(Engine(quantized).run([SIGNED.astype(np.int8)[None]])[quantized.outputs[0]].reshape(-1))
    s = np.float32(127.5) / np.float32(3.3)
    assert results[0].tolist() == np.trunc(SIGNED.astype(np.float32) / s).tolist()
    assert (results[1].tolist() == results[0].tolist()) == (kind == "int32")


def test_the_mean_of_calibration() -> None:
    """2.2.5: a weighted sum over batches, where Compass has a moving average."""
    builder = GraphBuilder()
    x = builder.input("x", (1,), DType.FLOAT32)
    graph = builder.build((builder.add("relu", (x,), (1,), DType.FLOAT32),))
    data = np.array([[1.0], [2.0], [6.0]], np.float32)
    paper = calibrate(graph, [data], StatisticsOptions("weighted-mean", 1, weights=(0.5, 0.25, 0.25)))
    compass = calibrate(graph, [data], StatisticsOptions("mean", 1))
    found = [g.tensors[x].range for g in (paper, compass)]
    assert [float(r.maximum[0]) for r in found if r is not None] == [2.5, pytest.approx(1.59)]


def test_the_rest_of_the_network_is_compass_s_own() -> None:
    layer = _Layer("Abs", {}, ((-1.0, 1.0),), ((0.0, 1.0),), ((256,), (256,)))
    assert [node.arithmetic for node in layer.paper.nodes] == ["aipu"]
    assert layer.run(layer.paper, SIGNED)[0].tolist() == layer.run(layer.compass, SIGNED)[0].tolist()


def test_files_cannot_hold_the_variant() -> None:
    layer = _Layer("Negative", {}, ((-1.0, 1.0),), ((-1.0, 1.0),), ((4,), (4,)))
    with pytest.raises(UnsupportedError, match=r"layer y runs the whitepaper's formulas.*variant=whitepaper away"):
        AIPU.emit(layer.paper, Model([layer.paper]))
    assert AIPU.emit(layer.compass, Model([layer.compass]))


@pytest.mark.parametrize(
    ("kind", "words"), [("Cast", "Cast of 16 bits by a table"), ("Sine", "half a table of 16 bits")]
)
def test_wide_codes_are_refused(kind: str, words: str) -> None:
    entries: dict[str, Entry] = {"to_dtype": "int8"} if kind == "Cast" else {}
    edges = Edge("x_0", (4,), "float32"), Edge("y_0", (4,), "int8" if kind == "Cast" else "float32")
    header: dict[str, Value] = {"model_name": "m", "input_tensors": ("x_0",), "output_tensors": ("y_0",)}
    graph = graph_of(
        Network(header, (Layer("x", "Input", (), edges[:1]), Layer("y", kind, edges[:1], edges[1:], entries)))
    )
    for t in (0, 1):
        found = Range(*(np.array([v], np.float32) for v in (-1.0, 1.0)))
        graph.tensors[t] = replace(graph.tensors[t], range=found)
    settings = parse_settings(AIPU.settings, ["variant=whitepaper", "activation_bits=16"])
    with pytest.raises(UnsupportedError, match=words):
        lower(AIPU.quantize(graph, settings), "aipu")
