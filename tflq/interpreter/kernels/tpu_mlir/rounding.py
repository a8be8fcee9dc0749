"""The roundings of BM1684X: of products by shifting, half up or half away from zero (docs/tpu_mlir.md, 2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tflq.arrays import Integers
from tflq.graph import DType
from tflq.interpreter.recording.primitive import primitive


@primitive("rounded", "{x} / 2^{shift}, half up")
def shift_half_up(x: ArrayLike, shift: ArrayLike) -> Integers:
    """Return x * 2^-shift, ties up: s > 0: (x + 2^(s-1)) >> s, arithmetic; s = 0: x; s < 0: x << -s.

    Args:
        x: integers; with a negative shift the result must stay below 2^63.
        shift: -32..62; operands broadcast.

    Returns:
        int64.
    """
    value, s = np.asarray(x, np.int64), np.asarray(shift, np.int64)
    right, left = np.maximum(s, 0), np.maximum(-s, 0)
    half = (np.int64(1) << right) >> 1
    return np.asarray(((value + half) >> right) << left, np.int64)


@primitive("rounded", "{x} / 2^{shift}, half away from 0")
def shift_half_away(x: ArrayLike, shift: ArrayLike) -> Integers:
    """As `shift_half_up`, ties away from zero: sign(x) * shift_half_up(|x|)."""
    value = np.asarray(x, np.int64)
    return np.asarray(np.sign(value) * shift_half_up(np.abs(value), shift), np.int64)


def saturate(x: ArrayLike, dtype: DType) -> NDArray[np.generic]:
    """Clip integers or rounded reals to the quantized values of a type, and store them in it. NaN becomes 0."""
    clipped = np.clip(np.nan_to_num(np.asarray(x), nan=0.0), dtype.minimum, dtype.maximum)
    return np.asarray(clipped.astype(dtype.storage))
