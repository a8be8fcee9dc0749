"""Operators of float32, every addition in TFLite's own order and rounded on its own (docs/tflite.md)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tflq.analysis.explain.family import Families, Family
from tflq.analysis.explain.filters import row_of
from tflq.analysis.explain.steps import Computed, Element, Explain, Index, Trace, nested
from tflq.analysis.explain.taps import tap_positions
from tflq.interpreter.accumulate import Window
from tflq.interpreter.kernels.float.average_pool_2d import FloatAveragePool
from tflq.interpreter.kernels.float.convolution import FloatConvolution
from tflq.interpreter.kernels.float.fully_connected import FloatFullyConnected
from tflq.interpreter.kernels.float.max_pool_2d import FloatMaxPool
from tflq.interpreter.kernels.float.softmax import Softmax
from tflq.interpreter.kernels.plain.binary import PlainBinary

Floats = NDArray[np.float32]
Inside = NDArray[np.bool_]

_OPERATIONS = {"add": "+", "sub": "-", "mul": "*"}


def explain_convolution(element: Element) -> Computed:
    """Explain CONV_2D and DEPTHWISE_CONV_2D: products and sums of float32 in the order (ky, kx, channel)."""
    params = element.node.params
    assert isinstance(params, FloatConvolution)
    weights = _reals(element, 1)
    if element.node.operator == "depthwise_conv_2d":
        weights = weights.transpose(3, 1, 2, 0)
    return convolve(Trace(), element, _reals(element, 0), weights, params)


def explain_fully_connected(element: Element) -> Computed:
    """Explain FULLY_CONNECTED: products and sums of float32 in order."""
    params = element.node.params
    assert isinstance(params, FloatFullyConnected)
    return multiply_row(Trace(), element, _reals(element, 0), _reals(element, 1), params)


def explain_average_pool(element: Element) -> Computed:
    """Explain AVERAGE_POOL_2D: a sum of float32 over the taps inside the image, and one division."""
    params = element.node.params
    assert isinstance(params, FloatAveragePool)
    return average(Trace(), element, _reals(element, 0), params)


def explain_max_pool(element: Element) -> Computed:
    """Explain MAX_POOL_2D: the largest over the taps inside the image."""
    params = element.node.params
    assert isinstance(params, FloatMaxPool)
    trace, c = Trace(), element.index[-1]
    taps, inside = image_taps(trace, _reals(element, 0), params.window, element.index, range(c, c + 1))
    seen = [float(v) for v in taps[inside].reshape(-1) if v == v]
    largest = trace.add("largest", "of the taps inside the image", max(seen, default=float(params.minimum)))
    return stored(trace, np.float32(largest), params.minimum, params.maximum)


def explain_pair(element: Element) -> Computed:
    """Explain ADD, SUB and MUL of plain numbers: one operation in their own type."""
    params = element.node.params
    assert isinstance(params, PlainBinary)
    return combine(Trace(), [element.input(k)[element.place(k)] for k in range(2)], params)


def explain_softmax(element: Element) -> Computed:
    """Explain SOFTMAX: exponentials rounded once to float32, summed in order, one division."""
    params = element.node.params
    assert isinstance(params, Softmax)
    trace = Trace()
    row = _reals(element, 0)[element.index[:-1]]
    trace.add("inputs", "the row", nested(row))
    largest = row.max()
    trace.add("largest", "of the row", float(largest))
    below = [np.float32(np.float32(x - largest) * params.beta) for x in row]
    trace.add("differences", f"float32 of (x - largest) * {float(params.beta)!r}", tuple(float(x) for x in below))
    powers = [np.float32(math.exp(x)) for x in below]
    trace.add("exponentials", "float32 of exp", tuple(float(x) for x in powers))
    total = _in_order(np.array(powers, np.float32))
    trace.add("accumulator", "float32 sum of the exponentials, in order", float(total))
    trace.add("stored value", "float32 quotient", float(powers[element.index[-1]] / total))
    return trace.done()


def convolve(trace: Trace, element: Element, image: Floats, weights: Floats, layer: FloatConvolution) -> Computed:
    """Add the steps of a float32 convolution.

    Args:
        trace: gets the steps.
        element: of the output [N, OH, OW, O]; its third input is the bias.
        image: float32[N, H, W, C].
        weights: float32[O, KH, KW, C/groups].
        layer: window, groups, clamp.
    """
    o, depth = element.index[3], weights.shape[3]
    first = o // (weights.shape[0] // layer.groups) * depth
    taps, inside = image_taps(trace, image, layer.window, element.index, range(first, first + depth))
    trace.add("weights", f"of output channel {o}", nested(weights[o]))
    total = _products(trace, taps[inside], weights[o][inside])
    return _finish(trace, element, total, o, (layer.minimum, layer.maximum))


def multiply_row(trace: Trace, element: Element, x: Floats, weights: Floats, layer: FloatFullyConnected) -> Computed:
    """Add the steps of a float32 fully connected layer; weights [O, K], else as `convolve`."""
    row, o = row_of(element.index, element.operands.output().shape, weights.shape[0])
    inputs = x.reshape(-1, weights.shape[1])[row]
    trace.add("inputs", f"row {row}", nested(inputs))
    trace.add("weights", f"of output {o}", nested(weights[o]))
    return _finish(trace, element, _products(trace, inputs, weights[o]), o, (layer.minimum, layer.maximum))


def average(trace: Trace, element: Element, image: Floats, layer: FloatAveragePool) -> Computed:
    """Add the steps of a float32 average pool; as `convolve`."""
    _, row, column, c = element.index
    taps, inside = image_taps(trace, image, layer.window, element.index, range(c, c + 1))
    total = _in_order(taps[inside].reshape(-1))
    trace.add("accumulator", "float32 sum, in order", float(total))
    count = layer.counts[row, column]
    mean = np.float32(total / count)
    trace.add("mean", f"float32({float(total)!r} / {int(count)})", float(mean))
    return stored(trace, mean, layer.minimum, layer.maximum)


def combine(trace: Trace, values: list[np.generic], layer: PlainBinary) -> Computed:
    """Add the steps of one operation on two numbers of one type."""
    first, second = (
        trace.add(f"{word} input", "", v.item()) for word, v in zip(("first", "second"), values, strict=True)
    )
    sign = _OPERATIONS[layer.operation]
    a, b = (np.asarray(v)[None] for v in values)
    with np.errstate(all="ignore"):
        total = {"+": np.add, "-": np.subtract, "*": np.multiply}[sign](a, b)
    trace.add("accumulator", f"{values[0].dtype} {first!r} {sign} {second!r}", total[0].item())
    return stored(trace, total[0], layer.minimum, layer.maximum)


def image_taps(trace: Trace, image: Floats, window: Window, index: Index, channels: range) -> tuple[Floats, Inside]:
    """Add the step that shows a window of real numbers.

    Returns:
        [KH, KW, C], taps outside the image 0; and which taps lie inside, bool[KH, KW].
    """
    n, row, column, _ = index
    rows, columns = (np.array(p) for p in tap_positions(window, (row, column)))
    height, width = image.shape[1:3]
    inside = ((rows >= 0) & (rows < height))[:, None] & ((columns >= 0) & (columns < width))
    part = image[n][..., channels.start : channels.stop]
    nearest = part[np.clip(rows, 0, height - 1)[:, None], np.clip(columns, 0, width - 1)]
    taps = np.where(inside[..., None], nearest, np.float32(0))
    note = f"; {int((~inside).sum())} of {inside.size} taps lie outside and are skipped" if not inside.all() else ""
    formula = f"rows {rows[0]}..{rows[-1]}, columns {columns[0]}..{columns[-1]}, [row][column][channel]{note}"
    trace.add("inputs", formula, nested(taps))
    return taps, inside


def stored(trace: Trace, value: np.generic, minimum: np.generic, maximum: np.generic) -> Computed:
    """Add the clamp that gives the stored number; NaN stays."""
    low, high, x = minimum.item(), maximum.item(), value.item()
    bounded = low if x < low else high if x > high else x
    trace.add("stored value", f"clamp({x!r}, {low!r}, {high!r})", bounded)
    return trace.done()


def _reals(element: Element, position: int) -> Floats:
    return np.asarray(element.input(position), np.float32)


def _products(trace: Trace, inputs: Floats, weights: Floats) -> np.float32:
    with np.errstate(all="ignore"):
        products: Floats = inputs.reshape(-1) * weights.reshape(-1)
    trace.add("products", "float32 of w * x, tap by tap", nested(products))
    total = _in_order(products)
    trace.add("sum of products", "float32, in order", float(total))
    return total


def _in_order(values: Floats) -> np.float32:
    """Return the float32 sum, one addition after the other."""
    total: np.float32 = np.float32(0)
    for value in values:
        total = total + value
    return total


def _finish(
    trace: Trace, element: Element, total: np.float32, o: int, bounds: tuple[np.float32, np.float32]
) -> Computed:
    bias = element.optional(2)
    if bias is not None:
        addend = np.float32(bias.reshape(-1)[o])
        trace.add("bias", "", float(addend))
        before, total = total, np.float32(total + addend)
        trace.add("accumulator", f"float32 {float(before)!r} + {float(addend)!r}", float(total))
    return stored(trace, total, *bounds)


def _family(operators: str, explain: Explain, source: str) -> Family:
    return Family(operators, "float", explain, f"TFLite {source}; docs/tflite.md")


FAMILIES: Families = {
    FloatConvolution: _family("conv_2d, depthwise_conv_2d", explain_convolution, "reference/conv.h"),
    FloatFullyConnected: _family("fully_connected", explain_fully_connected, "reference/fully_connected.h"),
    FloatAveragePool: _family("average_pool_2d", explain_average_pool, "reference/pooling.h"),
    FloatMaxPool: _family("max_pool_2d", explain_max_pool, "reference/pooling.h"),
    PlainBinary: _family("add, sub, mul", explain_pair, "reference/add.h, sub.h, mul.h"),
    Softmax: _family("softmax", explain_softmax, "reference/softmax.h"),
}
