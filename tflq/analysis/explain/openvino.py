"""Operators on the codes of OpenVINO's low-precision pipeline: exact sums, reals in float64, then levels."""

from __future__ import annotations

import math

import numpy as np

from tflq.analysis.explain.family import Families, families_of
from tflq.analysis.explain.filters import (
    Products,
    largest_tap,
    layer_products,
    sum_and_count,
)
from tflq.analysis.explain.steps import Computed, Element, Index, Trace
from tflq.graph import Affine
from tflq.interpreter.kernels.openvino.levels import Levels
from tflq.interpreter.kernels.openvino.linear import FilterParams
from tflq.interpreter.kernels.openvino.pairs import PairParams
from tflq.interpreter.kernels.openvino.pooling import AverageParams
from tflq.interpreter.kernels.openvino.quantize import QuantizeParams
from tflq.interpreter.layers.pooling import MaxPool

_OPERATIONS = {"add": "+", "sub": "-", "mul": "*"}


def explain_linear(element: Element) -> Computed:
    """Explain a linear layer: exact products, one real, the level."""
    found, trace = getattr(element.node.params, "filter", None), Trace()
    assert isinstance(found, FilterParams)
    return _filtered(trace, element, found, layer_products(trace, element))


def explain_pair(element: Element) -> Computed:
    """Explain ADD, SUB and MUL: both operands as reals in float64, the operation, the level."""
    params = element.node.params
    assert isinstance(params, PairParams)
    trace, reals = Trace(), []
    for k, word in enumerate(("first ", "second ")):
        source, place = params.sources[k], element.place(k)
        if source is None:
            reals.append(trace.add(f"{word}input", "", float(element.input(k)[place])))
        else:
            reals.append(_real_of(trace, element, k, source, place, word))
    a, b = reals
    operation = _OPERATIONS[element.node.operator]
    value = {"+": a + b, "-": a - b, "*": a * b}[operation]
    trace.add("accumulator", f"float64 {a!r} {operation} {b!r}", value)
    value = _bounded(trace, value, params.minimum, params.maximum)
    return _stored(trace, element, value, params.levels)


def explain_average(element: Element) -> Computed:
    """Explain AVERAGE_POOL_2D, whose padding is not counted, and MEAN over any axes."""
    average, trace = getattr(element.node.params, "average", None), Trace()
    assert isinstance(average, AverageParams)
    return _averaged(trace, element, average, *sum_and_count(trace, element))


def explain_max_pool(element: Element) -> Computed:
    """Explain MAX_POOL_2D: levels keep their order."""
    params = element.node.params
    assert isinstance(params, MaxPool)
    trace = Trace()
    trace.add("stored value", "the largest", largest_tap(trace, element, params.window, params.minimum))
    return trace.done()


def explain_quantize(element: Element) -> Computed:
    """Explain FakeQuantize's first half: reals by the runtime's float32 formula, codes through float64."""
    params = element.node.params
    assert isinstance(params, QuantizeParams)
    trace = Trace()
    if params.source is not None:
        real = _real_of(trace, element, 0, params.source, element.index)
        return _stored(trace, element, real, params.levels, is_elementwise=True)
    rule, c = params.rule, element.index[-1]
    low, high = (np.float32(b.reshape(-1)[c if b.size > 1 else 0]) for b in (rule.input_low, rule.input_high))
    top = np.float32(rule.levels - 1)
    x = np.float32(element.input(0)[element.index])
    trace.add("input", "", float(x))
    trace.add("range", f"{rule.levels} levels between", (float(low), float(high)))
    scale = np.float32(top / np.float32(high - low))
    shift = np.float32(np.float32(-low) * scale)
    trace.add("multiplier", f"float32({float(top)} / float32(high - low))", float(scale))
    trace.add("addend", "float32(-low * multiplier)", float(shift))
    inside = np.float32(min(max(float(x), float(low)), float(high))) if x == x else low
    scaled = trace.add("scaled", "float32(float32(x * multiplier) + addend)", float(np.float32(inside * scale) + shift))
    index = trace.add("level", "half to even", _level(scaled, rule.levels))
    trace.add("stored value", f"level + ({params.levels.first})", index + params.levels.first)
    return trace.done((0, element.index))


