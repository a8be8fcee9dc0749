"""The one rounding of this arithmetic."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tflq.arrays import Integers
from tflq.interpreter.recording.primitive import primitive


@primitive("rounded", "{x} / 2^{shift}, half to even")
def shift_half_even(x: ArrayLike, shift: ArrayLike) -> Integers:
    """Return x * 2^-shift, ties to even: 5 / 2 -> 2, 7 / 2 -> 4, -5 / 2 -> -2.

    With half = 2^(shift-1): (x + half - 1 + the last bit of the quotient) >> shift, arithmetic.

    Args:
        x: integers.
        shift: -30..30; negative shifts multiply.

    Returns:
        int64.
    """
    value, s = np.asarray(x, np.int64), np.asarray(shift, np.int64)
    right, left = np.maximum(s, 0), np.maximum(-s, 0)
    half = (np.int64(1) << right) >> 1
    nudge = np.where(right > 0, half - 1 + ((value >> right) & 1), 0)
    return np.asarray(((value + nudge) >> right) << left, np.int64)
