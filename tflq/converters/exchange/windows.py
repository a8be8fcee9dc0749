"""Transposed and volume convolutions, products of activations, resized images, boxes."""

from __future__ import annotations

import numpy as np

from tflq.converters.exchange.emitter import (
    FLOAT32,
    INT32,
    INT64,
    Emitter,
    ExchangeAttribute,
    Rule,
    Value,
    written_shape,
)
from tflq.converters.exchange.moves import sliced
from tflq.errors import UnsupportedError
from tflq.interpreter.operands.windows import transposed_window

_VOLUME_FIRST, _VOLUME_LAST = (0, 4, 1, 2, 3), (0, 2, 3, 4, 1)


def biased(e: Emitter, value: Value, position: int, channels: int) -> Value:
    """Return the value plus the bias at a position, [O] as [1, O, 1, ...]; the value where there is none."""
    t = e.given(position)
    if t is None:
        return value
    shape = (1, channels, *(1,) * (value.rank - 2))
    data = e.tensor(t).data
    if data is None:
        return e.pair("Add", value, e.reshaped(e.laid(t, False), shape))
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


def batch_matmul(e: Emitter) -> None:
    """BATCH_MATMUL: MatMul; adjoint operands are transposed."""
    values = []
    for position, key in enumerate(("adj_x", "adj_y")):
        value = e.plain(position)
        if e.node.attributes.boolean(key, False):
            value = e.transposed(value, (*range(value.rank - 2), value.rank - 1, value.rank - 2))
        values.append(value)
    e.result(e.add("MatMul", values, e.output().shape, FLOAT32, False))


def resize(mode: str) -> Rule:
    """Return the rule of RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR: Resize to a size.

    Nearest: TFLite takes floor(i * scale), floor((i + 0.5) * scale) with half-pixel centres, and rounds i * scale with
    aligned corners, halves up.
    """

    def rule(e: Emitter) -> None:
        x, shape, options = e.first(0), written_shape(e.output().shape, True), e.node.attributes
        e.constant_at(1)
        aligned, half = (options.boolean(key, False) for key in ("align_corners", "half_pixel_centers"))
        place = "align_corners" if aligned else "half_pixel" if half else "asymmetric"
        nearest = "round_prefer_ceil" if aligned or half else "floor"
        how: dict[str, ExchangeAttribute] = {"mode": mode, "coordinate_transformation_mode": place}
        if mode == "nearest":
            how["nearest_mode"] = nearest
        e.result(e.add("Resize", [x, None, None, e.whole("sizes", shape)], shape, options=how))

    return rule


def suppression(e: Emitter) -> None:
    """NON_MAX_SUPPRESSION_V4 and V5 without soft scores: places and scores of the boxes, zeros behind them, count.

    Raises:
        UnsupportedError: soft suppression; an overlap of 0, at which TFLite drops boxes that do not meet at all.
    """
    has_scores = e.node.operator == "non_max_suppression_v5"
    if has_scores and float(e.constant_at(5).flat[0]) != 0:
        raise UnsupportedError("soft suppression (sigma above 0); hard suppression can be written")
    boxes, scores, most = e.plain(0), e.plain(1), int(e.constant_at(2).flat[0])
    overlap, least = (np.asarray(e.constant_at(p).reshape(1), np.float32) for p in (3, 4))
    if overlap <= 0:
        raise UnsupportedError(f"suppression from an overlap of {overlap[0]:g} on; above 0 can be written")
    overlap = np.nextafter(overlap, np.float32(0))  # TFLite drops what reaches the limit, ONNX what exceeds it
    inputs = [
        e.reshaped(boxes, (1, *boxes.shape)),
        e.reshaped(scores, (1, 1, *scores.shape)),
        e.whole("most", [most]),
        e.number("overlap", overlap),
        e.number("score", least),
    ]
    found = e.add("NonMaxSuppression", inputs, (most, 3), INT64, center_point_box=0)
    places = e.add("Gather", [found, e.whole("box", 2)], (most,), axis=1)
    count = e.add("Gather", [e.add("Shape", [found], (2,), INT64), e.whole("first", 0)], (), axis=0)
    e.put(e.node.outputs[0], e.cast(_filled(e, places, most), INT32))
    if has_scores:
        e.put(e.node.outputs[1], _filled(e, e.add("Gather", [scores, places], (most,), axis=0), most))
    e.put(e.node.outputs[-1], e.cast(count, INT32))


def _filled(e: Emitter, found: Value, most: int) -> Value:
    """Return up to `most` entries with zeros behind them."""
    zeros = e.number("zeros", np.zeros(most, found.dtype))
    both = e.add("Concat", [found, zeros], (sum((*found.shape, *zeros.shape)),), axis=0)
    return sliced(e, both, {0: slice(most)})


RULES: dict[str, Rule] = {
    "batch_matmul": batch_matmul,
    "conv_3d": conv_3d,
    "non_max_suppression_v4": suppression,
    "non_max_suppression_v5": suppression,
    "resize_bilinear": resize("linear"),
    "resize_nearest_neighbor": resize("nearest"),
    "transpose_conv": transpose_conv,
}
