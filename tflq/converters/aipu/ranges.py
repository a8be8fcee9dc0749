"""From a range to scale and zero point, in float32 (docs/aipu.md, 1).

Source: Compass Optimizer, utils/quant_tool_utils.py, get_linear_quant_params_from_tensor.
"""

from __future__ import annotations

import numpy as np

from tflq.arrays import Singles
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Tensor
from tflq.interpreter.kernels.aipu.scales import affine_of

_NO_WIDTH = np.finfo(np.float32).eps


def code_span(bits: int, signed: bool, restricted: bool) -> int:
    """Return q_range: 2^bits - 1, one less in the restricted range of signed quantized values."""
    return (1 << bits) - 1 - (signed and restricted)


def symmetric_scale(largest: Singles | np.float32, bits: int, signed: bool, restricted: bool) -> Singles:
    """S = q_range / (2 * amax), unsigned q_range / amax; 1 where the range has no width."""
    span = np.float32(code_span(bits, signed, restricted))
    width = np.asarray(largest, np.float32) * np.float32(2 if signed else 1)
    s: Singles = (span / np.where(width < _NO_WIDTH, span, width)).astype(np.float32)
    return s


def type_of_range(
    low: float, high: float, bits: int, signed: bool, is_symmetric: bool, restricted: bool = False
) -> Affine:
    """Return the type of an activation; the range is widened to 0 first.

    Symmetric: `symmetric_scale`, zp = 0. Asymmetric: s = q_range / (max - min),
    zp = clamp(RNE(s * min) - qmin, -2^(bits-1) + 1, 2^(bits-1) - 1). From 16 bits on always symmetric.
    """
    minimum, maximum = min(np.float32(low), np.float32(0)), max(np.float32(high), np.float32(0))
    if is_symmetric or bits >= 16:
        s = symmetric_scale(max(abs(minimum), abs(maximum)), bits, signed, restricted)
        return affine_of(s, 0, bits, signed, signed and restricted)
    span = np.float32(code_span(bits, signed, restricted))
    width = np.float32(maximum - minimum)
    s = np.float32(span / (span if width < _NO_WIDTH or np.isnan(width) else width))
    lowest = -(1 << (bits - 1)) + restricted if signed else 0
    limit = (1 << (bits - 1)) - 1
    zp = int(np.clip(np.rint(np.float32(s * minimum)) - lowest, -limit, limit))
    return affine_of(s, zp, bits, signed, signed and restricted)


def range_of(tensor: Tensor) -> tuple[float, float]:
    """Return a tensor's range.

    Raises:
        UnsupportedError: it has none, or one that is not finite.
    """
    if tensor.range is None:
        raise UnsupportedError(f"tensor '{tensor.name}' has no range; calibrate the model or give a quantised one")
    low, high = float(np.min(tensor.range.minimum)), float(np.max(tensor.range.maximum))
    if not (np.isfinite(low) and np.isfinite(high)):
        raise UnsupportedError(f"tensor '{tensor.name}' has the range {low}..{high}; allowed are finite numbers")
    return low, high
