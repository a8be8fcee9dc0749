"""What layers with weights and pools share in every arithmetic of integers: the taps, the weights, and their sums."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.analysis.explain.steps import Element, Trace
from tflq.analysis.explain.taps import Rows, patch_of, products_by_channel, rows_of, total
from tflq.graph import Array
from tflq.interpreter.accumulate import Window
from tflq.interpreter.layers.linear import ConvolutionLayer, ProductLayer
from tflq.interpreter.layers.pooling import AveragePool, Mean


@dataclass(frozen=True)
class Products:
    """The sum of one output element's products.

    Attributes:
        total: sum of w * x over all taps and input channels.
        weights: sum of the weights.
        channel: the output channel.
    """

    total: int
    weights: int
    channel: int


def layer_products(trace: Trace, element: Element, note: str = "") -> Products:
    """Add the steps up to the sum of products of a linear layer; `note` says what was done to the weights."""
    params = element.node.params
    assert isinstance(params, (ConvolutionLayer, ProductLayer))
    if isinstance(params, ProductLayer):
        return row_products(trace, element, params.filter.weights, note)
    weights = taps_first(element, params.filter.weights)
    image = np.asarray(params.accumulated(element.input(0)))
    return convolution_products(
        trace, element, weights, params.prepared.window, params.filter.pad_value, note, image=image
    )


def convolution_products(
    trace: Trace,
    element: Element,
    weights: Array,
    window: Window,
    padding: int,
    note: str = "",
    image: Array | None = None,
) -> Products:
    """Add the steps up to the sum of products of a convolution.

    Args:
        trace: gets the steps.
        element: of the output [N, OH, OW, O].
        weights: [O, KH, KW, C/groups]; their zero point taken off.
        window: kernel, stride, dilation, padding.
        padding: what taps outside the image hold.
        note: what was done to the weights.
        image: [N, H, W, C], where it is not the first input as it is.
    """
    n, row, column, o = element.index
    seen = element.input(0) if image is None else image
    outputs, depth = weights.shape[0], weights.shape[3]
    first = o // (outputs // (seen.shape[3] // depth)) * depth
    patch = patch_of(seen, window, (n, row, column), range(first, first + depth), padding)
    patch.show(trace, str(padding))
    codes = rows_of(weights[o])
    trace.add("weights", f"of output channel {o}{note}", codes)
    return _summed(trace, patch.codes, codes, o)


def row_products(trace: Trace, element: Element, weights: Array, note: str = "") -> Products:
    """Add the steps up to the sum of products of a fully connected layer.

    Args:
        trace: gets the steps.
        element: of an output whose elements make rows of O.
        weights: [O, K]; their zero point taken off.
        note: what was done to the weights.
    """
    outputs, columns = weights.shape
    row, o = row_of(element.index, element.operands.output(element.output).shape, outputs)
    inputs = rows_of(element.input(0).reshape(-1, 1, 1, columns)[row])
    trace.add("inputs", f"row {row}", inputs[0][0])
    codes = rows_of(weights[o][None, None])
    trace.add("weights", f"of output {o}{note}", codes[0][0])
    return _summed(trace, inputs, codes, o)


def row_of(index: tuple[int, ...], shape: tuple[int, ...], outputs: int) -> tuple[int, int]:
    """Return (row, output) of an element of a fully connected layer's result."""
    flat = int(np.ravel_multi_index(index, shape))
    return flat // outputs, flat % outputs


def taps_first(element: Element, weights: Array) -> Array:
    """Return weights as [O, KH, KW, C/groups]; kernels keep those of depthwise_conv_2d as [O, 1, KH, KW]."""
    return np.moveaxis(weights, 1, 3) if element.node.operator == "depthwise_conv_2d" else weights


def largest_tap(trace: Trace, element: Element, window: Window, outside: int) -> int:
    """Add the steps of a max pool [N, H, W, C] -> [N, OH, OW, C] and return the largest code of the window.

    Args:
        trace: gets the steps.
        element: of the output.
        window: kernel, stride, padding.
        outside: what taps outside the image hold.
    """
    return trace.add("largest", "of the taps", max(_pooled(trace, element, window, outside)[0]))


def sum_of_taps(trace: Trace, element: Element, window: Window, outside: int = 0) -> tuple[int, int]:
    """Add the steps of an average pool, as `largest_tap`; return the sum and the number of taps inside the image."""
    codes, inside = _pooled(trace, element, window, outside)
    total = trace.add("accumulator", "sum of the taps", sum(codes))
    return total, trace.add("taps inside", "of the image", inside)


def sum_and_count(trace: Trace, element: Element, outside: int = 0) -> tuple[int, int]:
    """Add the steps of an average pool or a mean; return the sum and the number of its elements."""
    params = element.node.params
    if isinstance(params, Mean):
        reduction = params.reduction
        return sum_over_axes(trace, element, reduction.axes, reduction.keep_dims), reduction.count
    assert isinstance(params, AveragePool)
    return sum_of_taps(trace, element, params.window, outside)


def sum_over_axes(trace: Trace, element: Element, axes: tuple[int, ...], keeps_axes: bool) -> int:
    """Add the steps of a mean over axes up to the sum of what it reads, and return it.

    Args:
        trace: gets the steps.
        element: of the output.
        axes: of the input, not negative.
        keeps_axes: whether the output keeps them with size 1.
    """
    x, own = element.input(0), iter(element.index)
    where: list[int | slice] = []
    for axis in range(x.ndim):
        index = next(own) if axis not in axes or keeps_axes else 0
        where.append(slice(None) if axis in axes else index)
    codes = trace.add("inputs", f"along axes {list(axes)}", tuple(int(v) for v in x[tuple(where)].reshape(-1)))
    return trace.add("accumulator", "sum of the inputs", sum(codes))


def _pooled(trace: Trace, element: Element, window: Window, outside: int) -> tuple[list[int], int]:
    n, row, column, c = element.index
    patch = patch_of(element.input(0), window, (n, row, column), range(c, c + 1), outside)
    patch.show(trace, str(outside))
    return [code for line in patch.codes for column_codes in line for code in column_codes], patch.inside


def _summed(trace: Trace, inputs: Rows, weights: Rows, channel: int) -> Products:
    sums = trace.add("products", "sum of w * x over the taps, by input channel", products_by_channel(inputs, weights))
    products = trace.add("sum of products", "over all input channels", sum(sums))
    return Products(products, total(weights), channel)
