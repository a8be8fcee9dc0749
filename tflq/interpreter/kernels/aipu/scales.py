"""Compass's side of a quantization: x_q = clamp(RNE(s * x - zp)), s = 1 / scale, zp = -zero point, all in float32.

The graph keeps scale = 1 / s in float64; rounding 1 / scale to float32 returns s unchanged.
"""

from __future__ import annotations

import numpy as np

from tflq.arrays import Integers, Singles
from tflq.errors import GraphError
from tflq.graph import Affine, Array, Operands, Tensor


def affine_of(s: Singles | np.float32, zp: int = 0, bits: int = 8, signed: bool = True, narrow: bool = False) -> Affine:
    """Return the type of Compass's numbers; several scales are stored along axis 0."""
    scale = 1.0 / np.atleast_1d(np.asarray(s, np.float32)).astype(np.float64)
    axis = 0 if scale.size > 1 else None
    return Affine(scale, np.full(scale.shape, -zp, np.int64), axis, bits, signed, narrow)


def reciprocal(affine: Affine) -> Singles:
    """Return s, float32[1] or [C]."""
    s: Singles = (1.0 / affine.scale).astype(np.float32)
    return s


def scale_of(tensor: Tensor) -> np.float32:
    """Return s of a tensor; 1 if it has no quantization (indices, truth values)."""
    s: np.float32 = np.float32(1)
    if isinstance(tensor.quantization, Affine):
        s = reciprocal(tensor.affine)[0]
    return s


def offset_of(tensor: Tensor) -> int:
    """Return zp of a tensor; 0 if it has no quantization."""
    return -int(tensor.affine.zero_point[0]) if isinstance(tensor.quantization, Affine) else 0


def bits_of(tensor: Tensor) -> int:
    """Return the width of a tensor's quantized values."""
    return tensor.affine.bits if isinstance(tensor.quantization, Affine) else tensor.dtype.bits


def is_wide(tensor: Tensor) -> bool:
    """Whether a tensor's quantized values have more than 8 bits: 12 or 16, or 32 of integers."""
    return bits_of(tensor) > 8


def is_signed(tensor: Tensor) -> bool:
    """Whether a tensor's quantized values are signed."""
    return tensor.affine.signed if isinstance(tensor.quantization, Affine) else tensor.dtype.is_signed


def code_limits(tensor: Tensor) -> tuple[int, int]:
    """Return the smallest and the largest quantized value of a tensor."""
    if isinstance(tensor.quantization, Affine):
        return tensor.affine.minimum_code, tensor.affine.maximum_code
    return tensor.dtype.minimum, tensor.dtype.maximum


def type_limits(tensor: Tensor) -> tuple[int, int]:
    """Return the smallest and the largest value of a tensor's element type, also of 4 and 12 bits."""
    bits = bits_of(tensor)
    if not is_signed(tensor):
        return 0, (1 << bits) - 1
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def encode(real: Array, affine: Affine) -> Integers:
    """Quantize floating-point values: clamp(RNE(f32(s * x) - zp)); infinities reach the limits, NaN becomes 0.

    Source: Compass Optimizer, utils/quant_tool_utils.py, linear_quantize_clip.
    """
    x = np.asarray(real, np.float32)
    shape = (-1,) + (1,) * (x.ndim - 1) if affine.is_per_axis else (1,) * max(x.ndim, 1)
    s, zero_point = reciprocal(affine).reshape(shape), affine.zero_point.reshape(shape)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = (x * s).astype(np.float32) + zero_point.astype(np.float32)
    codes = np.clip(np.rint(scaled), affine.minimum_code, affine.maximum_code).astype(np.float64)
    whole: Integers = np.where(np.isnan(codes), 0, np.minimum(codes, affine.maximum_code)).astype(np.int64)
    return whole.reshape(x.shape)


def is_plain(tensor: Tensor) -> bool:
    """Whether a tensor contains plain integers: indices, counts, truth values; s = 1 and zp = 0."""
    return float(scale_of(tensor)) == 1.0 and offset_of(tensor) == 0


def signed_width(tensor: Tensor) -> int:
    """Return the bits that x + zp of a tensor needs, its sign included."""
    low, high = (code + offset_of(tensor) for code in code_limits(tensor))
    return next(b for b in range(1, 64) if low >= -(1 << (b - 1)) and high < 1 << (b - 1))


def magnitude_of(tensor: Tensor) -> int:
    """Return the largest |code| of a tensor's element type."""
    low, high = type_limits(tensor)
    return max(-low, high)


def constant_named(operands: Operands, key: str) -> Tensor | None:
    """Return the constant of a layer by its key; None if it has none."""
    matches = (t for t in operands.inputs if t is not None and t.is_constant and t.name.endswith(f"/{key}"))
    return next(matches, None)


def required_constant(operands: Operands, key: str) -> Tensor:
    """Return a constant of a layer by its key.

    Raises:
        GraphError: the layer has no such constant.
    """
    constant = constant_named(operands, key)
    if constant is None:
        raise GraphError(f"{operands.where}: the constant '{key}' is missing, the layer needs it")
    return constant


def constant_codes(operands: Operands, key: str) -> Integers:
    """Return the quantized values of a constant of a layer; raises as `required_constant`."""
    return np.asarray(required_constant(operands, key).data, np.int64)
