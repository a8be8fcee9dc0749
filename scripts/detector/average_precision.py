"""How good detections are: average precision against known boxes, and agreement with another detector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Boxes = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Detections:
    """What was found, or is there, on one image.

    Attributes:
        boxes: float64[N, 4], two corners y0, x0, y1, x1.
        classes: int64[N].
        scores: float64[N], higher is surer; any numbers where the boxes are the truth.
    """

    boxes: Boxes
    classes: NDArray[np.int64]
    scores: NDArray[np.float64]


def overlaps(a: Boxes, b: Boxes) -> Boxes:
    """Return intersection over union, float64[A, B], of boxes [A, 4] and [B, 4]; 0 where both are empty."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    sides = np.maximum(np.minimum(a[:, None, 2:], b[None, :, 2:]) - low, 0)
    shared = sides[..., 0] * sides[..., 1]
    areas = [np.prod(np.maximum(x[:, 2:] - x[:, :2], 0), axis=1) for x in (a, b)]
    union = areas[0][:, None] + areas[1][None] - shared
    result: Boxes = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
    return result


def average_precision(found: Sequence[Detections], truth: Sequence[Detections], overlap: float = 0.5) -> float:
    """Return the mean over classes of the area under precision and recall, 0 to 1.

    Detections of all images in order of score, the earlier first among equals; each takes the box of its class and
    image that it overlaps most, if by `overlap` or more and not taken yet. Precision is the best at that recall or
    above; the area is exact (PASCAL VOC 2010 and later).

    Args:
        found: detections of each image.
        truth: known boxes of the same images.
        overlap: smallest intersection over union.
    """
    classes = sorted({int(c) for image in truth for c in image.classes})
    return float(np.mean([_class_precision(found, truth, c, overlap) for c in classes])) if classes else 0.0


def agreement(found: Sequence[Detections], reference: Sequence[Detections], overlap: float = 0.9) -> float:
    """Return the share of the reference's boxes that have a box of their own of the same class, 0 to 1.

    Boxes of the reference in order of their score take the free box that overlaps them most, if by `overlap` or more.
    """
    total = sum(len(image.boxes) for image in reference)
    agreeing = 0
    for mine, other in zip(found, reference, strict=True):
        order = np.argsort(-other.scores, kind="stable")
        same = other.classes[order, None] == mine.classes[None]
        agreeing += int(_take(np.where(same, overlaps(other.boxes[order], mine.boxes), 0.0), overlap, True).sum())
    return agreeing / total if total else 1.0


def _class_precision(
    found: Sequence[Detections], truth: Sequence[Detections], class_number: int, overlap: float
) -> float:
    hits, scores, count = [], [], 0
    for mine, known in zip(found, truth, strict=True):
        chosen, wanted = mine.classes == class_number, known.classes == class_number
        order = np.flatnonzero(chosen)[np.argsort(-mine.scores[chosen], kind="stable")]
        hits.append(_take(overlaps(mine.boxes[order], known.boxes[wanted]), overlap, False))
        scores.append(mine.scores[order])
        count += int(wanted.sum())
    order = np.argsort(-np.concatenate(scores), kind="stable")
    right = np.cumsum(np.concatenate(hits)[order])
    precision = right / np.arange(1, len(right) + 1)
    best = np.maximum.accumulate(precision[::-1])[::-1]
    return float(np.sum(best * np.diff(right, prepend=0)) / count)


def _take(table: Boxes, overlap: float, only_free: bool) -> NDArray[np.bool_]:
    """Return which rows get a column, bool[A]: the best one of all, or of those that are free."""
    taken = np.zeros(table.shape[1], np.bool_)
    hits = np.zeros(table.shape[0], np.bool_)
    for row, values in enumerate(table if table.shape[1] else ()):
        candidates = np.where(taken, -1.0, values) if only_free else values
        column = int(np.argmax(candidates))
        hits[row] = candidates[column] >= overlap and not taken[column]
        taken[column] |= hits[row]
    return hits
