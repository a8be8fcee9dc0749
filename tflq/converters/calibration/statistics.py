"""Statistics of one tensor, updated batch by batch.

A histogram widens: it has exact counts over bins whose width is a power of two, in memory that stays the same. Its best
window is the one whose quantized form diverges least from it, after Kullback and Leibler. Windows grow from `target`
bins by one bin on either side. P is the window with all that lies outside added to its border bins, as shares; Q joins
the window's bins into `target` groups of equal length (in Compass the last one takes the rest) and spreads each group
over those of its bins that are not empty. The divergence is the sum of P * ln(P / Q) where P > 0.

TensorRT makes Q of the bare window, so that clipping costs something. Compass makes it of P: there the narrowest window
has no divergence at all, and only the choice among several candidates widens it (docs/guides/calibration.md).

Source: "8-bit inference with TensorRT" (GTC 2017), pages 37-39.
"""

from __future__ import annotations

import math

import numpy as np

from tflq.arrays import Doubles, Integers, Singles
from tflq.converters.calibration.options import StatisticsOptions
from tflq.errors import OptionError


class Histogram:
    """Counts real numbers in bins [i * 2^e, (i + 1) * 2^e).

    The width is the smallest power of two with which the range from the smallest to the largest value, zero included,
    falls into `capacity` bins. When it grows, neighboring bins are joined, which is exact; so the counts do not depend
    on the order of the values or on how they are cut into batches. Zeros are counted apart: after a rectifier they are
    half of all values, and the middle of their bin is not where they are.

    Attributes:
        zeros: number of zeros.
        smallest: smallest value; 0 at least.
        largest: largest value; 0 at most.
    """

    def __init__(self, capacity: int) -> None:
        self._counts = np.zeros(capacity, np.int64)
        self._first = 0
        self._exponent: int | None = None
        self.zeros = 0
        self.smallest = 0.0
        self.largest = 0.0

    def add(self, values: Singles) -> None:
        """Count finite values of any shape."""
        flat = values.reshape(-1).astype(np.float64)
        flat = flat[flat != 0]
        self.zeros += values.size - flat.size
        if not flat.size:
            return
        self.smallest, self.largest = min(self.smallest, float(flat.min())), max(self.largest, float(flat.max()))
        self._widen()
        bins = np.floor(np.ldexp(flat, -(self._exponent or 0))).astype(np.int64) - self._first
        self._counts += np.bincount(bins, minlength=self._counts.size)

    @property
    def width(self) -> float:
        """Width of a bin."""
        return math.ldexp(1.0, self._exponent or 0)

    @property
    def total(self) -> int:
        """Number of values, zeros included."""
        return self.zeros + int(self._counts.sum())

    def trimmed(self, with_zeros: bool = True) -> tuple[Integers, float]:
        """Return the counts from the bin of the smallest to that of the largest value, and the first bin's lower edge.

        Zeros stand in the bin that starts at 0, or are left out.
        """
        low, high = self._bin_of(self.smallest), self._bin_of(self.largest)
        counts = self._counts[low - self._first : high - self._first + 1].copy()
        counts[-low] += self.zeros if with_zeros else 0
        return counts, low * self.width

    def points(self) -> tuple[Doubles, Integers]:
        """Return middle and count of each bin that holds something, and of zero: float64[B], int64[B], ascending."""
        filled = np.flatnonzero(self._counts)
        middles = np.asarray((filled + self._first + 0.5) * self.width, np.float64)
        place = int(np.searchsorted(middles, 0.0))
        if not self.zeros:
            return middles, self._counts[filled]
        return np.insert(middles, place, 0.0), np.insert(self._counts[filled], place, self.zeros)

    def quantile(self, share: float) -> float:
        """Return the value below which a share of all values lies, within one bin of the true one.

        Values are taken as evenly spread over their bin; the result does not leave smallest..largest.
        """
        middles, counts = self.points()
        if not counts.size:
            return 0.0
        rank = share * self.total
        upto = np.cumsum(counts)
        i = min(int(np.searchsorted(upto, rank)), counts.size - 1)
        inside = (rank - (upto[i] - counts[i])) / counts[i]
        half = 0.0 if middles[i] == 0 else self.width / 2
        found = float(middles[i]) + (2 * inside - 1) * half
        return float(min(max(found, self.smallest), self.largest))

    def _bin_of(self, value: float) -> int:
        return math.floor(math.ldexp(value, -(self._exponent or 0)))

    def _widen(self) -> None:
        before = self._exponent
        if before is None:
            span = self.largest - self.smallest
            self._exponent = math.frexp(span / self._counts.size)[1] - 2
        while self._bin_of(self.largest) - self._bin_of(self.smallest) >= self._counts.size:
            self._exponent = (self._exponent or 0) + 1
        first = self._bin_of(self.smallest)
        if before is not None and (first != self._first or before != self._exponent):
            filled = np.flatnonzero(self._counts)
            moved = ((filled + self._first) >> ((self._exponent or 0) - before)) - first
            self._counts = np.bincount(moved, self._counts[filled], self._counts.size).astype(np.int64)
        self._first = first


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


