"""Layers of NNIE: inputs and weights become logarithmic codes, sums are float32 (docs/nnie.md)."""

from __future__ import annotations

import math

import numpy as np

from tflq.analysis.explain import floating
from tflq.analysis.explain.family import Families, families_of
from tflq.analysis.explain.filters import row_of
from tflq.analysis.explain.floating import Floats
from tflq.analysis.explain.steps import Computed, Element, Trace, Value
from tflq.analysis.explain.taps import tap_positions
from tflq.errors import UnsupportedError
from tflq.graph import Array
from tflq.interpreter.accumulate import Window
from tflq.interpreter.kernels.float.average_pool_2d import FloatAveragePool
from tflq.interpreter.kernels.nnie.conv_2d import LogarithmicConvolution
from tflq.interpreter.kernels.nnie.fully_connected import LogarithmicProduct
from tflq.interpreter.kernels.nnie.inputs import InputQuantiser, Quantised
from tflq.interpreter.kernels.nnie.weights import WeightedLayer
from tflq.interpreter.kernels.plain.binary import PlainBinary


def explain_convolution(element: Element) -> Computed:
    """Explain CONV_2D and DEPTHWISE_CONV_2D: codes of inputs and weights, then float32 sums in order."""
    params = element.node.params
    assert isinstance(params, LogarithmicConvolution)
    trace, o, x = Trace(), element.index[3], element.input(0)
    image = _coded_window(trace, params.layer.inputs, x, params.window.window, element)
    signs, codes = (
        np.swapaxes(a, -4, -1) if params.channels_last else a for a in (params.layer.sign, params.layer.codes)
    )
    weights = np.zeros(signs.shape, np.float32)
    weights[o] = _weights(trace, params.layer, signs[o], codes[o])
    return floating.convolve(trace, element, image, weights, params.window)


def explain_fully_connected(element: Element) -> Computed:
    """Explain FULLY_CONNECTED: codes of inputs and weights, then float32 sums in order."""
    params = element.node.params
    assert isinstance(params, LogarithmicProduct)
    trace, layer = Trace(), params.layer
    row, o = row_of(element.index, element.operands.output().shape, layer.sign.shape[0])
    x = element.input(0).reshape(-1, layer.sign.shape[1]).copy()
    x[row] = _coded(trace, layer.inputs, x[row])
    weights = np.zeros(layer.sign.shape, np.float32)
    weights[o] = _weights(trace, layer, layer.sign[o], layer.codes[o])
    return floating.multiply_row(trace, element, x, weights, params.product)


def explain_quantised(element: Element) -> Computed:
    """Explain layers without weights: codes of the inputs, then float32."""
    params = element.node.params
    assert isinstance(params, Quantised)
    trace, inner = Trace(), params.inner
    if isinstance(inner, FloatAveragePool):
        image = _coded_window(trace, params.inputs, element.input(0), inner.window, element)
        return floating.average(trace, element, image, inner)
    if isinstance(inner, PlainBinary):
        values = [element.input(k)[element.place(k)] for k in range(2)]
        coded = _coded(trace, params.inputs, np.array(values, np.float32))
        return floating.combine(trace, list(coded), inner)
    raise UnsupportedError(
        f"'{element.node.name}' ({element.node.operator} in arithmetic 'nnie') cannot be explained; without weights "
        f"there are average_pool_2d, add and mul"
    )


def _coded_window(trace: Trace, inputs: InputQuantiser, image: Array, window: Window, element: Element) -> Floats:
    """Return the image with the numbers of one window replaced by what their codes stand for."""
    n, row, column, _ = element.index
    rows, columns = (
        [p for p in positions if 0 <= p < size]
        for positions, size in zip(tap_positions(window, (row, column)), image.shape[1:3], strict=True)
    )
    result = np.array(image, np.float32)
    place = np.ix_([n], rows, columns, _channels(element, image.shape[3]))
    result[place] = _coded(trace, inputs, result[place][0])
    return result


def _channels(element: Element, channels: int) -> range:
    """Return the input channels that an output element reads."""
    params, o = element.node.params, element.index[3]
    if isinstance(params, LogarithmicConvolution):
        depth, outputs = channels // params.window.groups, element.operands.output().shape[3]
        first = o // (outputs // params.window.groups) * depth
        return range(first, first + depth)
    return range(o, o + 1)


def _coded(trace: Trace, inputs: InputQuantiser, x: Floats) -> Floats:
    """Add the steps from real numbers to what their codes stand for."""
    trace.add("input z", "of the clipping value", inputs.z)
    pairs = [_code(float(v), inputs) for v in x.reshape(-1)]
    trace.add("input codes", f"sign and q = floor({inputs.scheme.steps} * log2|x| - z + 0.5)", _words(pairs, x.shape))
    values = [_value(sign, q, inputs.z, inputs.scheme.steps) for sign, q in pairs]
    return np.array(values, np.float32).reshape(x.shape)


def _weights(trace: Trace, layer: WeightedLayer, sign: Array, codes: Array) -> Floats:
    """Add the codes of one output channel's weights and return what they stand for."""
    pairs = [(int(s), int(q)) for s, q in zip(sign.reshape(-1), codes.reshape(-1), strict=True)]
    trace.add("weight z", "of the layer's largest |w|", layer.weight_z)
    trace.add(
        "weight codes", f"sign and q, standing for 2^((q + z) / {layer.inputs.scheme.steps})", _words(pairs, sign.shape)
    )
    values = [_value(s, q, layer.weight_z, layer.inputs.scheme.steps) for s, q in pairs]
    return np.array(values, np.float32).reshape(sign.shape)


def _code(x: float, inputs: InputQuantiser) -> tuple[int, int]:
    """Return (sign, q) of a float32 number."""
    scheme, z = inputs.scheme, inputs.z
    if x == 0 or math.isnan(x):
        return 0, 0
    least = 2.0 ** (z / scheme.steps - 1)
    is_positive = x > least if inputs.formula == "library" else x >= least
    is_negative = -x > 2.0 ** ((z + 1) / scheme.steps - 1)
    if not is_positive and not is_negative:
        return 0, 0
    if inputs.formula == "mqbench":
        nearest = round(float(np.float32(scheme.steps) * np.log2(np.float32(abs(x))))) - z
    else:
        nearest = math.floor(scheme.steps * math.log2(abs(x)) - z + 0.5)
    return (1 if is_positive else -1), min(max(nearest, int(is_negative)), scheme.largest)


def _value(sign: int, q: int, z: int, steps: int) -> float:
    return 0.0 if sign == 0 else sign * math.pow(2.0, (q + z) / steps)


def _words(pairs: list[tuple[int, int]], shape: tuple[int, ...]) -> Value:
    """Return codes as words, "+12", "-3" or "0", nested as the shape says."""
    words: list[Value] = ["0" if sign == 0 else f"{'+' if sign > 0 else '-'}{q}" for sign, q in pairs]
    for size in reversed(shape[1:]):
        words = [tuple(words[i : i + size]) for i in range(0, len(words), size)]
    return tuple(words)


_family = families_of("nnie", "docs/nnie.md")
FAMILIES: Families = {
    LogarithmicConvolution: _family("conv_2d, depthwise_conv_2d", explain_convolution, "1 and 5"),
    LogarithmicProduct: _family("fully_connected", explain_fully_connected, "1 and 5"),
    Quantised: _family("average_pool_2d, add, mul", explain_quantised, "1 and 5"),
}
