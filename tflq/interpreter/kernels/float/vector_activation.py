"""Fused activations of operators that call TFLite's vector functions: no clamp to finite numbers, NaN becomes a bound.

Source: TFLite kernels/internal/portable_tensor_utils.cc and tensor_utils.h (ApplyActivationToVector).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tflq.errors import UnsupportedError
from tflq.interpreter.kernels.float.eigen import tanh

Floats = NDArray[np.float32]
ACTIVATIONS = ("none", "relu", "relu_n1_to_1", "relu6", "tanh", "sign_bit")


def require_activation(name: str) -> str:
    """Return the name.

    Raises:
        UnsupportedError: TFLite has no vector function of that name.
    """
    if name not in ACTIVATIONS:
        raise UnsupportedError(f"fused activation '{name}'; known are {', '.join(ACTIVATIONS)}")
    return name


def activate(x: Floats, name: str) -> Floats:
    """Apply an activation of `ACTIVATIONS` to each row of x: float32[..., n]; max(a, b) is b where a < b, else a."""
    if name == "relu":
        return _at_least(x, 0)
    if name == "relu_n1_to_1":
        return _at_least(np.where(x > 1, np.float32(1), x), -1)
    if name == "relu6":
        return _at_least(np.where(x > 6, np.float32(6), x), 0)
    if name == "tanh":
        return tanh(x)
    if name == "sign_bit":
        return np.signbit(x).astype(np.float32)
    return x


def _at_least(x: Floats, bound: int) -> Floats:
    return np.where(x > bound, x, np.float32(bound))
