"""Filters, products, slopes, sums and conversions beside docs/rules/tpu_mlir.md, docs/rules/tpu_mlir_operators.md,
docs/differences/tpu_mlir.md, element by element."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.support.draw import affine
from tests.support.tpu_mlir_layers import F32, FLOAT16, KINDS, Type, drawn, one, rha, run, sat, searched, up
from tests.support.types import FLOAT32, INT8, UINT8
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Array, DType, Graph, GraphBuilder
from tflq.interpreter import Engine, lower
from tflq.interpreter.kernels.tpu_mlir.multiplier import find_multiplier


def filtered(operator: str, x: Type, y: Type, weights: Array, bias: Array, scales: Array, **options: Any) -> Graph:
    b = GraphBuilder(operator)
    shape = (1, 4) if operator == "fully_connected" else (1, 5, 6, 4)
    axis = None if scales.size == 1 else (3 if operator == "depthwise_conv_2d" else 0)
    data = b.input("x", shape, *x)
    zeros = np.zeros(scales.size, np.int64)
    kind = Affine(scales, zeros, axis, 8, weights.dtype == np.int8)
    w = b.constant("w", weights, kind)
    c = b.constant("b", bias, Affine(scales * x[1].scale, zeros, None if axis is None else 0, 32))
    if operator == "fully_connected":
        return b.build([b.add(operator, [data, w, c], (1, bias.size), *y)])
    stride, dilation = options["stride"], options["dilation"]
    sides = [
        (n - (k - 1) * d - 1) // s + 1 for n, k, d, s in zip((5, 6), weights.shape[1:3], dilation, stride, strict=True)
    ]
    given = {"stride_h": stride[0], "stride_w": stride[1], "dilation_h_factor": dilation[0],
             "dilation_w_factor": dilation[1], "padding": "valid"}  # fmt: skip
    return b.build([b.add(operator, [data, w, c], (1, *sides, bias.size), *y, **given)])


@pytest.mark.parametrize("formulas", ["", "manual"])
@pytest.mark.parametrize("weight_type", [INT8, UINT8])
@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("operator", ["conv_2d", "depthwise_conv_2d", "fully_connected"])
def test_filters(operator: str, kinds: Any, weight_type: DType, formulas: str) -> None:
    draw = np.random.default_rng(8)
    shape = {"conv_2d": (4, 2, 3, 2), "depthwise_conv_2d": (1, 2, 3, 4), "fully_connected": (4, 4)}[operator]
    weights = draw.integers(weight_type.minimum, weight_type.maximum, shape, endpoint=True).astype(weight_type.storage)
    bias = draw.integers(-9000, 9000, 4).astype(np.int32)
    x, y = ((kinds[i], affine(kinds[i], scale, kinds[i + 1])) for i, scale in ((0, 0.05), (2, 0.3)))
    scales = np.array([0.011]) if operator == "fully_connected" else np.array([0.011, 0.02, 0.007, 0.5])
    graph = filtered(operator, x, y, weights, bias, scales, stride=(2, 1), dilation=(1, 2))
    graph.nodes[0] = with_formulas(graph, formulas)
    codes = drawn(graph.tensors[graph.inputs[0]].shape, kinds[0], 8)
    lowered = lower(graph, "tpu_mlir")
    rescale = lowered.nodes[0].params.filter.rescale
    fitted = lowered.nodes[0].params.filter.step_map
    assert (fitted.reach is not None) == bool(np.all((rescale.shift >= 0) & (rescale.shift <= 48)))
    found = Engine(lowered).run([codes])[lowered.outputs[0]]
    for at in np.ndindex(*found.shape):
        s, o = at[0], at[-1]
        if found.ndim == 3:
            taps = [(int(codes[s, 0, c]), int(weights[o, c])) for c in range(4)]
        else:
            taps = [(int(codes[s, 0, 2 * at[2] + a, at[3] + 2 * b, o // 2 * 2 + c if operator == "conv_2d" else o]),
                     int(weights[o, a, b, c] if operator == "conv_2d" else weights[0, a, b, o]))
                    for a, b, c in np.ndindex(2, 3, 2 if operator == "conv_2d" else 1)]  # fmt: skip
        k = min(o, scales.size - 1)
        ratio = float(scales[k]) * float(x[1].scale[0]) / float(y[1].scale[0])
        m, n = searched(ratio, 32) if not formulas else (int(rescale.multiplier[k]), int(rescale.shift[k]))
        assert abs(Fraction(m) / Fraction(2) ** n / Fraction(ratio) - 1) < Fraction(1, 1 << 20)
        assert not formulas or 1 << 30 <= m < 1 << 31
        total = sum(p * q for p, q in taps) + int(bias[o])
        assert found[at] == sat(up(total * m, n) + kinds[3], kinds[2])


def with_formulas(graph: Graph, formulas: str) -> Any:
    node = graph.nodes[0]
    return replace(node, attributes=node.attributes.updated(formulas=formulas))


@pytest.mark.parametrize("dtype", [INT8, UINT8])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("channel", [0, 2])
def test_accumulators_end_with_int32(dtype: DType, sign: int, channel: int) -> None:
    weights, bias = np.zeros((3, 4), np.int8), np.zeros(3, np.int64)
    weights[channel, 1] = sign
    reached = max(sign * dtype.minimum, sign * dtype.maximum) if sign > 0 else min(-dtype.minimum, -dtype.maximum)
    kind = (dtype, affine(dtype, 0.05))
    for beyond in (0, sign):
        bias[channel] = ((1 << 31) - 1 if sign > 0 else -(1 << 31)) - reached + beyond
        graph = filtered("fully_connected", kind, kind, weights, bias.astype(np.int32), np.array([2.0**-20]))
        if beyond:
            with pytest.raises(
                UnsupportedError, match=f"channel {channel}: accumulators with bias reach .*beyond int32"
            ):
                lower(graph, "tpu_mlir")
        else:
            lower(graph, "tpu_mlir")


@pytest.mark.parametrize("adjoint", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("dtype", [INT8, UINT8, FLOAT16, FLOAT32])
def test_products_of_two_activations(dtype: DType, adjoint: tuple[bool, bool]) -> None:
    shapes = [(2, 4, 3) if adjoint[0] else (2, 3, 4), (2, 5, 4) if adjoint[1] else (2, 4, 5)]
    kinds: list[Any] = [(dtype, None if dtype.is_floating else affine(dtype, s)) for s in (0.05, 0.02, 0.08)]
    a, b = (drawn(shape, dtype, 9) for shape in shapes)
    inputs = [(shape, kind) for shape, kind in zip(shapes, kinds[:2], strict=True)]
    options = {"adj_x": adjoint[0], "adj_y": adjoint[1]}
    found = run(one("batch_matmul", inputs, ((2, 3, 5), kinds[2]), **options), a, b)
    left, right = (np.swapaxes(v, 2, 3) if is_turned else v for v, is_turned in zip((a, b), adjoint, strict=True))
    for s, n, i, j in np.ndindex(2, 2, 3, 5):
        pairs = [(left[s, n, i, k], right[s, n, k, j]) for k in range(4)]
        if dtype.is_floating:
            total = F32(0)
            for p, q in pairs:
                total = F32(float(np.float64(p) * np.float64(q)) + np.float64(total))  # one rounding, but for rare ties
            assert abs(float(found[s, n, i, j]) - float(total.astype(dtype.storage))) <= 1e-6 * (1 + abs(total))
        else:
            scales = [float(k[1].scale[0]) for k in kinds]
            m, shift = searched(scales[0] * scales[1] / scales[2], 32)
            assert found[s, n, i, j] == sat(up(sum(int(p) * int(q) for p, q in pairs) * m, shift), dtype)
    if not dtype.is_floating:
        for place in range(3):
            shifted = [(dtype, affine(dtype, 0.05, int(i == place))) for i in range(3)]
            graph = one("batch_matmul", list(zip(shapes, shifted[:2], strict=True)), ((2, 3, 5), shifted[2]), **options)
            with pytest.raises(UnsupportedError, match="has a zero point; a product of activations has none"):
                lower(graph, "tpu_mlir")


@pytest.mark.parametrize("slope", [0.0, 0.3, -0.4, 2.0, 130.0])
def test_slopes_in_float16(slope: float) -> None:
    kind = (FLOAT16, None)
    x = drawn((1, 40), FLOAT16, 10)
    x[0, 0, :2] = 60000, -60000
    with np.errstate(over="ignore"):
        if slope >= 0:
            found = run(one("leaky_relu", [((1, 40), kind)], ((1, 40), kind), alpha=slope), x)
            below = (x.astype(np.float32) * F32(slope)).astype(np.float16)
            assert found.tolist() == np.where(x < 0, below, x).tolist()
        found = run(one("prelu", [((1, 40), kind)], ((1, 40), kind), [np.array([slope], np.float32)]), x)
        assert found.tolist() == np.where(x < 0, x * np.float16(slope), x).tolist()


@pytest.mark.parametrize(
    ("largest", "shift"),
    [
        *((2.0**-26, None), (127 * 2.0**-32, 31), (126.9 * 2.0**-32, None), (127.0, 0)),
        *((127.999, 0), (128.0, None), (1.0, 6), (0.0, None)),
    ],
)
def test_the_shift_of_slopes(largest: float, shift: int | None) -> None:
    """The first r with max |alpha| 2^(r+1) >= 127, and trunc(alpha 2^r) in 8 bits."""
    kind = (INT8, affine(INT8, 0.05))
    alpha = np.array([largest / 3, -largest, 0.0, largest / 2], np.float64).astype(np.float32)
    graph = one("prelu", [((1, 3, 4), kind)], ((1, 3, 4), kind), [alpha])
    if shift is None:
        with pytest.raises(UnsupportedError, match="2\\^-25 to below 128 fit 8 bits and a shift"):
            lower(graph, "tpu_mlir")
        return
    x = drawn((1, 3, 4), INT8, 11)
    slopes = [int(float(a) * 2.0**shift) for a in alpha]
    found = run(graph, x)
    for at in np.ndindex(*x.shape):
        q = int(x[at])
        assert found[at] == (q if q >= 0 else sat(up(q * slopes[at[-1]], shift), INT8))


@pytest.mark.parametrize(("operator", "options", "words"), [
    ("leaky_relu", {"alpha": -0.1}, "slopes from 0 are known"), ("leaky_relu", {"alpha": float("inf")}, "alpha is inf"),
])  # fmt: skip
def test_slopes_that_are_refused(operator: str, options: dict[str, Any], words: str) -> None:
    kind = (INT8, affine(INT8, 0.05))
    with pytest.raises(UnsupportedError, match=words):
        lower(one(operator, [((1, 4), kind)], ((1, 4), kind), **options), "tpu_mlir")
    for alpha, source, said in (
        (np.inf, INT8, "not finite"),
        (np.nan, INT8, "not finite"),
        (0.5, UINT8, "never negative"),
    ):
        kind = (source, affine(source, 0.05))
        with pytest.raises(UnsupportedError, match=said):
            lower(one("prelu", [((1, 4), kind)], ((1, 4), kind), [np.array([alpha], np.float32)]), "tpu_mlir")


@pytest.mark.parametrize("fused", ["none", "relu"])
@pytest.mark.parametrize("operator", ["add", "sub"])
def test_sums_in_float16(operator: str, fused: str) -> None:
    kind = (FLOAT16, None)
    x, y = drawn((2, 5), FLOAT16, 12), drawn((5,), FLOAT16, 13)
    x[0, 0, 0], y[0, 0] = 65000, 65000
    found = run(one(operator, [((2, 5), kind), ((5,), kind)], ((2, 5), kind), fused_activation_function=fused), x, y)
    with np.errstate(over="ignore"):
        sign = 1 if operator == "add" else -1
        wanted = (x.astype(np.float32) + sign * y[:, None].astype(np.float32)).astype(np.float16)
    assert found.tolist() == (np.maximum(wanted, 0) if fused == "relu" else wanted).tolist()


@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize("operator", ["add", "sub"])
@pytest.mark.parametrize("scales", [(0.05, 0.02, 0.06), (0.02, 0.05, 0.06), (0.05, 0.05, 0.03)])
def test_sums_of_the_manual(operator: str, asymmetric: bool, scales: tuple[float, float, float]) -> None:
    """Section 9: one shift, which the larger ratio chooses; or in float32."""
    zeros = (3, -9, 17) if asymmetric else (0, 0, 0)
    kinds = [(INT8, affine(INT8, s, z)) for s, z in zip(scales, zeros, strict=True)]
    x, y = drawn((1, 300), INT8, 14), drawn((1, 300), INT8, 15)
    found = run(one(operator, [((1, 300), kinds[0]), ((1, 300), kinds[1])], ((1, 300), kinds[2]), formulas="manual",
                    asymmetric=asymmetric), x, y)  # fmt: skip
    s_a, s_b, s_y = (float(k[1].scale[0]) for k in kinds)
    sign = 1 if operator == "add" else -1
    found_m = find_multiplier(max(s_a / s_y, s_b / s_y), 8, 0)
    shift = int(found_m.shift[0])
    ma, mb = (rha(Fraction(s / s_y) * 2**shift) for s in (s_a, s_b))
    for p, q, made in zip(x.reshape(-1).tolist(), y.reshape(-1).tolist(), found.reshape(-1).tolist(), strict=True):
        if asymmetric:
            real = F32(p - zeros[0]) * F32(s_a) + sign * (F32(q - zeros[1]) * F32(s_b))
            wanted = rha(float(real / F32(s_y))) + zeros[2]
        else:
            wanted = up(p * ma + sign * q * mb, shift)
        assert made == sat(wanted, INT8)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("source", [FLOAT16, FLOAT32])
@pytest.mark.parametrize(("dtype", "zero_point"), [(INT8, 0), (UINT8, 0), (INT8, -128), (INT8, 100)])
def test_from_reals_and_back(source: DType, dtype: DType, zero_point: int, half: bool) -> None:
    kind = (dtype, affine(dtype, 0.037, zero_point))
    x = np.concatenate([np.linspace(-12, 12, 997), [6e4, -6e4, 0.0185]]).astype(source.storage)[None, None]
    shape = (1, 1000)
    codes = run(one("quantize", [(shape, (source, None))], (shape, kind), half=half), x)
    real = np.float16 if half or source is FLOAT16 else np.float32
    with np.errstate(over="ignore"):
        steps = (x.astype(np.float32) * F32(real(1 / np.float64(F32(0.037))))).astype(real)
    wanted = [sat(rha(v) + zero_point if abs(v) < 1e5 else int(1e6 * v / abs(v)), dtype) if np.isfinite(v)
              else (dtype.maximum if v > 0 else dtype.minimum) for v in steps.reshape(-1).tolist()]  # fmt: skip
    assert codes.reshape(-1).tolist() == wanted
    back = run(one("dequantize", [(shape, kind)], (shape, (source, None))), codes)
    kept = source.storage
    scale = kept.type(F32(0.037))
    assert back.reshape(-1).tolist() == [float(kept.type(kept.type(q - zero_point) * scale)) for q in wanted]
