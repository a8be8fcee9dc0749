"""Constants as integers: weights, biases and the operands of pairs.

Source: docs/rules/tpu_mlir.md, docs/rules/tpu_mlir_operators.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.arrays import Doubles, Integers, Singles
from tflq.converters.passes.rewrite import channel_maxima
from tflq.errors import UnsupportedError
from tflq.graph import Affine, DType
from tflq.interpreter.numerics.fixed_point import INT32_MAX, INT32_MIN, round_half_away

LEAST_SCALE = 1e-5
LARGEST_EXACT_POWER = 6


@dataclass(frozen=True, eq=False)
class FilterConstants:
    """The params of one filter.

    Attributes:
        codes: weights, in the shape of the reals.
        dtype: int8, or uint8 where no weight of the whole filter is negative.
        scale: float64[O], or float64[1] for a fully connected layer.
        bias: int64[O], input zero point folded in.
        input_scale: Scale of the input that the bias and the multipliers use.
    """

    codes: Integers
    dtype: DType
    scale: Doubles
    bias: Integers
    input_scale: float


def convolution_constants(weights: Singles, bias: Singles | None, axis: int, x: Affine) -> FilterConstants:
    """Quantize a convolution: s_w[o] = max(f32(max|w| / 127), 1e-5), 255 in place of 127 for unsigned weights.

    Weights are unsigned where none of the whole filter is negative and the layer has no bias.

    An input with S_x <= 1e-5 counts with another scale in the bias and the multipliers: max|b| / 127, or max|w| / 127
    if max|b| <= 1e-5. So the bias fits int32, and the products of the input count too much.

    Where all weights are integers after multiplication by one 2^k, k = 0..6, and fit the type, s_w = 2^-k instead.

    Args:
        weights: float32, any shape.
        bias: float32[O].
        axis: of the output channels.
        x: type of the input.

    Raises:
        UnsupportedError: weights or biases that are not finite, or a bias beyond int32.
    """
    _require_finite(weights, bias)
    dtype = DType.UINT8 if np.all(weights >= 0) and bias is None else DType.INT8
    first = np.moveaxis(weights, axis, 0)
    flat = first.reshape(first.shape[0], -1)
    scale = _exact_scale(flat, dtype)
    if scale is None:
        steps = np.float32(dtype.maximum)
        largest = channel_maxima(weights, axis) / steps
        scale = np.maximum(largest.astype(np.float64), LEAST_SCALE)
    return _quantized(weights, bias, axis, scale, dtype, replace(x, scale=np.array([_counted_scale(weights, bias, x)])))


def is_nearly_zero(x: Affine) -> bool:
    """Return True if a convolution replaces the scale of its input because it is too small."""
    return float(x.scale[0]) <= LEAST_SCALE


def _counted_scale(weights: Singles, bias: Singles | None, x: Affine) -> float:
    if not is_nearly_zero(x):
        return float(x.scale[0])
    largest = 0.0 if bias is None else float(np.abs(bias).max(initial=0))
    largest = largest if largest > LEAST_SCALE else float(np.abs(weights).max(initial=0))
    return largest / DType.INT8.maximum if largest else float(x.scale[0])


def product_constants(weights: Singles, bias: Singles | None, x: Affine) -> FilterConstants:
    """Quantize a fully connected layer: one scale max|w| / 127 in float64, always int8.

    Raises:
        UnsupportedError: as `convolution_constants`, or weights that are all 0.
    """
    _require_finite(weights, bias)
    largest = float(np.abs(weights).max(initial=0))
    if largest == 0:
        raise UnsupportedError("all weights are 0, so that they have no scale; remove the layer")
    return _quantized(weights, bias, 0, np.full(1, largest / DType.INT8.maximum), DType.INT8, x)


def operand_constants(values: Singles, scale: float | None = None) -> tuple[Integers, Affine]:
    """Quantize a constant beside an activation: S = max|c| / 127, or a given scale; q = rha(c / S), clamped.

    A constant without negative numbers is uint8, and 255 takes the place of 127.

    Raises:
        UnsupportedError: values that are not finite.
    """
    _require_finite(values, None)
    dtype = DType.INT8 if np.any(values < 0) else DType.UINT8
    found = float(np.abs(values).max(initial=0)) / dtype.maximum if scale is None else scale
    codes = np.clip(round_half_away(values.astype(np.float64) / found), dtype.minimum, dtype.maximum)
    return codes.astype(np.int64), Affine.per_tensor(np.float64(found), 0, 8, signed=dtype is DType.INT8)


def _exact_scale(flat: Singles, dtype: DType) -> Doubles | None:
    for power in range(LARGEST_EXACT_POWER + 1):
        whole = flat.astype(np.float64) * 2.0**power
        if np.all(whole == np.rint(whole)) and np.all((whole >= dtype.minimum) & (whole <= dtype.maximum)):
            return np.full(flat.shape[0], 2.0**-power)
    return None


def _quantized(
    weights: Singles, bias: Singles | None, axis: int, scale: Doubles, dtype: DType, x: Affine
) -> FilterConstants:
    """q_w = round half away(w / s_w), clamped; bias = round half away(b / (s_w * Sx) - Zx * sum(q_w))."""
    shape = [1] * weights.ndim
    shape[axis] = scale.size
    real = weights.astype(np.float64) / scale.reshape(shape)
    codes = np.clip(round_half_away(real), dtype.minimum, dtype.maximum).astype(np.int64)
    sums = np.moveaxis(codes, axis, 0).reshape(codes.shape[axis], -1).sum(axis=1)
    given = np.zeros(sums.shape) if bias is None else bias.astype(np.float64).reshape(-1)
    stored = round_half_away(given / (scale * float(x.scale[0])) - int(x.zero_point[0]) * sums)
    bad = (stored < INT32_MIN) | (stored > INT32_MAX)
    if bad.any():
        raise UnsupportedError(
            f"channel {int(np.argmax(bad))}: the bias becomes {stored[bad][0]:.0f}, beyond int32; widen the range of "
            f"the input"
        )
    return FilterConstants(codes, dtype, scale, stored.astype(np.int64), float(x.scale[0]))


def _require_finite(weights: Singles, bias: Singles | None) -> None:
    for what, values in (("weights", weights), ("biases", bias)):
        if values is not None and not np.all(np.isfinite(values)):
            count = int(np.count_nonzero(~np.isfinite(values)))
            raise UnsupportedError(f"{count} {what} are infinite or not a number; train or export the model anew")
