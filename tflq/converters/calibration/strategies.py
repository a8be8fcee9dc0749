"""From statistics to a range: one function a strategy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tflq.converters.calibration.options import StatisticsOptions
from tflq.converters.calibration.statistics import Statistics, best_window

Bounds = tuple[float, float]
Rule = Callable[[Statistics, StatisticsOptions], Bounds]

# Clipping in units of the mean absolute deviation and of the standard deviation, by bits: the minima of ACIQ's expected
# squared error, to two decimals (Banner et al., arXiv:1810.05723).
LAPLACE_ALPHA = {2: 2.83, 3: 3.89, 4: 5.03, 5: 6.2, 6: 7.41, 7: 8.64, 8: 9.89, 9: 11.16, 10: 12.44, 11: 13.73}
LAPLACE_ALPHA |= {12: 15.02, 13: 16.33, 14: 17.64, 15: 18.95, 16: 20.27}
GAUSS_ALPHA = {2: 1.71, 3: 2.15, 4: 2.55, 5: 2.93, 6: 3.28, 7: 3.61, 8: 3.92, 9: 4.21, 10: 4.49, 11: 4.75, 12: 4.99}
GAUSS_ALPHA |= {13: 5.24, 14: 5.47, 15: 5.69, 16: 5.89}
MSE_STEPS = 128
"""Ranges that `mse` tries: fractions 1/128 to 1 of the extrema."""


def bounds_of(statistics: Statistics, options: StatisticsOptions) -> Bounds:
    """Return the range that a strategy chooses, widened to hold zero where the options ask for it.

    Raises:
        OptionError: weights that do not fit the batches.
    """
    low, high = _RULES[options.parsed.name](statistics, options)
    return (min(low, 0.0), max(high, 0.0)) if options.include_zero else (low, high)


def squared_error(
    values: NDArray[np.float64], counts: NDArray[np.int64], bounds: Bounds, bits: int, symmetric: bool
) -> float:
    """Return sum(count * (x - fakequant(x))^2) for quantized values of this width, with ties to even.

    Symmetric: scale = max|bound| / (2^(bits-1) - 1), quantized values down to -(2^(bits-1) - 1). Otherwise
    scale = (high - low) / (2^bits - 1) and quantized values stand for low + scale * k.
    """
    low, high = bounds
    if symmetric:
        high = max(-low, high)
        low = -high
    levels = (1 << bits) - (2 if symmetric else 1)
    scale = (high - low) / levels
    if scale <= 0:
        return float(np.sum(counts * values * values))
    kept = low + scale * np.clip(np.rint((values - low) / scale), 0, levels)
    return float(np.sum(counts * (values - kept) ** 2))


def _extrema(s: Statistics, _: StatisticsOptions) -> Bounds:
    return float(s.minimum), float(s.maximum)


def _mean(s: Statistics, _: StatisticsOptions) -> Bounds:
    return float(s.running_minimum), float(s.running_maximum)


def _weighted_mean(s: Statistics, _: StatisticsOptions) -> Bounds:
    return s.weighted_mean()


def _std(s: Statistics, options: StatisticsOptions) -> Bounds:
    reach = np.float32(options.parsed.number) * s.running_std
    return float(max(s.running_minimum, s.running_mean - reach)), float(min(s.running_maximum, s.running_mean + reach))


def _kld(s: Statistics, options: StatisticsOptions) -> Bounds:
    # Zero has a quantized value of its own; the spike that a rectifier leaves there would make every wider window look
    # worse.
    counts, low = s.histogram.trimmed(with_zeros=False)
    high = low + counts.size * s.histogram.width
    one_sided = low >= 0 or high <= s.histogram.width
    codes = 1 << (options.bits - (options.symmetric and one_sided))
    found = best_window(counts.astype(np.float64), low, high, codes, int(options.parsed.number), bare=True)
    return max(found[0], float(s.minimum)), min(found[1], float(s.maximum))


def _compass_kld(s: Statistics, options: StatisticsOptions) -> Bounds:
    low, high = float(s.running_minimum), float(s.running_maximum)
    # Compass takes two candidates at least.
    candidates = max(2, int(options.parsed.number))
    return best_window(s.running_histogram, low, high, 1 << options.bits, candidates, bare=False)


def _percentile(s: Statistics, options: StatisticsOptions) -> Bounds:
    outside = (100.0 - options.parsed.number) / 200.0
    return s.histogram.quantile(outside), s.histogram.quantile(1.0 - outside)


def _compass_percentile(s: Statistics, options: StatisticsOptions) -> Bounds:
    share = np.float32(options.parsed.number)
    return float(s.minimum * share), float(s.maximum * share)


def _aciq_laplace(s: Statistics, options: StatisticsOptions) -> Bounds:
    return _aciq(s, options, np.float32(LAPLACE_ALPHA[options.bits]) * s.running_mad)


def _aciq_gauss(s: Statistics, options: StatisticsOptions) -> Bounds:
    return _aciq(s, options, np.float32(GAUSS_ALPHA[options.bits]) * s.running_std)


def _aciq(s: Statistics, options: StatisticsOptions, alpha: np.float32) -> Bounds:
    """Symmetric: +-(|mean| + R * alpha). Otherwise from max(minimum, mean - alpha), 2 * R * alpha wide."""
    share = np.float32(options.parsed.number)
    if options.symmetric:
        reach = float(abs(s.running_mean) + alpha * share)
        return -reach, reach
    low = max(s.running_minimum, s.running_mean - alpha)
    return float(low), float(low + np.float32(2) * alpha * share)


def _mse(s: Statistics, options: StatisticsOptions) -> Bounds:
    values, counts = s.histogram.points()
    low, high = float(min(s.minimum, 0)), float(max(s.maximum, 0))
    fractions = np.arange(1, MSE_STEPS + 1) / MSE_STEPS
    errors = [squared_error(values, counts, (f * low, f * high), options.bits, options.symmetric) for f in fractions]
    best = float(fractions[int(np.argmin(errors))])
    return best * low, best * high


_RULES: dict[str, Rule] = {
    "extrema": _extrema,
    "mean": _mean,
    "weighted-mean": _weighted_mean,
    "std": _std,
    "kld": _kld,
    "compass-kld": _compass_kld,
    "percentile": _percentile,
    "compass-percentile": _compass_percentile,
    "aciq-laplace": _aciq_laplace,
    "aciq-gauss": _aciq_gauss,
    "mse": _mse,
}
