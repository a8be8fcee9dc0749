"""Operators in TPU-MLIR's integers for BM1684X (docs/tpu_mlir.md)."""

from __future__ import annotations

import numpy as np

from tflq.analysis.explain.family import Families, families_of
from tflq.analysis.explain.filters import (
    Products,
    largest_tap,
    layer_products,
    sum_and_count,
)
from tflq.analysis.explain.plain import multiplied_half_up, round_half_away, shift_half_up
from tflq.analysis.explain.steps import Computed, Element, Trace
from tflq.analysis.explain.tpu_mlir_others import (
    difference,
    explain_dequantize,
    explain_quantize,
    explain_softmax,
    explain_table,
    stored,
    zero_point_of,
)
from tflq.graph import DType
from tflq.interpreter.kernels.tpu_mlir.curve import TableParams
from tflq.interpreter.kernels.tpu_mlir.dequantize import DequantizeParams
from tflq.interpreter.kernels.tpu_mlir.linear import FilterParams
from tflq.interpreter.kernels.tpu_mlir.mul import MulParams
from tflq.interpreter.kernels.tpu_mlir.multiplier import is_manual
from tflq.interpreter.kernels.tpu_mlir.pooling import AverageParams
from tflq.interpreter.kernels.tpu_mlir.quantize import QuantizeParams
from tflq.interpreter.kernels.tpu_mlir.softmax import SoftmaxParams
from tflq.interpreter.kernels.tpu_mlir.sums import SumParams
from tflq.interpreter.layers.pooling import MaxPool


def explain_linear(element: Element) -> Computed:
    """Explain a linear layer: raw codes, padding holding Zx, the stored bias, then m and s."""
    found, trace = getattr(element.node.params, "filter", None), Trace()
    assert isinstance(found, FilterParams)
    return _finish(trace, layer_products(trace, element), found)


def explain_sum(element: Element) -> Computed:
    """Explain ADD and SUB: each input has its own multiplier and its own rounding; one shift in the manual's form."""
    params, node = element.node.params, element.node
    assert isinstance(params, SumParams)
    trace, sign = Trace(), "+" if params.sign > 0 else "-"
    z_y = zero_point_of(element, None)
    if element.operands.output().dtype is DType.FLOAT16 or params.rescale is None:
        return _real_sum(element, params)
    m, s = params.rescale.multiplier, params.rescale.shift
    differences = [difference(trace, element, k) for k in range(2)]
    if is_manual(node):
        products = [d * int(m[k]) for k, d in enumerate(differences)]
        total = products[0] + params.sign * products[1]
        trace.add("accumulator", f"{differences[0]} * {m[0]} {sign} {differences[1]} * {m[1]}", total)
        rounded = trace.add("rounded", f"norm({total}, {s[0]}), ties up", shift_half_up(total, int(s[0])))
    else:
        a, b = (
            multiplied_half_up(trace, d, int(m[k]), int(s[k]), ("first ", "second ")[k])
            for k, d in enumerate(differences)
        )
        rounded = trace.add("accumulator", f"{a} {sign} ({b})", a + params.sign * b)
    return stored(trace, element, trace.add("plus output zero point", f"{rounded} + ({z_y})", rounded + z_y))


def explain_product(element: Element) -> Computed:
    """Explain MUL: one product, one multiplier, ties up."""
    params = element.node.params
    assert isinstance(params, MulParams)
    trace, z_y = Trace(), zero_point_of(element, None)
    a, b = (difference(trace, element, k) for k in range(2))
    accumulator = trace.add("accumulator", f"{a} * {b}", a * b)
    m, s = params.rescale.multiplier, params.rescale.shift
    rounded = multiplied_half_up(trace, accumulator, int(m[0]), int(s[0]))
    return stored(trace, element, trace.add("plus output zero point", f"{rounded} + ({z_y})", rounded + z_y))


def explain_average(element: Element) -> Computed:
    """Explain AVERAGE_POOL_2D, whose padding is not counted, and MEAN over height and width."""
    average, trace = getattr(element.node.params, "average", None), Trace()
    assert isinstance(average, AverageParams)
    return _average(trace, element, average, *sum_and_count(trace, element))


