"""EQUAL, NOT_EQUAL, GREATER, GREATER_EQUAL, LESS and LESS_EQUAL of reals (plain/comparison.py). Equal to TFLite."""

from __future__ import annotations

from tflq.interpreter.kernels.plain.comparison import comparisons, lower_plain_comparison, run_plain_comparison

KERNELS = comparisons(lower_plain_comparison, run_plain_comparison)
