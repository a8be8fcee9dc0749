"""The detector in float: the reference, and the source of the calibration's samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tflq
from detector.anchors import anchors, apply_deltas
from detector.average_precision import Detections, overlaps
from detector.graphs import Part, Parts
from detector.network import POOLED, POOLED_MASK
from detector.regions import pyramid_roi_align
from detector.scenes import CLASSES

BEFORE_NMS, REGIONS = 1000, 64
OF_CLASS = 16
DETECTIONS = OF_CLASS * (len(CLASSES) - 1)
NMS_OVERLAP, FINAL_OVERLAP, LOWEST_SCORE = 0.7, 0.3, 0.05

Boxes = NDArray[np.float64]
Reals = NDArray[np.float32]
Masks = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Found:
    """What a detector found on S images.

    Attributes:
        boxes: of each image, with classes and scores.
        masks: float[N, POOLED_MASK, POOLED_MASK] of each image: how likely a point belongs to the shape.
    """

    boxes: tuple[Detections, ...]
    masks: tuple[Masks, ...]


@dataclass(frozen=True, eq=False)
class Trace:
    """What the float detector computed on S images.

    Attributes:
        images: float32[S, 1, H, W, 3].
        pooled: float32[S, REGIONS, POOLED, POOLED, C].
        pooled_masks: float32[S, DETECTIONS, POOLED_MASK, POOLED_MASK, C].
        found: the result.
    """

    images: Reals
    pooled: Reals
    pooled_masks: Reals
    found: Found


def detect(parts: Parts, images: Reals) -> Trace:
    """Run the detector on images float32[S, H, W, 3]."""
    inputs = images[:, None]
    *pyramid, scores, deltas = (x[:, 0] for x in _run(parts.first, inputs))
    maps = [tuple(p[i] for p in pyramid) for i in range(len(images))]
    rois = [proposals(s[:, 1], d) for s, d in zip(scores, deltas, strict=True)]
    pooled = np.stack([pyramid_roi_align(m, r, POOLED) for m, r in zip(maps, rois, strict=True)])
    chances, moves = _run(parts.head, pooled)
    boxes = tuple(detections(r, c, m) for r, c, m in zip(rois, chances, moves, strict=True))
    padded = [_padded(f.boxes, DETECTIONS) for f in boxes]
    pooled_masks = np.stack([pyramid_roi_align(m, b, POOLED_MASK) for m, b in zip(maps, padded, strict=True)])
    (masks,) = _run(parts.mask, pooled_masks)
    of_class = tuple(of_classes(m, f.classes) for m, f in zip(masks, boxes, strict=True))
    return Trace(inputs, pooled, pooled_masks, Found(boxes, of_class))


def of_classes(masks: Masks, classes: NDArray[np.int64]) -> Masks:
    """Return each row's mask of its class, [N, M, M], of masks [rows, M, M, classes]."""
    return masks[np.arange(len(classes)), :, :, classes]


def proposals(scores: Reals, deltas: Reals) -> Boxes:
    """Return regions float64[REGIONS, 4] of scores [K] and deltas [K, 4] (Mask R-CNN, ProposalLayer).

    The BEFORE_NMS best anchors are moved by their deltas, clipped, and pass NMS; zeros fill the rest.
    """
    best = np.argsort(-scores, kind="stable")[:BEFORE_NMS]
    boxes = apply_deltas(anchors()[best], deltas[best].astype(np.float64))
    kept = suppress(boxes, scores[best].astype(np.float64), NMS_OVERLAP, REGIONS)
    return _padded(boxes[kept], REGIONS)


def detections(rois: Boxes, chances: Reals, moves: Reals) -> Detections:
    """Return the final boxes of regions [R, 4], probabilities [R, classes] and deltas [R, 4 * classes].

    Each class moves the regions by its own deltas and keeps the first OF_CLASS that NMS leaves of those above
    LOWEST_SCORE. Boxes without area go.
    """
    boxes, classes, scores = [np.empty((0, 4))], [], []
    by_class = moves.reshape(len(rois), len(CLASSES), 4).astype(np.float64)
    for c in range(1, len(CLASSES)):
        sure = np.flatnonzero(chances[:, c] > LOWEST_SCORE)
        moved, chance = apply_deltas(rois[sure], by_class[sure, c]), chances[sure, c].astype(np.float64)
        kept = suppress(moved, chance, FINAL_OVERLAP, OF_CLASS)
        kept = kept[np.all(moved[kept, 2:] > moved[kept, :2], axis=1)]
        boxes.append(moved[kept])
        scores.append(chance[kept])
        classes.append(np.full(len(kept), c))
    return Detections(np.concatenate(boxes), np.concatenate(classes), np.concatenate(scores))


def suppress(boxes: Boxes, scores: Boxes, overlap: float, most: int) -> NDArray[np.int64]:
    """Return rows in order of score, at most `most`, none of which overlaps an earlier one by more than `overlap`."""
    table = overlaps(boxes, boxes)
    waiting = np.argsort(-scores, kind="stable")
    kept: list[int] = []
    while waiting.size and len(kept) < most:
        kept.append(int(waiting[0]))
        waiting = waiting[1:][table[waiting[0], waiting[1:]] <= overlap]
    return np.array(kept, np.int64)


def _run(part: Part, x: Reals) -> list[Reals]:
    graph = part.model.main
    outputs = tflq.Engine(graph, "float").run([x])
    return [np.asarray(outputs[t], np.float32) for t in graph.outputs]


def _padded(boxes: Boxes, rows: int) -> Boxes:
    padded = np.zeros((rows, 4))
    padded[: len(boxes)] = boxes[:rows]
    return padded
