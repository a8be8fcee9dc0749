"""ADD, pools, RELU, QUANTIZE and SOFTMAX in GAP9's integers (docs/gap9.md, 9 to 11)."""

from __future__ import annotations

import math

from tflq.analysis.explain.filters import largest_tap, sum_and_count
from tflq.analysis.explain.plain import multiplied_half_up, shift_half_up
from tflq.analysis.explain.steps import Computed, Element, Trace
from tflq.interpreter.kernels.gap9.matrix_sum import SumParams
from tflq.interpreter.kernels.gap9.pooling import Reciprocal
from tflq.interpreter.kernels.gap9.relu import ReluParams
from tflq.interpreter.kernels.gap9.softmax import SoftmaxParams
from tflq.interpreter.layers.pooling import MaxPool

_ONE = 1 << 15
_WHOLE_POWERS = 11
"""Differences of this many and more give 0."""


def explain_sum(element: Element) -> Computed:
    """Explain ADD and SUB: the operand of larger scale is multiplied first (docs/gap9.md, 10)."""
    params = element.node.params
    assert isinstance(params, SumParams)
    trace = Trace()
    codes = []
    for k, word in enumerate(("first", "second")):
        code = element.read(k)
        codes.append(trace.add(f"{word} input", f"of '{element.operands.input(k).name}'", code))
    scaled = params.scaled
    codes[scaled] = multiplied_half_up(
        trace,
        codes[scaled],
        int(params.input_mul_bias.multiplier[0]),
        int(params.input_mul_bias.shift[0]),
        ("first ", "second ")[scaled],
    )
    sign = "+" if params.sign > 0 else "-"
    accumulator = codes[0] + params.sign * codes[1]
    trace.add("accumulator", f"{codes[0]} {sign} ({codes[1]})", accumulator)
    m = params.mul_bias
    rounded = multiplied_half_up(trace, accumulator, int(m.multiplier[0]), int(m.shift[0]))
    shifted = trace.add("plus bias", f"{rounded} + ({params.bias}), from the zero points", rounded + params.bias)
    trace.clamp(shifted, params.minimum, params.maximum)
    return trace.done()


def explain_average_pool(element: Element) -> Computed:
    """Explain AVERAGE_POOL_2D: a truncated reciprocal, the padding counted (docs/gap9.md, 10)."""
    params = getattr(element.node.params, "average", None)
    assert isinstance(params, Reciprocal)
    trace = Trace()
    accumulator, _ = sum_and_count(trace, element, params.zero_point)
    rounded = multiplied_half_up(trace, accumulator, params.factor, 16)
    trace.clamp(rounded, params.minimum, params.maximum)
    return trace.done()


def explain_max_pool(element: Element) -> Computed:
    """Explain MAX_POOL_2D: the largest tap, the padding taking part with the zero point (docs/gap9.md, 10)."""
    params = element.node.params
    assert isinstance(params, MaxPool)
    _, row, column, _ = element.index
    outside = params.minimum if params.floor is None else int(params.floor[row, column, 0])
    trace = Trace()
    trace.add("stored value", "largest of the taps", largest_tap(trace, element, params.window, outside))
    return trace.done()


def explain_relu(element: Element) -> Computed:
    """Explain RELU and RELU6: max(x, code of 0); the upper clamp is the end of the type."""
    params = element.node.params
    assert isinstance(params, ReluParams)
    trace = Trace()
    code = trace.add("input", "", element.read(0))
    bound = params.lower_bound
    trace.add("stored value", f"max({code}, {bound})", code if params.idle else max(code, bound))
    return trace.done((0, element.index))


def explain_quantize(element: Element) -> Computed:
    """Explain QUANTIZE from one type to another, in float64 (docs/gap9.md, 9)."""
    source, output = element.operands.input(0).affine, element.operands.output().affine
    trace = Trace()
    code = trace.add("input", "", element.read(0))
    zero_point, scale = int(source.zero_point[0]), source.scale[0]
    difference = trace.add("minus input zero point", f"{code} - ({zero_point})", code - zero_point)
    real = difference * scale
    trace.add("real value", f"{difference} * {float(scale)!r}", float(real))
    quotient = real / output.scale[0]
    trace.add("scaled", f"{float(real)!r} / {float(output.scale[0])!r}", float(quotient))
    rounded = trace.add("rounded", "floor(x + 0.5)", math.floor(quotient + 0.5))
    end = int(output.zero_point[0])
    shifted = trace.add("plus output zero point", f"{rounded} + ({end})", rounded + end)
    trace.clamp(shifted, output.minimum_code, output.maximum_code)
    return trace.done((0, element.index))


def explain_softmax(element: Element) -> Computed:
    """Explain SOFTMAX of an 8-bit input: exponentials in Q15, one reciprocal of their sum (docs/gap9.md, 11)."""
    params = element.node.params
    assert isinstance(params, SoftmaxParams)
    trace = Trace()
    row = tuple(int(v) for v in element.input(0)[element.index[:-1]])
    trace.add("inputs", "the row", row)
    largest = trace.add("largest", "of the row", max(row))
    differences = trace.add("differences", "x - largest", tuple(x - largest for x in row))
    trace.add("scale", "of the input, a power of 2", params.input_scale)
    shift = math.frexp(params.input_scale)[1] + 14
    powers = trace.add(
        "exponentials", f"exp in Q15 of difference << {shift}", tuple(_exponential(-d << shift) for d in differences)
    )
    total = trace.add("accumulator", "sum of the exponentials", sum(powers))
    inverse = trace.add("reciprocal", f"(32767 << 15) // {total}", (32767 << 15) // total)
    own = powers[element.index[-1]]
    product = trace.add("product", f"{own} * {inverse}", own * inverse)
    rounded = abs(shift_half_up(product, params.shift))
    trace.add("rounded", f"|norm({product}, {params.shift})|", rounded)
    trace.clamp(rounded, params.minimum, params.maximum)
    return trace.done()


def _exponential(distance: int) -> int:
    """exp(-distance / 2^15) in Q15: a series of 8 terms for the fraction, a table for the whole part, a reciprocal."""
    if distance == 0:
        return _ONE
    whole, f = distance >> 15, distance & (_ONE - 1)
    if whole >= _WHOLE_POWERS:
        return 0
    if f >= _ONE // 2:
        whole, f = whole + 1, f - _ONE
    series, power = 0, f
    for k in range(1, 9):
        series += power * (32767 if k == 1 else math.floor(_ONE / math.factorial(k) + 0.5))
        power = shift_half_up(power * f, 15)
    small = shift_half_up(series, 15) + _ONE - 1
    integer_part = math.floor(math.e**whole)
    fraction = math.floor(_ONE * (math.e**whole - integer_part) + 0.5)
    grown = shift_half_up(small * fraction, 15) + small * integer_part
    return (0x7FFFFFFF // max(grown, 1)) >> 1
