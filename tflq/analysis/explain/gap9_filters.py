"""CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED in GAP9's integers (docs/gap9.md, 4 to 6)."""

from __future__ import annotations

import numpy as np

from tflq.analysis.explain.plain import shift_half_up
from tflq.analysis.explain.steps import Computed, Element, Trace
from tflq.analysis.explain.taps import Rows, patch_of, products_by_channel, rows_of, total
from tflq.analysis.explain.tflite_filters import row_of
from tflq.interpreter.kernels.gap9.conv_2d import ConvolutionIntegers
from tflq.interpreter.kernels.gap9.filter import FilterIntegers
from tflq.interpreter.kernels.gap9.fully_connected import ProductIntegers


def explain_convolution(element: Element) -> Computed:
    """Explain a convolution: stored bias + sum x * (w - Z_w), then M and N; depthwise weights are [O, 1, KH, KW]."""
    integers = element.node.integers
    assert isinstance(integers, ConvolutionIntegers)
    found = integers.filter
    n, row, column, o = element.index
    is_depthwise = element.node.operator == "depthwise_conv_2d"
    weights = np.moveaxis(found.weights, 1, 3) if is_depthwise else found.weights
    depth = weights.shape[3]
    first = o // (weights.shape[0] // integers.groups) * depth
    zero_point = found.input_zero_point
    window = integers.prepared.window
    patch = patch_of(element.input(0), window, (n, row, column), range(first, first + depth), zero_point)
    trace = Trace()
    patch.show(trace, f"the zero point {zero_point}")
    codes = rows_of(weights[o])
    trace.add("weights", f"of output channel {o}, Z_w = {found.weight_zero_point} taken off", codes)
    return _finish(trace, patch.codes, codes, found, o)


def explain_fully_connected(element: Element) -> Computed:
    """Explain a fully connected layer."""
    integers = element.node.integers
    assert isinstance(integers, ProductIntegers)
    found = integers.filter
    outputs, columns = found.weights.shape
    row, o = row_of(element.index, element.operands.output().shape, outputs)
    trace = Trace()
    inputs = rows_of(element.input(0).reshape(-1, 1, 1, columns)[row])
    trace.add("inputs", f"row {row}", inputs[0][0])
    codes = rows_of(found.weights[o][None, None])
    trace.add("weights", f"of output {o}, Z_w = {found.weight_zero_point} taken off", codes[0][0])
    return _finish(trace, inputs, codes, found, o)


def _finish(trace: Trace, inputs: Rows, weights: Rows, found: FilterIntegers, o: int) -> Computed:
    sums = trace.add("products", "sum of w * x over the taps, by input channel", products_by_channel(inputs, weights))
    products = trace.add("sum of products", "over all input channels", sum(sums))
    plain = total(weights)
    zero_point, rescaling = found.input_zero_point, found.rescaling
    folded = trace.add("zero-point correction", f"-Z_x * sum(w) = -({zero_point}) * {plain}", -zero_point * plain)
    bias = trace.add("bias", "", int(found.bias[o]))
    stored = int(rescaling.bias[o])
    output = trace.add("folded output zero point", "rnd(Z_y * S_y / (S_x * S_w))", int(found.offset[o]) - folded)
    trace.add("stored bias", f"{bias} + ({folded}) + ({output}), as the device holds it", stored)
    accumulator = trace.add("accumulator", f"{products} + ({stored})", products + stored)
    before = rescaling.pre_normalization
    if before:
        accumulator = trace.add(
            "pre-normalised", f"({accumulator} + 2^{before - 1}) >> {before}", shift_half_up(accumulator, before)
        )
    multiplier = trace.add("multiplier", "M", int(rescaling.mul_bias.multiplier[o]))
    shift = trace.add("shift", "N, to the right", int(rescaling.shift[o]))
    product = trace.add("product", f"{accumulator} * {multiplier}", accumulator * multiplier)
    rounded = trace.add("rounded", f"norm({product}, {shift}), ties up", shift_half_up(product, shift))
    trace.clamp(rounded, rescaling.minimum, rescaling.maximum)
    return trace.done()
