"""RoundingDivideByPOT with exponents that C++ leaves undefined, as x86 computes it (docs/rules/tflite/index.md).

DIV requires exponents up to 37, comparisons of tensors with scales above 1 negative ones. The processor takes the count
of a 32-bit shift modulo 32 and the count of a 64-bit shift modulo 64; TFLite's own results follow from that.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tflq.arrays import Integers
from tflq.interpreter.numerics.fixed_point import wrap_int32
from tflq.interpreter.recording.primitive import primitive


@primitive("rounded", "RDBP({x}, {exponent}), as x86 shifts")
def rounding_divide_by_pot_x86(x: ArrayLike, exponent: ArrayLike) -> Integers:
    """RDBP for any exponent: as `rounding_divide_by_pot` in 0..31, beyond as x86 shifts.

    mask = int32(int64(1 << (exponent mod 64)) - 1); (x >> (exponent mod 32)) + ((x & mask) > (mask >> 1) + (x < 0)).

    Args:
        x: int32 values.
        exponent: -64..63.

    Source: gemmlowp fixedpoint/fixedpoint.h, RoundingDivideByPOT.
    """
    value, e = np.asarray(x, np.int64), np.asarray(exponent, np.int64)
    wide = np.left_shift(np.uint64(1), (e & 63).astype(np.uint64)) - np.uint64(1)
    mask = wrap_int32(wide.view(np.int64))
    threshold = (mask >> 1) + (value < 0)
    return np.asarray((value >> (e & 31)) + ((value & mask) > threshold), np.int64)
