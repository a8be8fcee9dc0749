"""Convolutions and pools, with windows over images and volumes."""

from __future__ import annotations

import numpy as np

from tflq.converters.exchange.emitter import Emitter, ExchangeAttribute, Rule, Value, written_shape
from tflq.errors import UnsupportedError
from tflq.graph import Array
from tflq.interpreter.operands.sliding_windows import Window, window_of
from tflq.interpreter.operands.windows import transposed_window

_VOLUME_FIRST, _VOLUME_LAST = (0, 4, 1, 2, 3), (0, 2, 3, 4, 1)


def conv_2d(e: Emitter) -> None:
    """CONV_2D: Conv, weights [O, KH, KW, I/groups] -> [O, I/groups, KH, KW]."""
    weights = e.constant_at(1)
    groups = e.tensor(e.node.inputs[0]).shape[3] // weights.shape[3]
    _convolution(e, np.transpose(weights, (0, 3, 1, 2)), groups)


def depthwise_conv_2d(e: Emitter) -> None:
    """DEPTHWISE_CONV_2D: Conv with a group for each channel, weights [1, KH, KW, I*m] -> [I*m, 1, KH, KW]."""
    groups = e.tensor(e.node.inputs[0]).shape[3]
    _convolution(e, np.transpose(e.constant_at(1), (3, 0, 1, 2)), groups)


def _convolution(e: Emitter, data: Array, groups: int) -> None:
    window, _ = _window_of_input(e, (data.shape[2], data.shape[3]))
    operands = [e.first(0), e.weights(e.node.inputs[1], data, 0), *bias(e)]
    options: dict[str, ExchangeAttribute] = {
        "kernel_shape": window.kernel,
        "strides": window.stride,
        "dilations": window.dilation,
        "pads": (window.top, window.left, window.bottom, window.right),
        "group": groups,
    }
    e.result(e.add("Conv", operands, written_shape(e.output().shape, True), first=True, options=options))


def bias(e: Emitter) -> list[Value]:
    """Return the node's bias, input 2, if it has one.

    Raises:
        UnsupportedError: integers without a scale.
    """
    t = e.optional(2)
    if t is None:
        return []
    tensor = e.tensor(t)
    if tensor.dtype.is_integer and tensor.quantization is None:
        raise UnsupportedError(f"bias '{tensor.name}' has no scale; use form=float")
    return [e.in_layout(t, False) if tensor.data is None else e.weights(t, tensor.data, 0)]


def pool(kind: str, **options: ExchangeAttribute) -> Rule:
    """Return the rule of AVERAGE_POOL_2D and MAX_POOL_2D; an average over the whole image is GlobalAveragePool."""

    def rule(e: Emitter) -> None:
        sizes = e.node.attributes
        window, size = _window_of_input(e, (sizes.integer("filter_height"), sizes.integer("filter_width")))
        x, shape = e.first(0), written_shape(e.output().shape, True)
        is_whole = window.kernel == size and window.output_size(size) == (1, 1) and not any(window.padding)
        if kind == "AveragePool" and e.simplifies and is_whole:
            e.result(e.add("GlobalAveragePool", [x], shape))
            return
        strides, (bottom, right) = window.stride, (window.bottom, window.right)
        if e.simplifies:
            strides, (bottom, right) = _needed_window(window, size)
        pads = (window.top, window.left, bottom, right)
        how = {"kernel_shape": window.kernel, "strides": strides, "pads": pads, **options}
        e.result(e.add(kind, [x], shape, options=how))

    return rule


def _window_of_input(e: Emitter, kernel: tuple[int, int]) -> tuple[Window, tuple[int, int]]:
    """Return the node's window and (height, width) of its input."""
    size = e.tensor(e.node.inputs[0]).shape[1:3]
    return window_of(e.node.attributes, (size[0], size[1]), kernel), (size[0], size[1])


def _needed_window(window: Window, size: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return strides and the padding at the bottom and right that outputs read.

    With this padding any stride results in the same outputs. The stride is written as 1 along an axis that the
    window fills, since some tools limit strides.
    """
    strides, ends = list[int](), list[int]()
    befores, afters = (window.top, window.left), (window.bottom, window.right)
    axes = zip(size, window.kernel, window.stride, window.output_size(size), befores, afters, strict=True)
    for length, taps, stride, outputs, before, after in axes:
        end = min(after, max(0, (outputs - 1) * stride + taps - before - length))
        ends.append(end)
        strides.append(stride if length + before + end - taps else 1)
    return (strides[0], strides[1]), (ends[0], ends[1])


def biased(e: Emitter, value: Value, position: int, channels: int) -> Value:
    """Return the value plus the bias at a position, [O] as [1, O, 1, ...]; the value where there is none."""
    t = e.optional(position)
    if t is None:
        return value
    shape = (1, channels, *(1,) * (value.rank - 2))
    data = e.tensor(t).data
    if data is None:
        return e.pair("Add", value, e.reshaped(e.in_layout(t, False), shape))
    return e.pair("Add", value, e.weights(t, data.reshape(shape), 1))


def transpose_conv(e: Emitter) -> None:
    """TRANSPOSE_CONV: ConvTranspose, weights [O, KH, KW, I] -> [I, O, KH, KW]."""
    window, _ = transposed_window(e.node, e.operands)
    x, shape = e.first(2), written_shape(e.output().shape, True)
    beyond = [
        out - ((size - 1) * stride + taps - before)
        for out, size, stride, taps, before in zip(
            shape[2:], x.shape[2:], window.stride, window.kernel, (window.top, window.left), strict=True
        )
    ]
    pads = (window.top, window.left, *(max(0, -b) for b in beyond))
    weights = e.weights(e.node.inputs[1], np.transpose(e.constant_at(1), (3, 0, 1, 2)), 1)
    extra = tuple(max(0, b) for b in beyond)
    options: dict[str, ExchangeAttribute] = {
        "kernel_shape": window.kernel,
        "strides": window.stride,
        "pads": pads,
        "output_padding": extra,
    }
    value = e.add("ConvTranspose", [x, weights], shape, options=options)
    e.result(biased(e, value, 3, shape[1]))


def conv_3d(e: Emitter) -> None:
    """CONV_3D: Conv of volumes, weights [KD, KH, KW, I, O] -> [O, I, KD, KH, KW]."""
    x, options, data = e.plain(0), e.node.attributes, e.constant_at(1)
    shape = tuple(e.output().shape[a] for a in _VOLUME_FIRST)
    strides = tuple(options.integer(f"stride_{a}") for a in "dhw")
    dilations = tuple(options.integer(f"dilation_{a}_factor", 1) for a in "dhw")
    reach = [(k - 1) * d + 1 for k, d in zip(data.shape, dilations, strict=False)]
    totals = [
        max(0, (out - 1) * s + r - size)
        for out, s, r, size in zip(shape[2:], strides, reach, x.shape[1:4], strict=True)
    ]
    pads = (*(t // 2 for t in totals), *(t - t // 2 for t in totals))
    if options.text("padding") == "valid":
        pads = (0,) * 6
    weights = e.weights(e.node.inputs[1], np.transpose(data, (4, 3, 0, 1, 2)), 0)
    moved = e.transposed(x, _VOLUME_FIRST)
    window: dict[str, ExchangeAttribute] = {"strides": strides, "dilations": dilations, "pads": pads}
    window |= {"kernel_shape": data.shape[:3], "group": x.shape[4] // data.shape[3]}
    value = e.add("Conv", [moved, weights], shape, options=window)
    e.result(e.transposed(biased(e, value, 2, shape[1]), _VOLUME_LAST))
