"""Sigmoid and tanh of Q12 numbers by a table of 256 entries, giving Q15 (docs/gap9.md, 11)."""

from __future__ import annotations

import numpy as np

from tflq.interpreter.numerics.fixed_point import Integers
from tflq.interpreter.numerics.sigmoid_table import SIGMOID_TABLE


def sigmoid_q15(x: Integers) -> Integers:
    """Sigmoid: k = (3|x|) >> 9, v = k >= 255 ? 65535 : T[k], result = (x > 0 ? v : 65536 - v) >> 1; no interpolation.

    Args:
        x: Q12.

    Returns:
        Q15, int64.
    """
    v = _entry(x, 9)
    return np.asarray(np.where(x > 0, v, 65536 - v) >> 1, np.int64)


def tanh_q15(x: Integers) -> Integers:
    """Hyperbolic tangent: k = (3|x|) >> 8, v as for sigmoid, result = x > 0 ? v - 32768 : 32768 - v."""
    v = _entry(x, 8)
    return np.asarray(np.where(x > 0, v - 32768, 32768 - v), np.int64)


def _entry(x: Integers, shift: int) -> Integers:
    k = (3 * np.abs(x)) >> shift
    return np.asarray(np.where(k >= 255, 65535, SIGMOID_TABLE[np.minimum(k, 255)]), np.int64)
