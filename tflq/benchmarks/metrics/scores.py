"""Scores of classes, boxes, masks, words or signals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Doubles, Integers
from tflq.diagnosis.compare.tally import sqnr_db
from tflq.errors import InputError


def top_k_percent(outputs: Doubles, labels: Integers, k: int) -> float:
    """Return the share of samples, in percent, with the true class among the k highest outputs.

    Equal outputs rank by class, lower classes first, as for top-1.

    Args:
        outputs: Outputs, real[S, classes].
        labels: True classes, int64[S].
        k: Number of highest outputs, 1 or more.
    """
    return 100.0 * float(np.count_nonzero(among_highest(outputs, labels, k))) / len(labels)


def among_highest(outputs: Doubles, labels: Integers, k: int) -> NDArray[np.bool_]:
    """Return a mask of samples with the true class among the k highest outputs, bool[S]; arguments as `top_k_percent`.

    NaN ranks highest, as in numpy's argmax.
    """
    known = np.where(np.isnan(outputs), np.inf, outputs)
    own = np.take_along_axis(known, labels[:, None], axis=1)
    before = (known == own) & (np.arange(known.shape[1]) < labels[:, None])
    return np.asarray(np.count_nonzero((known > own) | before, axis=1) < k)


def confusion_matrix(predicted: Integers, labels: Integers, classes: int) -> Integers:
    """Return the number of samples for each pair of classes, int64[true class, predicted class]."""
    counted = np.bincount(classes * labels.reshape(-1) + predicted.reshape(-1), minlength=classes * classes)
    return counted.reshape(classes, classes).astype(np.int64)


def mean_iou(predicted: Integers, truth: Integers, classes: int, ignored: int = 255) -> float:
    """Return the mean over classes of intersection over union, 0..1, over all pixels of all masks together.

    IoU_c = M_cc / (sum_j M_cj + sum_i M_ic - M_cc), M the confusion matrix of the pixels; a class that occurs in
    neither has none and does not count. This is the mean IoU of COCO-Stuff and of Pascal VOC.

    Args:
        predicted: Classes of pixels, int64[...].
        truth: True classes of pixels, with the same shape.
        classes: Number of classes.
        ignored: True class of pixels that do not count.

    Raises:
        InputError: No pixel counts.
    """
    counts = truth != ignored
    matrix = confusion_matrix(predicted[counts], truth[counts], classes)
    both = np.diag(matrix)
    union = matrix.sum(axis=0) + matrix.sum(axis=1) - both
    if not union.any():
        raise InputError("no pixel has a class: the mean IoU is not defined")
    return float((both[union > 0] / union[union > 0]).mean())


def word_error_rate(predicted: Sequence[str], truth: Sequence[str]) -> float:
    """Return the word error rate in percent: substitutions, deletions and insertions over the number of true words.

    Edits are the minimum that turns one sequence of words into the other (Levenshtein), summed over all sentences.

    Raises:
        InputError: The numbers of sentences differ, or the truth has no word.
    """
    if len(predicted) != len(truth):
        raise InputError(f"{len(predicted)} predicted and {len(truth)} true sentences; the numbers must be equal")
    words = sum(len(sentence.split()) for sentence in truth)
    if not words:
        raise InputError("the true sentences contain no word: the word error rate is not defined")
    return 100.0 * sum(_edits(p.split(), t.split()) for p, t in zip(predicted, truth, strict=True)) / words


def snr_db(values: Doubles, expected: Doubles) -> float:
    """Return 10 log10(sum of expected^2 / sum of (expected - values)^2); inf for equal arrays.

    With a clean signal as `expected` it is the SNR of a denoising network's output; with the float network's outputs it
    is the SQNR.
    """
    return sqnr_db(float(np.square(expected).sum()), float(np.square(expected - values).sum()))


def _edits(predicted: Sequence[str], truth: Sequence[str]) -> int:
    row = list(range(len(truth) + 1))
    for n, word in enumerate(predicted, 1):
        before, row[0] = row[0], n
        for m, other in enumerate(truth, 1):
            before, row[m] = row[m], min(row[m] + 1, row[m - 1] + 1, before + (word != other))
    return row[-1]


IOUS = tuple(np.linspace(0.5, 0.95, 10).tolist())
"""Overlaps of the mean: 0.5, 0.55, ... 0.95; a detection counts at an overlap as in pycocotools."""
MOST = 100
"""Largest number of detections of a class in one image; the highest scores count."""
_RECALLS = np.linspace(0, 1, 101)


@dataclass(frozen=True)
class Boxes:
    """The boxes of one image.

    Attributes:
        corners: Left, top, right, bottom: float64[N, 4], in any unit.
        classes: Classes, int64[N].
        scores: Scores of detections, float64[N]; empty for the truth.
        is_crowd: Mask of regions with many objects in the truth, bool[N], for which detections do not count; else
            empty.
    """

    corners: Doubles
    classes: Integers
    scores: Doubles = field(default_factory=lambda: np.zeros(0))
    is_crowd: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))


def mean_average_precision(predicted: Sequence[Boxes], truth: Sequence[Boxes], ious: Sequence[float] = IOUS) -> float:
    """Return the mean of `average_precision` over the overlaps and the classes that occur in the truth, 0..1.

    Args:
        predicted: Detections in each image.
        truth: Objects in each image.
        ious: Overlaps: all ten for COCO's AP, (0.5,) for AP50, (0.75,) for AP75.

    Returns:
        Mean; NaN if the truth has no object.
    """
    classes = np.unique(np.concatenate([t.classes for t in truth])) if truth else np.zeros(0, np.int64)
    values = [average_precision(predicted, truth, int(c), iou) for c in classes for iou in ious]
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else float("nan")


def average_precision(predicted: Sequence[Boxes], truth: Sequence[Boxes], class_: int, iou: float) -> float:
    """Return the mean precision of a class at the recalls 0, 0.01, ... 1: the best at that recall or more.

    In each image, detections in the order of falling scores are matched to the unmatched object with the largest
    overlap of at least `iou`; a detection that is matched to a crowd does not count.

    Returns:
        Mean precision, 0..1; NaN if no image has such an object.
    """
    scores: list[Doubles] = []
    kinds: list[Integers] = []
    objects = 0
    for f, t in zip(predicted, truth, strict=True):
        mine, theirs = f.classes == class_, t.classes == class_
        order = np.argsort(-f.scores[mine], kind="mergesort")[:MOST]
        crowd = (t.is_crowd if len(t.is_crowd) else np.zeros(len(t.classes), bool))[theirs]
        scores.append(f.scores[mine][order])
        kinds.append(_match_detections(f.corners[mine][order], t.corners[theirs], crowd, iou))
        objects += int(np.count_nonzero(~crowd))
    if not objects:
        return float("nan")
    order = np.argsort(-np.concatenate(scores), kind="mergesort")
    kind = np.concatenate(kinds)[order]
    kind = kind[kind >= 0]
    true, false = np.cumsum(kind == 1), np.cumsum(kind == 0)
    recall = true / objects
    precision = np.maximum.accumulate((true / np.maximum(true + false, 1))[::-1])[::-1]
    places = np.searchsorted(recall, _RECALLS, side="left")
    return float(np.append(precision, 0.0)[np.minimum(places, len(precision))].mean())


def overlaps(predicted: Doubles, truth: Doubles, is_crowd: NDArray[np.bool_]) -> Doubles:
    """Return the intersection over union of each pair, float64[F, T]; for a crowd, over the detection's area."""
    low = np.maximum(predicted[:, None, :2], truth[None, :, :2])
    high = np.minimum(predicted[:, None, 2:], truth[None, :, 2:])
    both = np.clip(high - low, 0, None).prod(axis=2)
    areas, others = ((b[:, 2:] - b[:, :2]).prod(axis=1) for b in (predicted, truth))
    union = np.where(is_crowd[None], areas[:, None], areas[:, None] + others[None] - both)
    shares: Doubles = np.divide(both, union, out=np.zeros_like(both), where=union > 0)
    return shares


def _match_detections(predicted: Doubles, truth: Doubles, is_crowd: NDArray[np.bool_], iou: float) -> Integers:
    """Return for each detection 1 for an object, 0 without a match, -1 for a crowd."""
    kinds = np.zeros(len(predicted), np.int64)
    share, taken = overlaps(predicted, truth, is_crowd), np.zeros(len(truth), bool)
    plain_first = np.argsort(is_crowd, kind="mergesort")
    for n in range(len(predicted)):
        best, least = -1, min(iou, 1 - 1e-10)
        for m in plain_first:
            if taken[m] and not is_crowd[m]:
                continue
            if best >= 0 and not is_crowd[best] and is_crowd[m]:
                break
            if share[n, m] >= least:
                best, least = int(m), share[n, m]
        if best >= 0:
            taken[best] = True
            kinds[n] = -1 if is_crowd[best] else 1
    return kinds
