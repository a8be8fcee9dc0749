"""What lies between the convolutional parts, as graphs of arithmetic `aipu`: proposals, RoIAlign, final boxes."""

from __future__ import annotations

from typing import Any

import numpy as np

import tflq
from detector.anchors import DEVIATIONS
from detector.float_detector import (
    BEFORE_NMS,
    DETECTIONS,
    FINAL_OVERLAP,
    LOWEST_SCORE,
    NMS_OVERLAP,
    OF_CLASS,
    REGIONS,
)
from detector.quantized import Array, type_of
from detector.regions import CANONICAL
from detector.scenes import CLASSES, HEIGHT, WIDTH

BOX = type_of(32767, 16, signed=True)
"""Boxes leave BoundingBox as int16 with 32767 for 1."""

_AREAS_SHIFT = 8
"""Areas of two boxes of 15-bit coordinates lose 8 bits: their union times the 8-bit threshold fits 31 bits, and a box
of 1 / 2000 of the image still has 2048 units."""

_COUNT = type_of(1, 16)
_DIVISORS = tuple(float(1 / d) for d in DEVIATIONS)


def proposal_graph(scores: tflq.Tensor, deltas: tflq.Tensor, anchors: Array, anchor_type: tflq.Affine) -> tflq.Graph:
    """ProposalLayer: scores [1, K, 2], deltas [1, K, 4] -> boxes [1, REGIONS, 4] and how many there are [1, 1].

    The BEFORE_NMS best anchors, moved by their deltas, clipped by saturation, then NMS.
    """
    b = _Builder("proposals")
    x, moves = b.like("scores", scores), b.like("deltas", deltas)
    count = scores.shape[1]
    key: dict[str, Any] = {"begin": (0, 0, 1), "end": (1, count, 2), "strides": (1, 1, 1)}
    column = b.add("slice", [x], (1, count, 1), scores.dtype, scores.quantization, 1, **key)
    row = b.add("reshape", [column], (1, count), scores.dtype, scores.quantization)
    best = b.tensor("best", (1, BEFORE_NMS), scores.dtype, scores.quantization)
    places = b.tensor("places", (1, BEFORE_NMS), tflq.DType.UINT16, _COUNT)
    b.node("top_k", [row], [best, places], k=BEFORE_NMS, axis=1, largest=True, sorted=True, select_index="first")
    every = b.constant("anchors", anchors, anchor_type)
    shape = (1, BEFORE_NMS, 4)
    chosen = b.add("gather", [every, places], shape, tflq.DType.of(anchors.dtype), anchor_type, 1, axis=1, batch_dims=1)
    moves = b.add("gather", [moves, places], shape, deltas.dtype, deltas.quantization, 1, axis=1, batch_dims=1)
    boxes = b.bounding_box(chosen, moves, shape)
    kept = b.nms(boxes, best, [BEFORE_NMS], REGIONS, REGIONS, scores, iou_threshold=NMS_OVERLAP)
    return b.build(kept[:2])


def detection_graph(chances: tflq.Tensor, moves: tflq.Tensor) -> tflq.Graph:
    """Final boxes: rois [1, R, 4], probabilities [R, C], deltas [R, 4 * C] -> what NMS returns.

    Each class but the background moves the regions by its own deltas; NMS takes the classes one by one.
    """
    b = _Builder("detections")
    rois = b.input("rois", (1, REGIONS, 4), tflq.DType.INT16, BOX)
    x, deltas = b.like("chances", chances), b.like("deltas", moves)
    classes = len(CLASSES) - 1
    by_class = b.classes_first(deltas, moves, 4)
    repeated = b.add("tile", [rois], (classes, REGIONS, 4), tflq.DType.INT16, BOX, 1, repeats=(classes, 1, 1))
    boxes = b.bounding_box(repeated, by_class, (classes, REGIONS, 4))
    rows = classes * REGIONS
    boxes = b.add("reshape", [boxes], (1, rows, 4), tflq.DType.INT16, BOX)
    scores = b.classes_first(x, chances, 1)
    scores = b.add("reshape", [scores], (1, rows), chances.dtype, chances.quantization)
    limits = {"iou_threshold": FINAL_OVERLAP, "score_threshold": LOWEST_SCORE}
    return b.build(b.nms(boxes, scores, [REGIONS] * classes, OF_CLASS, DETECTIONS, chances, **limits))


