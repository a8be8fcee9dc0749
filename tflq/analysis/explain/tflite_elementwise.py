"""ADD, SUB, MUL, RELU and its kin, QUANTIZE and DEQUANTIZE in TFLite's integers (docs/tflite.md)."""

from __future__ import annotations

import numpy as np

from tflq.analysis.explain.plain import (
    INT32_MAX,
    INT32_MIN,
    divide_by_pot,
    high_mul_16,
    multiplied,
    round_half_away,
    wrap32,
)
from tflq.analysis.explain.steps import Computed, Element, Index, Trace, broadcast_index
from tflq.graph import Array
from tflq.interpreter.kernels.tflite.clamped import Clamped
from tflq.interpreter.kernels.tflite.dequantize import Dequantize
from tflq.interpreter.kernels.tflite.mul import QuantisedProduct
from tflq.interpreter.kernels.tflite.quantize import FromFloat, Requantise
from tflq.interpreter.kernels.tflite.rescaled_sum import RescaledSum


def explain_sum(element: Element) -> Computed:
    """Explain ADD and SUB: both inputs rescaled to one fine scale, added, rescaled to the output.

    Source: TFLite reference/add.h and sub.h.
    """
    params = element.node.params
    assert isinstance(params, RescaledSum)
    trace, parts = Trace(), []
    for k, word in enumerate(("first ", "second ")):
        code = element.read(k)
        zero_point, shift = params.input_zero_points[k], params.left_shift
        trace.add(f"{word}input", f"of '{element.operands.input(k).name}'", code)
        fine = wrap32((code - zero_point) << shift)
        trace.add(f"{word}shifted", f"({code} - ({zero_point})) << {shift}", fine)
        parts.append(multiplied(trace, fine, params.input_multipliers[k], params.input_shifts[k], word))
    sign = "+" if params.sign > 0 else "-"
    accumulator = wrap32(parts[0] + params.sign * parts[1])
    trace.add("accumulator", f"{parts[0]} {sign} {parts[1]}", accumulator)
    rounded = multiplied(trace, accumulator, params.output_multiplier, params.output_shift)
    shifted = rounded + params.output_zero_point
    trace.add("plus output zero point", f"{rounded} + {params.output_zero_point}", shifted)
    trace.clamp(shifted, params.minimum, params.maximum)
    return trace.done()


def explain_product(element: Element) -> Computed:
    """Explain MUL: the product of both differences, rescaled once. Source: TFLite integer_ops/mul.h."""
    params = element.node.params
    assert isinstance(params, QuantisedProduct)
    trace, differences = Trace(), []
    for k, word in enumerate(("first ", "second ")):
        code, zero_point = element.read(k), params.input_zero_points[k]
        trace.add(f"{word}input", f"of '{element.operands.input(k).name}'", code)
        differences.append(trace.add(f"{word}minus zero point", f"{code} - ({zero_point})", code - zero_point))
    a, b = differences
    if params.narrowing:
        high = trace.add("high product", f"SRDHM16({a}, {b}) = ({a} * {b} +- 2^14) / 2^15", high_mul_16(a, b))
        rounded = trace.add("rounded", f"RDBP({high}, 8), half away from 0", divide_by_pot(high, 8))
    else:
        accumulator = trace.add("accumulator", f"{a} * {b}", wrap32(a * b))
        rounded = multiplied(trace, accumulator, params.multiplier, params.shift)
    shifted = wrap32(rounded + params.output_zero_point)
    trace.add("plus output zero point", f"{rounded} + {params.output_zero_point}", shifted)
    trace.clamp(shifted, params.minimum, params.maximum)
    return trace.done()


def explain_clamped(element: Element) -> Computed:
    """Explain RELU, RELU6, RELU_N1_TO_1, RELU_0_TO_1: a rescale and a clamp. Source: TFLite reference_ops.h, ReluX."""
    params = element.node.params
    assert isinstance(params, Clamped)
    trace = Trace()
    code = trace.add("input", "", element.read(0))
    difference = trace.add(
        "minus input zero point", f"{code} - ({params.input_zero_point})", code - params.input_zero_point
    )
    rounded = multiplied(trace, difference, params.multiplier, params.shift)
    shifted = wrap32(rounded + params.output_zero_point)
    trace.add("plus output zero point", f"{rounded} + {params.output_zero_point}", shifted)
    trace.clamp(shifted, params.minimum, params.maximum)
    return trace.done((0, element.index))


def explain_requantise(element: Element) -> Computed:
    """Explain QUANTIZE between integers. Source: TFLite reference/requantize.h."""
    params = element.node.params
    assert isinstance(params, Requantise)
    trace = Trace()
    code = trace.add("input", "", element.read(0))
    difference = wrap32(code - params.input_zero_point)
    trace.add("minus input zero point", f"{code} - ({params.input_zero_point})", difference)
    rounded = multiplied(trace, difference, params.multiplier, params.shift)
    shifted = wrap32(rounded + params.output_zero_point)
    trace.add("plus output zero point", f"{rounded} + {params.output_zero_point}", shifted)
    trace.clamp(shifted, params.dtype.minimum, params.dtype.maximum)
    return trace.done((0, element.index))


def explain_from_float(element: Element) -> Computed:
    """Explain QUANTIZE of real numbers: a float32 quotient, rounded half away. Source: TFLite reference/quantize.h."""
    params = element.node.params
    assert isinstance(params, FromFloat)
    scale, zero_point = _own(params.scale, element.index), int(_own(params.zero_point, element.index))
    trace = Trace()
    real = np.float32(element.input(0)[element.index])
    trace.add("input", "", float(real))
    trace.add("scale", "float32", float(scale))
    with np.errstate(all="ignore"):
        quotient = float(np.float32(real / np.float32(scale)))
    trace.add("scaled", f"float32({float(real)!r} / {float(scale)!r})", quotient)
    fits = np.isfinite(quotient) and INT32_MIN <= round_half_away(quotient) <= INT32_MAX
    rounded = trace.add("rounded", "round half away from 0", round_half_away(quotient) if fits else INT32_MIN)
    shifted = trace.add("plus output zero point", f"{rounded} + {zero_point}", wrap32(rounded + zero_point))
    trace.clamp(shifted, params.dtype.minimum, params.dtype.maximum)
    return trace.done((0, element.index))


def explain_dequantize(element: Element) -> Computed:
    """Explain DEQUANTIZE: scale * (x - zero point), one rounding to float32. Source: TFLite reference/dequantize.h."""
    params = element.node.params
    assert isinstance(params, Dequantize)
    scale, zero_point = _own(params.scale, element.index), int(_own(params.zero_point, element.index))
    trace = Trace()
    code = trace.add("input", "", element.read(0))
    difference = trace.add("minus input zero point", f"{code} - ({zero_point})", code - zero_point)
    trace.add("scale", str(params.scale.dtype), float(scale))
    kind = params.scale.dtype.type
    product = np.float32(kind(difference) * kind(scale))
    trace.add("stored value", f"float32({difference} * {float(scale)!r})", float(product))
    return trace.done((0, element.index))


def _own(values: Array, index: Index) -> float:
    """Return the scale or zero point of an element; arrays are [1], or have the sample axis in front."""
    if values.size == 1:
        return float(values.reshape(-1)[0])
    shape = values.shape[len(values.shape) - len(index) :]
    return float(values.reshape(shape)[broadcast_index(index, shape)])