def explain_max_pool(element: Element) -> Computed:
    """Explain MAX_POOL_2D."""
    params = element.node.params
    assert isinstance(params, MaxPool)
    trace = Trace()
    return stored(trace, element, largest_tap(trace, element, params.window, params.minimum))


def _finish(trace: Trace, products: Products, found: FilterParams) -> Computed:
    o = products.channel
    bias = trace.add("bias", "as stored: the input zero point folded in", int(found.bias[o]))
    accumulator = trace.add("accumulator", f"{products.total} + ({bias})", products.total + bias)
    place = o if found.rescale.multiplier.size > 1 else 0
    m, s = int(found.rescale.multiplier[place]), int(found.rescale.shift[place])
    rounded = multiplied_half_up(trace, accumulator, m, s)
    z_y = found.output_zero_point
    trace.add("plus output zero point", f"{rounded} + ({z_y})", rounded + z_y)
    trace.clamp(rounded + z_y, found.minimum, found.maximum)
    return trace.done()


def _average(trace: Trace, element: Element, average: AverageParams, total: int, count: int) -> Computed:
    whole = trace.add("of the full window", f"{total} * {average.taps} / {count}", total * average.taps / count)
    if average.rescale is not None:
        rounded = trace.add("rounded sum", "half away from 0", round_half_away(whole))
        m, s = int(average.rescale.multiplier[0]), int(average.rescale.shift[0])
        return stored(trace, element, multiplied_half_up(trace, rounded, m, s))
    scale, offset = average.scale, average.offset
    scaled = np.float32(np.float32(whole) * scale)
    trace.add("scaled", f"float32({whole!r} * {float(scale)!r})", float(scaled))
    moved = float(np.float32(scaled + offset))
    trace.add("plus offset", f"float32 sum with {float(offset)!r}", moved)
    return stored(trace, element, trace.add("rounded", "half away from 0", round_half_away(moved)))


def _real_sum(element: Element, params: SumParams) -> Computed:
    trace, output = Trace(), element.operands.output()
    if output.dtype is DType.FLOAT16:
        reals = [np.float16(element.input(k)[element.place(k)]) for k in range(2)]
        for word, real in zip(("first", "second"), reals, strict=True):
            trace.add(f"{word} input", "float16", float(real))
        total = np.float16(reals[0] + params.sign * reals[1])
        trace.add("accumulator", "float16 sum", float(total))
        bounded = max(float(total), 0.0) if params.rectifies else float(total)
        trace.add("stored value", "rectified" if params.rectifies else "", bounded)
        return trace.done()
    scales = [np.float32(element.operands.input(k).affine.scale[0]) for k in range(2)]
    a, b = (np.float32(difference(trace, element, k)) * scales[k] for k in range(2))
    total32 = np.float32(a + params.sign * b)
    trace.add("accumulator", f"float32 of {float(a)!r} and {float(b)!r}", float(total32))
    scaled = float(np.float32(total32 / np.float32(output.affine.scale[0])))
    trace.add("scaled", "float32 quotient by the output's scale", scaled)
    rounded = trace.add("rounded", "half away from 0", round_half_away(scaled))
    z_y = zero_point_of(element, None)
    return stored(trace, element, trace.add("plus output zero point", f"{rounded} + ({z_y})", rounded + z_y))


_family = families_of("tpu_mlir", "docs/tpu_mlir.md")
FAMILIES: Families = {
    FilterParams: _family("conv_2d, depthwise_conv_2d, fully_connected", explain_linear, "4"),
    SumParams: _family("add, sub", explain_sum, "5"),
    MulParams: _family("mul", explain_product, "5"),
    AverageParams: _family("average_pool_2d, mean", explain_average, "6"),
    MaxPool: _family("max_pool_2d", explain_max_pool, "3"),
    SoftmaxParams: _family("softmax", explain_softmax, "7"),
    QuantizeParams: _family("quantize", explain_quantize, "2 and 5"),
    DequantizeParams: _family("dequantize", explain_dequantize, "2"),
    TableParams: _family("functions of one byte", explain_table, "7"),
}
