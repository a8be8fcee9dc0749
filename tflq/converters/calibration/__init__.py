"""Calibration: real ranges of tensors from samples, from a file, or from a quantization.

Source: docs/guides/calibration.md.
"""

from __future__ import annotations

from tflq.converters.calibration.calibrate import CalibrationSamples, calibrate, samples_of
from tflq.converters.calibration.options import STRATEGIES, StatisticsOptions, Strategy, parse_strategy
from tflq.converters.calibration.ranges import parse_ranges, ranges_from_quantization, with_ranges

__all__ = [
    "STRATEGIES",
    "CalibrationSamples",
    "StatisticsOptions",
    "Strategy",
    "calibrate",
    "parse_ranges",
    "parse_strategy",
    "ranges_from_quantization",
    "samples_of",
    "with_ranges",
]
