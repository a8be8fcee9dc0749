"""Layers on quantized values by the formulas of docs/rules/openvino.md#levels-as-integers, tap by tap in Python's
fractions.

real = sum (q_x - Z_x) * (q_w - Z_w) * S_x * S_w + b over the taps inside the image; level = round half even(real / S +
zero level), clamped; code = level + first. Scales are powers of two, so that every real number is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.support import c_compiler
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import ABSENT, Affine, Array, DType, Graph, GraphBuilder
from tflq.interpreter import Engine, lower

FLOAT, INT4, INT8, INT16 = DType.FLOAT32, DType.INT4, DType.INT8, DType.INT16
SHAPE = (1, 5, 4, 4)
CLAMPS: dict[str, tuple[float, float]] = {
    "none": (-np.inf, np.inf), "relu": (0, np.inf), "relu6": (0, 6), "relu_n1_to_1": (-1, 1)
}  # fmt: skip


def affine(scale: float | Sequence[float], zero_point: int | Sequence[int], bits: int = 8, axis: int = 3) -> Affine:
    scales, zeros = np.array(scale, np.float32, ndmin=1), np.array(zero_point, np.int64, ndmin=1)
    return Affine(scales, np.broadcast_to(zeros, scales.shape), axis if scales.size > 1 else None, bits)


def real_of(codes: Array, kind: Affine) -> Array:
    """Return exact reals, as Python's fractions."""
    scale, zero = (np.broadcast_to(v, codes.shape[-1:] if v.size > 1 else (1,)) for v in (kind.scale, kind.zero_point))
    wide = codes.astype(object) - zero.astype(int)
    return np.asarray(wide * np.array([Fraction(float(s)) for s in scale], object))


def clamped(real: Fraction, low: float, high: float) -> Fraction:
    real = real if low == -np.inf else max(real, Fraction(low))
    return real if high == np.inf else min(real, Fraction(high))


def stored(real: Array, kind: Affine | None, fused: str) -> Array:
    """Return what a layer writes of exact reals [..., C]."""
    flat = [clamped(r, *CLAMPS[fused]) for r in real.reshape(-1).tolist()]
    if kind is None:
        return np.array([float(r) for r in flat], np.float32).reshape(real.shape)
    first, last = kind.minimum_code, kind.maximum_code
    levels = [round(r / Fraction(float(kind.scale[0])) + int(kind.zero_point[0]) - first) for r in flat]
    return np.array([min(max(v, 0), last - first) + first for v in levels]).reshape(real.shape)


def run(graph: Graph, *inputs: Array) -> Array:
    """Return what numpy computes; compiled C gives the same."""
    c_compiler.compiler()
    given = [x[None] for x in inputs]
    found, compiled = (
        Engine(graph, "openvino", backend=backend).run(given)[graph.outputs[0]][0] for backend in ("numpy", "c")
    )
    assert np.array_equal(found, compiled)
    return np.asarray(found)


def codes(shape: Sequence[int], kind: Affine, seed: int = 0) -> Array:
    draw = np.random.default_rng(seed).integers(kind.minimum_code, kind.maximum_code + 1, shape)
    return draw.astype(np.int16 if kind.bits > 8 else np.int8)


OUTPUTS: dict[str, tuple[DType, Affine | None]] = {
    "float32": (FLOAT, None),
    "int8": (INT8, affine(8, -3)),
    "int4": (INT4, affine(64, 2, 4)),
    "int16": (INT16, affine(0.5, 100, 16)),
}


