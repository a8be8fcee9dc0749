"""Reciprocal square roots of whole numbers by a table of 193 entries, interpolated (docs/aipu.md, 5).

Source: Compass Optimizer, utils/math_utils.py, calculate_inverse_sqrt.
"""

from __future__ import annotations

import numpy as np

from tflq.interpreter.numerics.fixed_point import Integers

ROOT_TABLE: Integers = np.minimum(np.rint(2**15 * np.sqrt(64 / np.arange(64, 257))), 32767).astype(np.int64)
"""RNE(2^15 * sqrt(64 / i)) for i = 64..256, at most 32767."""


def reciprocal_root(values: Integers) -> Integers:
    """Return about 2^31 / sqrt(v) of v in 0..2^31 - 1; 0 counts as 1.

    v is shifted left by k until it reaches 2^30, E = 31 - k; where E is odd it is halved; its upper bits choose two
    entries of the table, the 15 below them interpolate, and the result is shifted right by (E - 1) >> 1.
    """
    lengths = np.frexp(np.maximum(values, 1).astype(np.float64))[1].astype(np.int64)
    shifts = np.clip(31 - lengths, 0, 30)
    exponents, fractions = 31 - shifts, values << shifts
    fractions = np.where(exponents & 1 == 1, fractions >> 1, fractions) >> 7
    places = np.maximum((fractions >> 16) - 64, 0)
    rest = (fractions >> 1) & 0x7FFF
    steps = ROOT_TABLE[places] - ROOT_TABLE[places + 1]
    roots: Integers = ((ROOT_TABLE[places] << 16) - ((steps * rest) << 1)) >> ((exponents - 1) >> 1)
    return roots
