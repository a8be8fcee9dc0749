"""CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED in TFLite's integers (docs/tflite.md, layers with weights)."""

from __future__ import annotations

import numpy as np

from tflq.analysis.explain.filters import Products, convolution_products, row_products
from tflq.analysis.explain.plain import INT32_MAX, INT32_MIN, multiplied, multiplied_once, round_half_away, wrap32
from tflq.analysis.explain.steps import Computed, Element, Trace
from tflq.graph import Array
from tflq.interpreter.kernels.tflite.fully_connected import FullyConnected
from tflq.interpreter.kernels.tflite.quantised_convolution import QuantisedConvolution, as_grouped
from tflq.interpreter.kernels.tflite.rescale import Rounding, Rule


def explain_convolution(element: Element) -> Computed:
    """Explain CONV_2D and DEPTHWISE_CONV_2D: total = sum w x - zi sum w + bias, then the rule.

    Source: TFLite reference/integer_ops/conv.h and depthwise_conv.h.
    """
    layer = element.node.params
    assert isinstance(layer, QuantisedConvolution)
    weights: Array
    bias: Array
    if layer.constants is not None:
        weights, bias = layer.constants.weights, layer.constants.bias
    else:
        weights = as_grouped(element.input(1), element.node.operator == "depthwise_conv_2d").astype(np.int64)
        weights, bias = weights - layer.weights_zero_point, _bias(element.optional(2), weights.shape[0])
    zi, trace = layer.input_zero_point, Trace()
    products = convolution_products(trace, element, weights, layer.window, zi, _note(layer.weights_zero_point))
    return _finish(trace, products, zi, int(bias[products.channel]), layer.rule)


def explain_fully_connected(element: Element) -> Computed:
    """Explain FULLY_CONNECTED: total = sum w x - zi sum w + bias, then the rule.

    Source: TFLite reference/integer_ops/fully_connected.h.
    """
    layer = element.node.params
    assert isinstance(layer, FullyConnected)
    weights: Array
    bias: Array
    if layer.constants is not None:
        weights, bias = layer.constants.weights, layer.constants.bias
    else:
        weights = element.input(1).astype(np.int64) - layer.weights_zero_point
        bias = _bias(element.optional(2), weights.shape[0])
    trace = Trace()
    products = row_products(trace, element, weights, _note(layer.weights_zero_point))
    return _finish(trace, products, layer.input_zero_point, int(bias[products.channel]), layer.rule)


def _note(zero_point: int) -> str:
    return f", their zero point {zero_point} taken off"


def _bias(bias: Array | None, outputs: int) -> Array:
    return np.zeros(outputs, np.int64) if bias is None else bias.reshape(-1)


def _finish(trace: Trace, products: Products, zi: int, bias: int, rule: Rule) -> Computed:
    o, plain = products.channel, products.weights
    folded = trace.add("zero-point correction", f"-zi * sum(w) = -({zi}) * {plain}", -zi * plain)
    trace.add("bias", "", bias)
    accumulator = products.total + folded + bias
    trace.add("accumulator", f"{products.total} + {folded} + {bias}", accumulator)
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
