"""Area under the ROC curve, from ranks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array


def area_under_roc(scores: Array, positive: NDArray[np.bool_]) -> float | None:
    """Return the share of pairs (one positive, one negative) whose positive scores higher; ties count one half.

    With n positives, m negatives and average ranks among equal scores:
    AUC = (sum of the positives' ranks - n (n + 1) / 2) / (n m), the Mann-Whitney statistic, which is the area under
    the curve of true against false positive rate (Fawcett, "An introduction to ROC analysis", 2006, section 7).

    Args:
        scores: dtype[S], high for positive.
        positive: bool[S].

    Returns:
        None where one of the two kinds does not occur.
    """
    count = int(np.count_nonzero(positive))
    if count in (0, len(positive)):
        return None
    _, place, ties = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = np.cumsum(ties) - (ties - 1) / 2.0
    above = float(ranks[place.reshape(-1)[positive]].sum()) - count * (count + 1) / 2
    return above / (count * (len(positive) - count))


def one_against_rest(outputs: Array, labels: NDArray[np.int64]) -> float | None:
    """Return the mean over classes of the area for that class against all others, as mlcommons' runner does.

    A sample's scores are its outputs divided by their sum, where none is negative (benchmark/runner/main.py,
    normalize_probabilities); the outputs themselves where any is. Two classes: the area for class 1.

    Args:
        outputs: real[S, classes].
        labels: the true classes, int64[S].

    Returns:
        The mean over the classes that have samples; None where there are fewer than two of them.
    """
    scores = np.asarray(outputs, np.float64)
    if (scores >= 0).all():
        sums = scores.sum(axis=1, keepdims=True)
        scores = np.divide(scores, sums, out=scores.copy(), where=sums > 0)
    if scores.shape[1] == 2:
        return area_under_roc(scores[:, 1], labels == 1)
    areas = [area_under_roc(scores[:, c], labels == c) for c in range(scores.shape[1])]
    known = [area for area in areas if area is not None]
    return float(np.mean(known)) if known else None
