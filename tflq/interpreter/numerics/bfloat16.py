"""bfloat16: the upper half of a float32, kept in uint16 because numpy has no such type (docs/rules/tflite/index.md)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array, DType


def widen(x: Array) -> NDArray[np.float32]:
    """Return the float32 value of a bfloat16; exact.

    Args:
        x: uint16, any shape.
    """
    return np.asarray((x.astype(np.uint32) << np.uint32(16)).view(np.float32))


def narrow(x: Array) -> NDArray[np.uint16]:
    """Round float32 to bfloat16, ties to even; every NaN becomes the quiet one of its sign, 0x7FC0 or 0xFFC0.

    Args:
        x: numbers, taken as float32.

    Source: Eigen Core/arch/Default/BFloat16.h, float_to_bfloat16_rtne<false>.
    """
    real = x.astype(np.float32)
    raw = real.view(np.uint32)
    rounded = (raw + (((raw >> np.uint32(16)) & np.uint32(1)) + np.uint32(0x7FFF))) >> np.uint32(16)
    quiet = np.where(np.signbit(real), np.uint32(0xFFC0), np.uint32(0x7FC0))
    return np.asarray(np.where(np.isnan(real), quiet, rounded), np.uint16)


def numbers(dtype: DType, x: Array) -> Array:
    """Return x as numpy can compare it: bfloat16 widened, everything else unchanged."""
    return widen(x) if dtype is DType.BFLOAT16 else x


def by_number(dtype: DType, x: Array, function: np.ufunc) -> Array:
    """Apply a function with results that are exact in every float type; bfloat16 by way of float32."""
    if dtype is DType.BFLOAT16:
        return narrow(function(widen(x)))
    return np.asarray(function(x))


def to_float32(dtype: DType, x: Array) -> NDArray[np.float32]:
    """Return the float32 value of float32, float16 or bfloat16; exact."""
    return widen(x) if dtype is DType.BFLOAT16 else x.astype(np.float32, copy=False)


def from_float32(dtype: DType, x: NDArray[np.float32]) -> Array:
    """Round float32 to float32, float16 or bfloat16, ties to even."""
    return narrow(x) if dtype is DType.BFLOAT16 else x.astype(dtype.storage, copy=False)
