"""Resized images, and boxes in images."""

from __future__ import annotations

import numpy as np

from tflq.converters.exchange.emitter import INT32, INT64, Emitter, ExchangeAttribute, Rule, Value, written_shape
from tflq.converters.exchange.moves import sliced
from tflq.errors import UnsupportedError


def resize(mode: str) -> Rule:
    """Return the rule of RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR: Resize to a size.

    Nearest: TFLite takes floor(i * scale), floor((i + 0.5) * scale) with half-pixel centers, and rounds i * scale with
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
    """NON_MAX_SUPPRESSION_V4 and V5 without soft scores: places and scores, padded with zeros, and count.

    Raises:
        UnsupportedError: soft suppression; an overlap of 0, at which TFLite drops disjoint boxes.
    """
    has_scores = e.node.operator == "non_max_suppression_v5"
    if has_scores and float(e.constant_at(5).flat[0]) != 0:
        raise UnsupportedError("soft suppression (sigma above 0); hard suppression can be written")
    boxes, scores, most = e.plain(0), e.plain(1), int(e.constant_at(2).flat[0])
    overlap, least = (np.asarray(e.constant_at(p).reshape(1), np.float32) for p in (3, 4))
    if overlap <= 0:
        raise UnsupportedError(f"suppression from an overlap of {overlap[0]:g} on; above 0 can be written")
    overlap = np.nextafter(overlap, np.float32(0))  # TFLite drops boxes that reach the limit, ONNX boxes above it
    inputs = [
        e.reshaped(boxes, (1, *boxes.shape)),
        e.reshaped(scores, (1, 1, *scores.shape)),
        e.whole("most", [most]),
        e.number("overlap", overlap),
        e.number("score", least),
    ]
    boxes = e.add("NonMaxSuppression", inputs, (most, 3), INT64, center_point_box=0)
    places = e.add("Gather", [boxes, e.whole("box", 2)], (most,), axis=1)
    count = e.add("Gather", [e.add("Shape", [boxes], (2,), INT64), e.whole("first", 0)], (), axis=0)
    e.set_tensor(e.node.outputs[0], e.cast(_fill_with_zeros(e, places, most), INT32))
    if has_scores:
        e.set_tensor(e.node.outputs[1], _fill_with_zeros(e, e.add("Gather", [scores, places], (most,), axis=0), most))
    e.set_tensor(e.node.outputs[-1], e.cast(count, INT32))


def _fill_with_zeros(e: Emitter, entries: Value, most: int) -> Value:
    """Return up to `most` entries, padded with zeros."""
    zeros = e.number("zeros", np.zeros(most, entries.dtype))
    both = e.add("Concat", [entries, zeros], (sum((*entries.shape, *zeros.shape)),), axis=0)
    return sliced(e, both, {0: slice(most)})
