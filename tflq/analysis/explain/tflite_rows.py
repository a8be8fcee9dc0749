"""Pools, MEAN and SOFTMAX in TFLite's integers (docs/tflite.md)."""

from __future__ import annotations

from tflq.analysis.explain.filters import largest_tap, sum_of_taps, sum_over_axes
from tflq.analysis.explain.plain import INT32_MAX, divide_by_pot, high_mul, multiplied, truncated, wrap32
from tflq.analysis.explain.steps import Computed, Element, Trace
from tflq.interpreter.kernels.tflite.average_pool_2d import AveragePool
from tflq.interpreter.kernels.tflite.max_pool_2d import MaxPool
from tflq.interpreter.kernels.tflite.mean import Mean
from tflq.interpreter.kernels.tflite.softmax import DIFFERENCE_BITS, SUM_BITS, Softmax

_EXPONENTIALS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
"""round(2^31 exp(-2^k)), k = -2..4."""


def explain_average_pool(element: Element) -> Computed:
    """Explain AVERAGE_POOL_2D: the sum over the taps inside, divided half away. Source: integer_ops/pooling.h."""
    params = element.node.params
    assert isinstance(params, AveragePool)
    trace = Trace()
    accumulator, count = sum_of_taps(trace, element, params.window)
    half = count // 2 if accumulator > 0 else -(count // 2)
    quotient = truncated(accumulator + half, count)
    trace.add("rounded", f"({accumulator} + ({half})) / {count}, cut toward 0", quotient)
    trace.clamp(quotient, params.minimum, params.maximum)
    return trace.done()


def explain_max_pool(element: Element) -> Computed:
    """Explain MAX_POOL_2D: the largest tap inside the image. Source: TFLite integer_ops/pooling.h."""
    params = element.node.params
    assert isinstance(params, MaxPool)
    trace = Trace()
    largest = largest_tap(trace, element, params.window, params.dtype.minimum)
    trace.clamp(largest, params.minimum, params.maximum)
    return trace.done()


def explain_mean(element: Element) -> Computed:
    """Explain MEAN: the division by the count is in the multiplier. Source: TFLite internal/reference/reduce.h."""
    params = element.node.params
    assert isinstance(params, Mean)
    trace, reduction = Trace(), params.reduction
    total = sum_over_axes(trace, element, reduction.axes, reduction.keep_dims)
    zero_point, count = params.input_zero_point, reduction.count
    centred = wrap32(total - zero_point * count)
    trace.add("minus zero points", f"{total} - ({zero_point}) * {count}", centred)
    rounded = multiplied(trace, centred, params.multiplier, params.shift)
    shifted = wrap32(rounded + params.output_zero_point)
    trace.add("plus output zero point", f"{rounded} + {params.output_zero_point}", shifted)
    trace.clamp(shifted, params.dtype.minimum, params.dtype.maximum)
    return trace.done()


def explain_softmax(element: Element) -> Computed:
    """Explain SOFTMAX of 8 bits: gemmlowp's exponentials, their sum, its reciprocal. Source: TFLite softmax.h."""
    params = element.node.params
    assert isinstance(params, Softmax)
    trace = Trace()
    row = tuple(int(v) for v in element.input(0)[element.index[:-1]])
    trace.add("inputs", "the row", row)
    largest = trace.add("largest", "of the row", max(row))
    differences = trace.add("differences", "x - largest", tuple(x - largest for x in row))
    trace.add("multiplier", "of beta * si * 2^26", params.multiplier)
    trace.add("shift", "to the left", params.left_shift)
    least = params.smallest_difference
    trace.add("smallest difference", "what lies below counts as nothing", least)
    powers = tuple(_exponential(d, params) for d in differences)
    trace.add("exponentials", "exp(SRDHM(d << shift, multiplier)), 0 integer bits", powers)
    addends = tuple(divide_by_pot(e, SUM_BITS) for e in powers)
    total = trace.add("accumulator", f"sum of RDBP(exponential, {SUM_BITS})", sum(addends) & 0xFFFFFFFF)
    headroom = trace.add("headroom", f"leading zeros of {total} in 32 bits", 32 - total.bit_length())
    mantissa = trace.add(
        "reciprocal", "1 / (1 + fraction), 3 Newton steps", _reciprocal((total << headroom) - (1 << 31))
    )
    own = powers[element.index[-1]]
    high = trace.add("high product", f"SRDHM({mantissa}, {own})", high_mul(mantissa, own))
    exponent = SUM_BITS - headroom + 31 - params.output.bits
    rounded = trace.add("rounded", f"RDBP({high}, {exponent})", divide_by_pot(high, exponent))
    shifted = trace.add(
        "plus output zero point", f"{rounded} + {params.output.minimum}", rounded + params.output.minimum
    )
    trace.clamp(shifted, params.output.minimum, params.output.maximum)
    return trace.done()


def _exponential(difference: int, params: Softmax) -> int:
    """Return exp of a difference, as gemmlowp's exp_on_negative_values with 5 integer bits."""
    if difference < params.smallest_difference:
        return 0
    a = high_mul(difference << params.left_shift, params.multiplier)
    if a == 0:
        return INT32_MAX
    fraction_bits = 31 - DIFFERENCE_BITS
    quarter = 1 << (fraction_bits - 2)
    remainder = (a & (quarter - 1)) - quarter
    result = _small_exponential(remainder << DIFFERENCE_BITS)
    powers = remainder - a
    for k, constant in enumerate(_EXPONENTIALS, -2):
        if powers >> (fraction_bits + k) & 1:
            result = high_mul(result, constant)
    return result


def _small_exponential(a: int) -> int:
    """Return exp on [-1/4, 0): a Taylor polynomial of 4th order around -1/8."""
    x = a + (1 << 28)
    x2 = high_mul(x, x)
    x3 = high_mul(x2, x)
    x4 = high_mul(x2, x2)
    cubic = high_mul(divide_by_pot(x4, 2) + x3, 715827883) + x2
    return 1895147668 + high_mul(1895147668, x + divide_by_pot(cubic, 1))


def _reciprocal(a: int) -> int:
    """1 / (1 + a), as gemmlowp's one_over_one_plus_x_for_x_in_0_1."""
    half_denominator = truncated(a + INT32_MAX + 1, 2)
    x = 1515870810 + high_mul(half_denominator, -1010580540)
    for _ in range(3):
        rest = (1 << 29) - high_mul(half_denominator, x)
        x += high_mul(x, rest) << 2
    return min(x << 1, INT32_MAX)