def pooling_graph(pyramid: list[tflq.Tensor], pooled: tflq.Tensor, regions: int, size: int) -> tflq.Graph:
    """PyramidROIAlign: boxes [1, R, 4], P2 to P5 -> [R, size, size, C] in the type of `pooled` for all levels."""
    b = _Builder("pooling")
    boxes = b.input("boxes", (1, regions, 4), tflq.DType.INT16, BOX)
    maps = [b.like(f"p{level}", x) for level, x in enumerate(pyramid, start=2)]
    keys: dict[str, Any] = {
        "resize_height": size,
        "resize_width": size,
        "image_height": HEIGHT,
        "image_width": WIDTH,
        "canonical_size": CANONICAL,
        "proposal_normalized": True,
    }
    shape = (regions, size, size, pyramid[0].shape[-1])
    y = b.add("pyramid_roi_align", [boxes, *maps], shape, pooled.dtype, pooled.quantization, 1, **keys)
    return b.build([y])


class _Builder(tflq.GraphBuilder):
    """Adds the layers that both stages have."""

    def like(self, name: str, tensor: tflq.Tensor) -> int:
        """Add an input of another graph's type."""
        return self.input(name, tensor.shape, tensor.dtype, tensor.quantization)

    def classes_first(self, t: int, tensor: tflq.Tensor, width: int) -> int:
        """[R, C * width] -> [C - 1, R, width], without the background."""
        dtype, affine, count = tensor.dtype, tensor.quantization, len(CLASSES)
        t = self.add("reshape", [t], (REGIONS, count, width), dtype, affine)
        t = self.add("transpose", [t], (count, REGIONS, width), dtype, affine, perm=(1, 0, 2))
        keys: dict[str, Any] = {"begin": (1, 0, 0), "end": (count, REGIONS, width), "strides": (1, 1, 1)}
        return self.add("slice", [t], (count - 1, REGIONS, width), dtype, affine, 1, **keys)

    def bounding_box(self, boxes: int, deltas: int, shape: tuple[int, ...]) -> int:
        """apply_box_deltas."""
        keys: dict[str, Any] = {"coordinate_order": "YX", "std_div": _DIVISORS, "lut_items_in_bits": 10}
        return self.add("bounding_box", [boxes, deltas], shape, tflq.DType.INT16, BOX, 1, **keys)

    def nms(
        self, boxes: int, scores: int, sizes: list[int], of_class: int, most: int, kind: tflq.Tensor, **limits: float
    ) -> list[int]:
        """Add NMS over classes of `sizes` rows; return boxes, kept of each class, scores, indices."""
        counts = self.constant("counts", np.array([sizes], np.uint16), _COUNT)
        classes = self.constant("classes", np.array([[len(sizes)]], np.uint16), _COUNT)
        outputs = [
            self.tensor("boxes", (1, most, 4), tflq.DType.INT16, BOX),
            self.tensor("kept", (1, len(sizes)), tflq.DType.UINT16, _COUNT),
            self.tensor("found", (1, most), kind.dtype, kind.quantization),
            self.tensor("indices", (1, most), tflq.DType.UINT16, _COUNT),
        ]
        keys: dict[str, Any] = {
            "method": "HARD",
            "max_output_size": of_class,
            "areas_shift": _AREAS_SHIFT,
            **limits,
        }
        self.node("nms", [boxes, counts, classes, scores], outputs, 1, None, **keys)
        return outputs
