"""Scores of classes, masks, words and signals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tflq.analysis.compare.tally import sqnr_db
from tflq.arrays import Doubles, Integers
from tflq.errors import InputError


def top_k_percent(outputs: Doubles, labels: Integers, k: int) -> float:
    """Return the share of samples, in percent, whose class is among the k highest outputs.

    Of equal outputs those of the lower classes count first, as for top-1.

    Args:
        outputs: real[S, classes].
        labels: the true classes, int64[S].
        k: 1 or more.
    """
    return 100.0 * float(np.count_nonzero(among_highest(outputs, labels, k))) / len(labels)


def among_highest(outputs: Doubles, labels: Integers, k: int) -> NDArray[np.bool_]:
    """Return the samples whose class is among the k highest outputs, bool[S]; arguments as for `top_k_percent`.

    NaN counts as the highest, as numpy's argmax takes it.
    """
    known = np.where(np.isnan(outputs), np.inf, outputs)
    own = np.take_along_axis(known, labels[:, None], axis=1)
    before = (known == own) & (np.arange(known.shape[1]) < labels[:, None])
    return np.asarray(np.count_nonzero((known > own) | before, axis=1) < k)


def confusion_matrix(predicted: Integers, labels: Integers, classes: int) -> Integers:
    """Return how often each class was taken for each, int64[true class, predicted class]."""
    counted = np.bincount(classes * labels.reshape(-1) + predicted.reshape(-1), minlength=classes * classes)
    return counted.reshape(classes, classes).astype(np.int64)


def mean_iou(predicted: Integers, truth: Integers, classes: int, ignored: int = 255) -> float:
    """Return the mean over classes of intersection over union, 0..1, over all pixels of all masks together.

    IoU_c = M_cc / (sum_j M_cj + sum_i M_ic - M_cc), M the confusion matrix of the pixels; a class that occurs in
    neither has none and does not count. This is the mean IoU of COCO-Stuff and of Pascal VOC.

    Args:
        predicted: classes of pixels, int64[...].
        truth: the true ones, of the same shape.
        classes: their number.
        ignored: a true class whose pixels do not count.

    Raises:
        InputError: no pixel counts.
    """
    counts = truth != ignored
    matrix = confusion_matrix(predicted[counts], truth[counts], classes)
    both = np.diag(matrix)
    union = matrix.sum(axis=0) + matrix.sum(axis=1) - both
    if not union.any():
        raise InputError("no pixel has a class: the mean IoU is not defined")
    return float((both[union > 0] / union[union > 0]).mean())


def word_error_rate(found: Sequence[str], wanted: Sequence[str]) -> float:
    """Return the word error rate in percent: substitutions, deletions and insertions over the words that were said.

    Edits are the fewest that make one sequence of words the other (Levenshtein), summed over all sentences.

    Raises:
        InputError: sequences of other lengths, or no word was said.
    """
    if len(found) != len(wanted):
        raise InputError(f"{len(found)} sentences were found and {len(wanted)} said; as many are needed")
    words = sum(len(sentence.split()) for sentence in wanted)
    if not words:
        raise InputError("no word was said: the word error rate is not defined")
    return 100.0 * sum(_edits(f.split(), w.split()) for f, w in zip(found, wanted, strict=True)) / words


def snr_db(found: Doubles, wanted: Doubles) -> float:
    """Return 10 log10(sum of wanted^2 / sum of (wanted - found)^2); inf where they are equal.

    With a clean signal as `wanted` it is the SNR of what a network made of a noisy one, with the float network's
    outputs the SQNR.
    """
    return sqnr_db(float(np.square(wanted).sum()), float(np.square(wanted - found).sum()))


def _edits(found: Sequence[str], wanted: Sequence[str]) -> int:
    row = list(range(len(wanted) + 1))
    for n, word in enumerate(found, 1):
        before, row[0] = row[0], n
        for m, other in enumerate(wanted, 1):
            before, row[m] = row[m], min(row[m] + 1, row[m - 1] + 1, before + (word != other))
    return row[-1]
