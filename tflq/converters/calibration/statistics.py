"""Statistics of one tensor, updated batch by batch."""

from __future__ import annotations

import numpy as np

from tflq.arrays import Singles
from tflq.converters.calibration.histogram import Histogram
from tflq.converters.calibration.options import StatisticsOptions
from tflq.errors import OptionError


class Statistics:
    """Extrema, moving averages and histograms of one tensor.

    A moving average is r := f32(f32(m) * r) + f32(f32(1 - m) * batch) in float32, started by the first batch; for
    Compass's own strategies this is what it computes (docs/calibration.md).

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
