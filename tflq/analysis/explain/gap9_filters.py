"""CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED in GAP9's integers (docs/gap9.md, 4 to 6)."""

from __future__ import annotations

from tflq.analysis.explain.filters import Products, convolution_products, row_products, taps_first
from tflq.analysis.explain.plain import multiplied_half_up, shift_half_up
from tflq.analysis.explain.steps import Computed, Element, Trace
from tflq.interpreter.kernels.gap9.conv_2d import ConvolutionParams
from tflq.interpreter.kernels.gap9.filter import FilterParams
from tflq.interpreter.kernels.gap9.fully_connected import ProductParams


def explain_convolution(element: Element) -> Computed:
    """Explain a convolution: stored bias + sum x * (w - Z_w), then M and N; depthwise weights are [O, 1, KH, KW]."""
    params = element.node.params
    assert isinstance(params, ConvolutionParams)
    found, trace = params.filter, Trace()
    weights = taps_first(element, found.weights)
    window, zero_point = params.prepared.window, found.input_zero_point
    return _finish(trace, convolution_products(trace, element, weights, window, zero_point, _note(found)), found)


def explain_fully_connected(element: Element) -> Computed:
    """Explain a fully connected layer."""
    params = element.node.params
    assert isinstance(params, ProductParams)
    found, trace = params.filter, Trace()
    return _finish(trace, row_products(trace, element, found.weights, _note(found)), found)


def _note(found: FilterParams) -> str:
    return f", Z_w = {found.weight_zero_point} taken off"


def _finish(trace: Trace, products: Products, found: FilterParams) -> Computed:
    o, plain = products.channel, products.weights
    zero_point, rescaling = found.input_zero_point, found.rescaling
    folded = trace.add("zero-point correction", f"-Z_x * sum(w) = -({zero_point}) * {plain}", -zero_point * plain)
    bias = trace.add("bias", "", int(found.bias[o]))
    stored = int(rescaling.bias[o])
    output = trace.add("folded output zero point", "rnd(Z_y * S_y / (S_x * S_w))", int(found.offset[o]) - folded)
    trace.add("stored bias", f"{bias} + ({folded}) + ({output}), as the device holds it", stored)
    accumulator = trace.add("accumulator", f"{products.total} + ({stored})", products.total + stored)
    before = rescaling.pre_normalization
    if before:
        accumulator = trace.add(
            "pre-normalised", f"({accumulator} + 2^{before - 1}) >> {before}", shift_half_up(accumulator, before)
        )
    multiplier, shift = int(rescaling.mul_bias.multiplier[o]), int(rescaling.shift[o])
    rounded = multiplied_half_up(trace, accumulator, multiplier, shift)
    trace.clamp(rounded, rescaling.minimum, rescaling.maximum)
    return trace.done()