def filtered(x: Array, w: Array, stride: tuple[int, int], dilation: tuple[int, int], same: bool, deep: bool) -> Array:
    """Return exact sums of reals [1, H, W, C] and weights [O, KH, KW, D]; deep: a filter for each channel."""
    _, height, width, channels = x.shape
    count, rows, columns, depth = w.shape
    reach = ((rows - 1) * dilation[0] + 1, (columns - 1) * dilation[1] + 1)
    size = [
        -(-n // s) if same else -(-(n - r + 1) // s) for n, r, s in zip((height, width), reach, stride, strict=True)
    ]
    before = [max(0, (m - 1) * s + r - n) // 2 if same else 0
              for m, s, r, n in zip(size, stride, reach, (height, width), strict=True)]  # fmt: skip
    found = np.full((1, *size, count), Fraction(0), object)
    for i, j, o, k, m in product(range(size[0]), range(size[1]), range(count), range(rows), range(columns)):
        a, b = (p * s - t + q * d for p, s, t, q, d in zip((i, j), stride, before, (k, m), dilation, strict=True))
        if 0 <= a < height and 0 <= b < width:
            start = o * channels // count if deep else o * (channels // depth) // count * depth
            found[0, i, j, o] += sum(x[0, a, b, start + c] * w[o, k, m, c] for c in range(1 if deep else depth))
    return found


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize(
    ("operator", "weights", "window", "fused"),
    [
        ("conv_2d", (6, 3, 2, 4), {"padding": "same", "stride_h": 2, "stride_w": 1}, "none"),
        ("conv_2d", (6, 1, 1, 4), {"padding": "valid", "stride_h": 1, "stride_w": 1}, "relu"),
        ("conv_2d", (4, 2, 2, 2), {"padding": "same", "stride_h": 1, "stride_w": 1, "dilation_h_factor": 2}, "relu6"),
        ("depthwise_conv_2d", (4, 3, 3, 1), {"padding": "same", "stride_h": 1, "stride_w": 2}, "none"),
        ("depthwise_conv_2d", (8, 2, 2, 1), {"padding": "valid", "stride_h": 1, "stride_w": 1}, "relu_n1_to_1"),
    ],
)
@pytest.mark.parametrize("scales", ["one", "each", "zero points"])
def test_filters(
    operator: str, weights: tuple[int, ...], window: dict[str, Any], fused: str, output: str, scales: str
) -> None:
    deep, count = operator == "depthwise_conv_2d", weights[0]
    source = affine([1, 0.5, 0.25, 2], [3, 0, -5, 100]) if deep and scales == "each" else affine(0.5, 7)
    steps = 0.125 if scales == "one" else [2.0 ** -(i % 3) for i in range(count)]
    kind = affine(steps, [*range(-2, count - 2)] if scales == "zero points" else 0, axis=3 if deep else 0)
    w = codes(weights, affine(1, 0), 1)
    bias = np.arange(count, dtype=np.float32) - 2
    b = GraphBuilder("filter")
    laid = w.transpose(3, 1, 2, 0) if deep else w
    given = [b.input("x", SHAPE, INT8, source), b.constant("w", laid, kind, INT8)]
    given += [b.constant("b", bias)] if fused != "relu" else [ABSENT]
    x = codes(SHAPE, source, 2)
    wide = real_of(w.transpose(1, 2, 3, 0), kind).transpose(3, 0, 1, 2)
    dilation = (window.get("dilation_h_factor", 1), 1)
    stride = (window["stride_h"], window["stride_w"])
    real = filtered(real_of(x, source), wide, stride, dilation, window["padding"] == "same", deep)
    real = real + np.array([Fraction(float(v)) for v in bias], object) if fused != "relu" else real
    dtype, quantization = OUTPUTS[output]
    graph = b.build(
        [b.add(operator, given, real.shape, dtype, quantization, fused_activation_function=fused, **window)]
    )
    assert np.array_equal(run(graph, x), stored(real, quantization, fused))


@pytest.mark.parametrize("output", ["int8", "int4"])
@pytest.mark.parametrize("zeros", [(-128, 127, 0, 100), (-128, -128, -128, -127), (127, 127, 126, 127)])
@pytest.mark.parametrize("sign", [1, -1])
def test_every_code_of_every_channel(sign: int, zeros: tuple[int, ...], output: str) -> None:
    """Channels with zero points at both ends: no accumulator lies beyond what is prepared for."""
    scales, factors = (0.5, 1, 0.25, 2), np.array([3, -2, 5, -1]) * sign
    source, weights = affine(scales, zeros), affine([1, 0.5, 0.25, 1], 0)
    dtype = OUTPUTS[output][0]
    target = affine(16 if output == "int8" else 256, -3, dtype.bits)
    shape, b = (1, 256, 8, 4), GraphBuilder("every")
    x = np.broadcast_to(np.arange(-128, 128, dtype=np.int8)[None, :, None, None], shape)
    given = [b.input("x", shape, INT8, source), b.constant("w", factors.astype(np.int8).reshape(1, 1, 1, 4), weights)]
    window: dict[str, Any] = {"padding": "valid", "stride_h": 1, "stride_w": 1, "depth_multiplier": 1}
    graph = b.build([b.add("depthwise_conv_2d", given, shape, dtype, target, **window)])
    real = real_of(x[:, :, :1], source) * real_of(factors, weights)
    wanted = np.broadcast_to(stored(real, target, "none"), shape)
    assert np.array_equal(run(graph, np.ascontiguousarray(x)), wanted)


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("fused", CLAMPS)
@pytest.mark.parametrize("operator", ["add", "sub", "mul"])
@pytest.mark.parametrize("second", ["other range", "each channel", "real", "real image", "constant"])
@pytest.mark.parametrize("turned", [False, True])
def test_pairs(operator: str, second: str, fused: str, output: str, turned: bool) -> None:
    kinds = {"other range": affine(0.25, -9), "each channel": affine([1, 2, 0.5, 0.25], [0, 5, -7, 100])}
    first, other = affine(0.5, 7), kinds.get(second)
    x, b = codes(SHAPE, first, 3), GraphBuilder("pair")
    y = codes(SHAPE[2:], other, 4) if other is not None else np.arange(4, dtype=np.float32) * 3 - 4
    if second == "real image":
        y = (np.arange(80, dtype=np.float32).reshape(SHAPE) % 37 - 18) / 4
    given = [b.input("x", SHAPE, INT8, first)]
    if second == "constant":
        given.append(b.constant("y", y))
    else:
        kind = None if other is None else Affine(other.scale, other.zero_point, 1 if other.is_per_axis else None)
        given.append(b.input("y", y.shape, FLOAT if other is None else INT8, kind))
    reals = [Fraction(float(v)) for v in y.reshape(-1)]
    exact = real_of(y, other) if other is not None else np.array(reals, object).reshape(y.shape)
    pairs = {"add": lambda p, q: p + q, "sub": lambda p, q: p - q, "mul": lambda p, q: p * q}
    operands = [exact, real_of(x, first)] if turned else [real_of(x, first), exact]
    real, given = np.asarray(pairs[operator](*operands)), given[::-1] if turned else given
    dtype, quantization = OUTPUTS[output]
    graph = b.build([b.add(operator, given, SHAPE, dtype, quantization, fused_activation_function=fused)])
    found = run(graph, x) if second == "constant" else run(graph, x, y)
    assert np.array_equal(found, stored(real, quantization, fused))


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("axes", [(1, 2), (3,), (1,), (2, 3), (0, 1, 2, 3)])
@pytest.mark.parametrize("keep", [False, True])
def test_means(axes: tuple[int, ...], keep: bool, output: str) -> None:
    source, b = affine(0.5, 7), GraphBuilder("mean")
    x = codes(SHAPE, source, 5)
    count = int(np.prod([SHAPE[a] for a in axes]))
    real = np.asarray(real_of(x, source).sum(axis=axes, keepdims=keep) / Fraction(count))
    dtype, quantization = OUTPUTS[output]
    given = [b.input("x", SHAPE, INT8, source), b.constant("axes", np.array(axes, np.int32))]
    graph = b.build([b.add("mean", given, real.shape, dtype, quantization, keep_dims=keep)])
    found, wanted = run(graph, x), stored(np.array(real, object), quantization, "none")
    if quantization is None:
        assert np.allclose(found, wanted, rtol=1e-6)  # thirds and fifths are not exact
    else:
        assert np.array_equal(found, wanted)


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("axis", [1, 3, -1])
def test_concatenations(axis: int, output: str) -> None:
    dtype, quantization = OUTPUTS[output]
    kinds = [affine(0.5, 7), affine(2, -100), quantization if output == "int8" else affine(1, 0)]
    b, arrays = GraphBuilder("joined"), [codes(SHAPE, k, i) for i, k in enumerate(kinds) if k is not None]
    given = [b.input(f"x{i}", SHAPE, INT8, kind) for i, kind in enumerate(kinds)]
    real = np.concatenate([real_of(x, k) for x, k in zip(arrays, kinds, strict=True) if k is not None], axis)
    graph = b.build([b.add("concatenation", given, real.shape, dtype, quantization, axis=axis)])
    assert np.array_equal(run(graph, *arrays), stored(real, quantization, "none"))


def test_what_no_rule_has() -> None:
    each, one = affine([1, 0.5, 0.25, 2], 0), affine(0.5, 7)
    window: dict[str, Any] = {"padding": "same", "stride_h": 1, "stride_w": 1}
    pool = {**window, "filter_height": 2, "filter_width": 2}

    def refused(error: type[Exception], words: str, operator: str, kind: Affine, *more: Array, output: Any = None,
                shape: Sequence[int] = SHAPE, **options: Any) -> None:  # fmt: skip
        b = GraphBuilder("refused")
        given = [b.input("x", SHAPE, INT8, kind)]
        given += [b.constant(f"c{i}", c, one if c.dtype == np.int8 else None) for i, c in enumerate(more)]
        y = b.add(operator, given, shape, INT8 if output else FLOAT, output, **options)
        with pytest.raises(error, match=words):
            lower(b.build([y]), "openvino")

    w = np.ones((4, 1, 1, 4), np.int8)
    refused(UnsupportedError, "activations quantized per channel; the products of", "conv_2d", each, w, **window)
    for bad in (np.inf, -np.inf, np.nan):
        bias = np.array([0, 1, bad, 3], np.float32)
        refused(GraphError, f"bias 'c1' has {bad}; biases are finite", "conv_2d", one, w, bias, **window)
    refused(UnsupportedError, "a max pool on quantized values keeps its", "max_pool_2d", one, output=each, **pool)
    for fused, is_taken in (("relu", False), ("none", True)):
        b = GraphBuilder("pool")
        y = b.add("max_pool_2d", [b.input("x", SHAPE, INT8, one)], SHAPE, INT8, one, **pool,
                  fused_activation_function=fused)  # fmt: skip
        graph = b.build([y])
        if is_taken:
            lower(graph, "openvino")
        else:
            with pytest.raises(UnsupportedError, match="a max pool on quantized values keeps its input's range and"):
                lower(graph, "openvino")
