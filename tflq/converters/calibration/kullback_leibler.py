"""The window of a histogram whose quantised form diverges least from it, after Kullback and Leibler.

Windows grow from `target` bins by one bin on either side. P is the window with all that lies outside added to its
border bins, as shares; Q joins the window's bins into `target` groups of equal length (in Compass the last one takes
the rest) and spreads each group over those of its bins that are not empty. The divergence is the sum of P * ln(P / Q)
where P > 0.

TensorRT makes Q of the bare window, so that clipping costs something. Compass makes it of P: there the narrowest window
has no divergence at all, and only the choice among several candidates widens it (docs/calibration.md).

Source: "8-bit inference with TensorRT" (GTC 2017), pages 37-39.
"""

from __future__ import annotations

import numpy as np

from tflq.arrays import Doubles, Integers

SMALLEST_SHARE = 1e-9
"""Q where P has clipped values and the bare window none."""


def best_window(
    histogram: Doubles, minimum: float, maximum: float, target: int, candidates: int, bare: bool
) -> tuple[float, float]:
    """Return the real bounds of the window.

    Args:
        histogram: [B] of equal bins between the two bounds.
        minimum: lower edge of the first bin.
        maximum: upper edge of the last bin.
        target: number of quantized values; with B bins or fewer there is nothing to choose.
        candidates: the widest among this many smallest divergences is taken.
        bare: whether Q is made of the window without what lies outside.
    """
    bins = histogram.size
    if bins <= target or target < 2 or not histogram.any():
        return minimum, maximum
    left, right = _start(histogram, minimum, maximum, target)
    steps = max(left + 1, bins - right)
    found = _divergences(histogram, left, right, target, steps, bare)
    growth = int(np.argsort(found, kind="stable")[:candidates].max())
    width = (maximum - minimum) / bins
    low = minimum + max(left - growth, 0) * width
    high = maximum - (bins - 1 - min(right + growth, bins - 1)) * width
    return low, high


def _start(histogram: Doubles, minimum: float, maximum: float, target: int) -> tuple[int, int]:
    """Return first and last bin of the narrowest window: at zero, or around the fullest bin."""
    last = histogram.size - 1
    if minimum >= 0:
        return 0, target - 1
    if maximum <= 0:
        return last + 1 - target, last
    fullest = int(histogram.argmax())
    if fullest < last - fullest:
        left = max(fullest - target // 2, 0)
        return left, left + target - 1
    right = min(fullest + target // 2, last)
    return right - target + 1, right


def _divergences(histogram: Doubles, left: int, right: int, target: int, steps: int, bare: bool) -> Doubles:
    """Return the divergence of each window, from the narrowest to the widest: float64[steps]."""
    upto, total, bins = np.cumsum(histogram), histogram.sum(), histogram.size
    found = np.empty(steps)
    for i in range(steps):
        start, stop = max(left - i, 0), min(right + i + 1, bins)
        window = histogram[start:stop].copy()
        window[0] += upto[start] - histogram[start]
        window[-1] += total - upto[stop - 1]
        if bare:
            # Groups as equal as can be: a rest of nearly a whole group in the last one would decide the search.
            group = np.arange(stop - start) * target // (stop - start)
            found[i] = _divergence(window / total, histogram[start:stop], group)
        else:  # Compass lets the window grow into empty bins on either side, which shifts its groups.
            window = np.pad(window, (start - (left - i), right + i + 1 - stop))
            group = np.minimum(np.arange(window.size) // (window.size // target), target - 1)
            found[i] = _divergence(window / total, window, group)
    return found


def _divergence(p: Doubles, values: Doubles, group: Integers) -> float:
    """Return the divergence from p of `values` that are joined and spread by groups."""
    share = np.bincount(group, values)
    filled = np.bincount(group, values > 0)
    q = np.where(values > 0, (share / np.maximum(filled, 1))[group], 0) / max(values.sum(), SMALLEST_SHARE)
    full = p > 0
    return float(np.sum(p[full] * np.log(p[full] / np.maximum(q[full], SMALLEST_SHARE))))
