"""CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED in TFLite's integers (docs/tflite.md, layers with weights)."""

from __future__ import annotations

import numpy as np

from tflq.analysis.explain.plain import INT32_MAX, INT32_MIN, multiplied, multiplied_once, round_half_away, wrap32
from tflq.analysis.explain.steps import Computed, Element, Trace
from tflq.analysis.explain.taps import Rows, patch_of, products_by_channel, rows_of, total
from tflq.graph import Array
from tflq.interpreter.kernels.tflite.fully_connected import FullyConnected
from tflq.interpreter.kernels.tflite.quantised_convolution import QuantisedConvolution, as_grouped
from tflq.interpreter.kernels.tflite.rescale import Rounding, Rule


def explain_convolution(element: Element) -> Computed:
    """Explain CONV_2D and DEPTHWISE_CONV_2D: total = sum w x - zi sum w + bias, then the rule.

    Source: TFLite reference/integer_ops/conv.h and depthwise_conv.h.
    """
    layer = element.node.integers
    assert isinstance(layer, QuantisedConvolution)
    n, row, column, o = element.index
    weights: Array
    bias: Array
    if layer.constants is not None:
        weights, bias = layer.constants.weights, layer.constants.bias
    else:
        weights = as_grouped(element.input(1), element.node.operator == "depthwise_conv_2d").astype(np.int64)
        weights, bias = weights - layer.weights_zero_point, _bias(element.optional(2), weights.shape[0])
    depth = weights.shape[3]
    first = o // (weights.shape[0] // layer.groups) * depth
    zi = layer.input_zero_point
    patch = patch_of(element.input(0), layer.window, (n, row, column), range(first, first + depth), zi)
    trace = Trace()
    patch.show(trace, f"the zero point {zi}")
    codes = rows_of(weights[o])
    trace.add("weights", f"of output channel {o}, their zero point {layer.weights_zero_point} taken off", codes)
    return _finish(trace, patch.codes, codes, zi, int(bias[o]), layer.rule, o)


def explain_fully_connected(element: Element) -> Computed:
    """Explain FULLY_CONNECTED: total = sum w x - zi sum w + bias, then the rule.

    Source: TFLite reference/integer_ops/fully_connected.h.
    """
    layer = element.node.integers
    assert isinstance(layer, FullyConnected)
    weights: Array
    bias: Array
    if layer.constants is not None:
        weights, bias = layer.constants.weights, layer.constants.bias
    else:
        weights = element.input(1).astype(np.int64) - layer.weights_zero_point
        bias = _bias(element.optional(2), weights.shape[0])
    row, o = row_of(element.index, element.operands.output(element.output).shape, weights.shape[0])
    trace = Trace()
    inputs = rows_of(element.input(0).reshape(-1, 1, 1, weights.shape[1])[row])
    trace.add("inputs", f"row {row}", inputs[0][0])
    codes = rows_of(weights[o][None, None])
    zw = layer.weights_zero_point
    trace.add("weights", f"of output {o}, their zero point {zw} taken off", codes[0][0])
    return _finish(trace, inputs, codes, layer.input_zero_point, int(bias[o]), layer.rule, o)


def row_of(index: tuple[int, ...], shape: tuple[int, ...], outputs: int) -> tuple[int, int]:
    """Return (row, output) of an element of a fully connected layer's result."""
    flat = int(np.ravel_multi_index(index, shape))
    return flat // outputs, flat % outputs


def _bias(bias: Array | None, outputs: int) -> Array:
    return np.zeros(outputs, np.int64) if bias is None else bias.reshape(-1)


def _finish(trace: Trace, inputs: Rows, weights: Rows, zi: int, bias: int, rule: Rule, o: int) -> Computed:
    sums = trace.add("products", "sum of w * x over the taps, by input channel", products_by_channel(inputs, weights))
    products = trace.add("sum of products", "over all input channels", sum(sums))
    plain = total(weights)
    folded = trace.add("zero-point correction", f"-zi * sum(w) = -({zi}) * {plain}", -zi * plain)
    trace.add("bias", "", bias)
    accumulator = products + folded + bias
    trace.add("accumulator", f"{products} + {folded} + {bias}", accumulator)
    if rule.accumulator_bits == 32 and wrap32(accumulator) != accumulator:
        accumulator = trace.add("wrapped accumulator", f"int32 of {accumulator}", wrap32(accumulator))
    rounded = _rounded(trace, accumulator, rule, o)
    shifted = wrap32(rounded + rule.zero_point)
    trace.add("plus output zero point", f"{rounded} + {rule.zero_point}", shifted)
    trace.clamp(shifted, rule.minimum, rule.maximum)
    return trace.done()


def _rounded(trace: Trace, accumulator: int, rule: Rule, o: int) -> int:
    if rule.rounding is Rounding.DOUBLE:
        return multiplied(trace, accumulator, int(rule.multiplier[o]), int(rule.shift[o]))
    if rule.rounding is Rounding.SINGLE_64:
        return multiplied_once(trace, accumulator, int(rule.multiplier[o]), int(rule.shift[o]))
    scale = trace.add("multiplier", "si * sw / so in float64", float(rule.scale[o]))
    scaled = trace.add("scaled", f"float64({accumulator}) * {scale!r}", float(accumulator) * scale)
    rounded = round_half_away(scaled)
    fits = INT32_MIN <= rounded <= INT32_MAX
    return trace.add("rounded", f"round half away from 0({scaled!r})", rounded if fits else INT32_MIN)