class Statistics:
    """Extrema, moving averages and histograms of one tensor.

    A moving average is r := f32(f32(m) * r) + f32(f32(1 - m) * batch) in float32, started by the first batch; for
    Compass's own strategies this is what it computes (docs/guides/calibration.md).

    Attributes:
        batches: number of batches seen.
        minimum: smallest value of all.
        maximum: largest value of all.
        running_minimum: moving average of each batch's smallest value.
        running_maximum: moving average of each batch's largest value.
        running_mean: moving average of each batch's mean.
        running_std: moving average of each batch's standard deviation (divisor n - 1; 1 for a single value).
        running_mad: moving average of each batch's mean absolute distance from its mean.
        running_histogram: float64[bins], moving average of each batch's histogram between its own extrema.
        histogram: of all values.
    """

    def __init__(self, options: StatisticsOptions) -> None:
        self._options = options
        self._uses = options.parsed.kind.uses
        self.batches = 0
        self.minimum = np.float32(np.inf)
        self.maximum = np.float32(-np.inf)
        self.running_minimum = self.running_maximum = np.float32(0)
        self.running_mean = self.running_std = self.running_mad = np.float32(0)
        self.running_histogram = np.zeros(options.bins)
        self.histogram = Histogram(2 * options.bins)
        self._weighted = np.zeros(2)

    def update(self, batch: Singles) -> None:
        """Take one batch of finite values of any shape, at least one value."""
        low, high = np.float32(batch.min()), np.float32(batch.max())
        self.minimum, self.maximum = min(self.minimum, low), max(self.maximum, high)
        self.running_minimum = self._average(self.running_minimum, low)
        self.running_maximum = self._average(self.running_maximum, high)
        self._add_weighted(low, high)
        if "moments" in self._uses:
            self._update_moments(batch)
        if "batch_histogram" in self._uses:
            self._update_batch_histogram(batch, low, high)
        if "histogram" in self._uses:
            self.histogram.add(batch)
        self.batches += 1

    def weighted_mean(self) -> tuple[float, float]:
        """Return sum(w_i * minimum_i) and sum(w_i * maximum_i) of the batches i, in float64.

        Raises:
            OptionError: fewer batches than weights.
        """
        weights = self._options.weights
        if weights and self.batches != len(weights):
            raise OptionError(
                f"calibration: {len(weights)} weights were given, the samples make {self.batches} batches"
            )
        low, high = self._weighted / (1 if weights else max(1, self.batches))
        return float(low), float(high)

    def _average(self, old: np.float32, new: np.float32) -> np.float32:
        if not self.batches:
            return new
        momentum = self._options.momentum
        averaged: np.float32 = np.float32(momentum) * old + np.float32(1 - momentum) * new
        return averaged

    def _add_weighted(self, low: np.float32, high: np.float32) -> None:
        weights = self._options.weights
        if weights and self.batches >= len(weights):
            raise OptionError(
                f"calibration: {len(weights)} weights were given, the samples make more batches than that"
            )
        self._weighted += np.array([low, high], np.float64) * (weights[self.batches] if weights else 1.0)

    def _update_moments(self, batch: Singles) -> None:
        values = batch.reshape(-1).astype(np.float64)
        mean = values.mean()
        std = values.std(ddof=1) if values.size > 1 else 1.0
        self.running_mean = self._average(self.running_mean, np.float32(mean))
        self.running_std = self._average(self.running_std, np.float32(std))
        self.running_mad = self._average(self.running_mad, np.float32(np.abs(values - mean).mean()))

    def _update_batch_histogram(self, batch: Singles, low: np.float32, high: np.float32) -> None:
        top = float(high) if high > low else float(low) + abs(float(low) / 2) + 1
        counts = np.histogram(batch.reshape(-1), self._options.bins, (float(low), top))[0]
        if not self.batches:
            self.running_histogram = counts.astype(np.float64)
            return
        momentum = self._options.momentum
        self.running_histogram = momentum * self.running_histogram + (1 - momentum) * counts