def explain_dequantize(element: Element) -> Computed:
    """Explain FakeQuantize's second half: (q - Z) * S in float64, one rounding to float32."""
    params = element.node.params
    assert isinstance(params, Affine)
    trace = Trace()
    real = _real_of(trace, element, 0, params, element.index)
    trace.add("stored value", f"float32({real!r})", float(np.float32(real)))
    return trace.done((0, element.index))


def _filtered(trace: Trace, element: Element, found: FilterParams, products: Products) -> Computed:
    o = products.channel
    folded = int(found.folded[o])
    trace.add("zero-point correction", f"-({found.pad_value}) * {products.weights}", -folded)
    accumulator = trace.add("accumulator", f"{products.total} - ({folded})", products.total - folded)
    multiplier = trace.add("multiplier", "S_x * S_w in float64", float(found.multiplier[o]))
    bias = trace.add("bias", "", float(found.bias[o]))
    real = trace.add(
        "real value", f"float64 {accumulator} * {multiplier!r} + {bias!r}", accumulator * multiplier + bias
    )
    return _stored(trace, element, _bounded(trace, real, found.minimum, found.maximum), found.levels)


def _averaged(trace: Trace, element: Element, average: AverageParams, total: int, count: int) -> Computed:
    scale, zero_point = _parameters(average.source, element.index)
    shifted = trace.add("minus zero points", f"{total} - {count} * ({zero_point})", total - count * zero_point)
    real = trace.add("real value", f"float64 {shifted} * {scale!r} / {count}", shifted * scale / count)
    return _stored(trace, element, _bounded(trace, real, average.minimum, average.maximum), average.levels)


def _real_of(trace: Trace, element: Element, position: int, affine: Affine, place: Index, word: str = "") -> float:
    code = trace.add(
        f"{word}input", f"of '{element.operands.input(position).name}'", int(element.input(position)[place])
    )
    scale, zero_point = _parameters(affine, place)
    return trace.add(f"{word}real value", f"float64 ({code} - ({zero_point})) * {scale!r}", (code - zero_point) * scale)


def _parameters(affine: Affine, place: Index) -> tuple[float, int]:
    """Return S and Z at a place."""
    own = place[affine.axis or 0] if affine.is_per_axis else 0
    return float(affine.scale[own]), int(affine.zero_point[own if affine.zero_point.size > 1 else 0])


def _bounded(trace: Trace, real: float, minimum: float, maximum: float) -> float:
    if minimum == -math.inf and maximum == math.inf:
        return real
    return trace.add("activation", f"clamp({real!r}, {minimum}, {maximum})", min(max(real, minimum), maximum))


def _stored(
    trace: Trace, element: Element, real: float, levels: Levels | None, is_elementwise: bool = False
) -> Computed:
    """Add the steps from a real number to a level's code, or to float32."""
    origin = (0, element.index) if is_elementwise else None
    if levels is None:
        trace.add("stored value", f"float32({real!r})", float(np.float32(real)))
        return trace.done(origin)
    own = element.index[-1] if levels.scale.size > 1 else 0
    scale, zero = float(levels.scale[own]), float(levels.zero[own])
    scaled = trace.add("scaled", f"float64 {real!r} / {scale!r} + {zero!r}", real / scale + zero)
    level = trace.add("level", f"half to even, clamped to 0..{levels.levels - 1}", _level(scaled, levels.levels))
    trace.add("stored value", f"level + ({levels.first})", level + levels.first)
    return trace.done(origin)


def _level(scaled: float, levels: int) -> int:
    return 0 if math.isnan(scaled) else round(min(max(scaled, 0.0), levels - 1.0))


_family = families_of("openvino", "docs/openvino.md")
FAMILIES: Families = {
    FilterParams: _family("conv_2d, depthwise_conv_2d, fully_connected", explain_linear, "2"),
    PairParams: _family("add, sub, mul", explain_pair, "2"),
    AverageParams: _family("average_pool_2d, mean", explain_average, "2"),
    MaxPool: _family("max_pool_2d", explain_max_pool, "2"),
    QuantizeParams: _family("quantize", explain_quantize, "1 to 3"),
    Affine: _family("dequantize", explain_dequantize, "3"),
}
