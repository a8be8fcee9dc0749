"""Real numbers as a Zhouyi's quantized values: q = clamp(RNE(f32(s * x) - zp)), s = 1 / scale.

Source: docs/rules/aipu/values.md#quantized-values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tflq

Array = NDArray[Any]


def type_of(levels: int, bits: int, *, signed: bool = False) -> tflq.Affine:
    """Return the symmetric type in which 1 is stored as `levels`."""
    return tflq.Affine.per_tensor(1.0 / levels, 0, bits, signed)


def encode(real: Array, affine: tflq.Affine) -> Array:
    """Return quantized values [...] of real numbers [...], in the integers that hold them."""
    kind = np.dtype(f"{'int' if affine.signed else 'uint'}{affine.bits}")
    scaled = np.asarray(real, np.float32) * _reciprocal(affine) + affine.zero_point.astype(np.float32)
    return np.clip(np.rint(scaled), affine.minimum_code, affine.maximum_code).astype(kind)


def decode(quantized: Array, affine: tflq.Affine) -> NDArray[np.float64]:
    """Return the real numbers float64[...] of quantized values [...]."""
    whole = quantized.astype(np.int64) - affine.zero_point
    return np.asarray(whole * affine.scale.astype(np.float64), np.float64)


def shared_map(maps: Sequence[tflq.Tensor]) -> tflq.Tensor:
    """Return the map of the upper median range, whose type the pooled features take (ACN-AWP-1002A, 5.1.3.4)."""
    return sorted(maps, key=lambda tensor: float(_reciprocal(tensor.affine)), reverse=True)[len(maps) // 2]


def _reciprocal(affine: tflq.Affine) -> np.float32:
    s: np.float32 = np.float32(1.0 / affine.scale[0])
    return s
