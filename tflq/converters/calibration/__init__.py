"""Calibration: real ranges of tensors from samples, from a file, or from a quantisation (docs/calibration.md)."""

from __future__ import annotations

from tflq.converters.calibration.calibrate import CalibrationSamples, calibrate, samples_of
from tflq.converters.calibration.given import parse_ranges, with_ranges
from tflq.converters.calibration.options import STRATEGIES, StatisticsOptions, Strategy, parse_strategy
from tflq.converters.calibration.stated import ranges_from_quantisation

__all__ = [
    "STRATEGIES",
    "CalibrationSamples",
    "StatisticsOptions",
    "Strategy",
    "calibrate",
    "parse_ranges",
    "parse_strategy",
    "ranges_from_quantisation",
    "samples_of",
    "with_ranges",
]
