"""Hybrid operators: activations turned to int8 at run time, row by row, and integer dot products.

Source: docs/rules/tflite/index.md.

Float activations turned to int8 at run time, row by row: the input side of hybrid operators
(docs/rules/tflite/index.md).

Symmetric: scale = f32(max|x| / 127), q = clamp(round(x * f32(127 / max|x|)), +-127). Asymmetric: the range, widened to
0, is cut into 255 steps; the zero point is the one of the bound with the smaller error, rounded half away from zero;
q = clamp(zero_point + round(x * f32(1 / scale)), -128, 127). Eight elements at a time the rounding is
trunc(f32(x + copysign(0.5, x))), in the rest of a row it is half away from zero: they differ next to one half.

Source: TFLite kernels/internal/optimized/neon_tensor_utils.cc (NeonSymmetricQuantizeFloats,
NeonAsymmetricQuantizeFloats), which its wheels run on x86 through SSE, also under the reference kernels.

Integer dot products of hybrid operators, as TFLite's SSE code computes them (docs/rules/tflite/index.md).

sum over k of w[o, k] * q[k] - zero_point * sum over k of w[o, k]. Sixteen columns at a time the sign of q is moved to
w, and -(-128) remains -128: a product of w = -128 and q < 0 has the wrong sign there. The remaining columns are right.
The sum of w runs in blocks of sixteen columns, too: places 2j and 2j + 1 of all blocks are added in int16, which wraps.
127 in the first column of 260 blocks adds up to 33020, which is taken for -32516.

Source: TFLite kernels/internal/optimized/sse_tensor_utils.cc (DotProdInt8x4x4), neon_tensor_utils.cc
(NeonReductionSumVector)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Integers, Singles
from tflq.graph import Array
from tflq.interpreter.accumulate import MatrixProduct, accumulate_product, prepare_product
from tflq.interpreter.numerics.fixed_point import (
    INT32_MAX,
    INT32_MIN,
    float_to_int32,
    round_half_away,
    wrap_int16,
    wrap_int32,
)

_VECTOR = 8
"""Elements that the vector loop takes at a time."""


@dataclass(frozen=True, eq=False)
class QuantizedRows:
    """Rows of integers with the scale and zero point of each: x ~ scale * (q - zero_point).

    Attributes:
        codes: int8[..., K].
        scale: float32[...].
        zero_point: int64[...].
    """

    codes: NDArray[np.int8]
    scale: Singles
    zero_point: Integers


def quantize_rows(x: Singles, asymmetric: bool) -> QuantizedRows:
    """Quantize each row of x: float32[..., K]."""
    return quantize_asymmetric(x) if asymmetric else quantize_symmetric(x)


def quantize_symmetric(x: Singles) -> QuantizedRows:
    """Quantize each row to -127..127; a row of zeros has scale 1."""
    with np.errstate(all="ignore"):
        nothing = np.float32(0)
        reach: Singles = np.maximum(x.max(axis=-1, initial=nothing), -x.min(axis=-1, initial=nothing))
        flat = reach == 0
        scale: Singles = np.where(flat, np.float32(1), reach / np.float32(127))
        inverse: Singles = np.where(flat, np.float32(0), np.float32(127) / reach)
        if np.isfinite(reach * inverse).all():  # neither is infinite, nor NaN
            codes = _rounded_within(x, inverse)
        else:
            vectors, rest = _round_vectors(x, inverse)
            wide = np.concatenate([_saturate_int32(vectors), float_to_int32(rest)], axis=-1)
            codes = np.clip(wide, -127, 127).astype(np.int8)
    return QuantizedRows(codes, scale, np.zeros(reach.shape, np.int64))


def quantize_asymmetric(x: Singles) -> QuantizedRows:
    """Quantize each row to -128..127; a row of zeros has scale 1 and zero point 0."""
    with np.errstate(all="ignore"):
        low: Singles = x.min(axis=-1, initial=np.float32(0))
        high: Singles = x.max(axis=-1, initial=np.float32(0))
        flat = low == high
        step = (high - low).astype(np.float64) / 255.0
        from_low, from_high = low / step, high / step
        exact = np.where(128.0 + np.abs(from_low) < 127.0 + np.abs(from_high), -128.0 - from_low, 127.0 - from_high)
        zero_point = np.where(flat, 0, round_half_away(np.clip(np.nan_to_num(exact), -128, 127))).astype(np.int64)
        scale: Singles = np.where(flat, 1, step).astype(np.float32)
        inverse: Singles = np.where(flat | (scale == 0), 0, 1.0 / scale.astype(np.float64)).astype(np.float32)
        vectors, rest = (_saturate_int32(part) + zero_point[..., None] for part in _round_vectors(x, inverse))
        codes = np.clip(np.concatenate([wrap_int32(vectors), rest], axis=-1), -128, 127)
    return QuantizedRows(codes.astype(np.int8), scale, zero_point)


def _rounded_within(x: Singles, inverse: Singles) -> NDArray[np.int8]:
    """Return the codes of products of at most 127 (1 + 2^-22): half more than that stays below 128."""
    product: Singles = x * inverse[..., None]
    vectors = x.shape[-1] // _VECTOR * _VECTOR
    rest = round_half_away(product[..., vectors:]) if vectors < x.shape[-1] else None
    product += np.copysign(np.float32(0.5), product)
    codes = product.astype(np.int8)
    if rest is not None:
        codes[..., vectors:] = rest
    return codes


def _round_vectors(x: Singles, inverse: Singles) -> tuple[Array, Array]:
    """Return x * inverse as integers: the elements in whole vectors, and the rest."""
    product: Singles = x * inverse[..., None]
    vectors = x.shape[-1] // _VECTOR * _VECTOR
    head = np.trunc(product[..., :vectors] + np.where(product[..., :vectors] < 0, np.float32(-0.5), np.float32(0.5)))
    return head, round_half_away(product[..., vectors:])


def _saturate_int32(x: Array) -> Integers:
    """Return int32 of integers, infinite ones, too, as vectors convert them; NaN becomes -2^31."""
    return np.clip(np.nan_to_num(x.astype(np.float64), nan=INT32_MIN), INT32_MIN, INT32_MAX).astype(np.int64)


_BLOCK = 16
LARGEST_CODE = abs(np.iinfo(np.int8).min)


@dataclass(frozen=True, eq=False)
class HybridProduct:
    """Weights packed.

    Attributes:
        prepared: Packed weights [O, K].
        row_sums: int64[O].
        lowest: Packed positions in whole blocks at which w is -128, as 0 and 1; None if there are none.
    """

    prepared: MatrixProduct
    row_sums: Integers
    lowest: MatrixProduct | None


def signed_weights(weights: Array) -> Array:
    """Return weights as the kernels read them: the bytes of uint8 ones as int8."""
    return weights.view(np.int8) if weights.dtype == np.uint8 else weights


def prepare_hybrid(weights: Array) -> HybridProduct:
    """Make weights int8[O, K] ready."""
    columns = weights.shape[1] // _BLOCK * _BLOCK
    lowest = weights[:, :columns] == np.iinfo(np.int8).min
    return HybridProduct(
        prepare_product(weights, LARGEST_CODE),
        row_sums(weights),
        prepare_product(lowest.astype(np.int8), LARGEST_CODE) if lowest.any() else None,
    )


def row_sums(weights: Array) -> Integers:
    """Return sum over k of w[..., k] as TFLite's vectors add int8: each pair of columns in int16, which wraps."""
    columns = weights.shape[-1] // _BLOCK * _BLOCK
    pairs = weights[..., :columns].reshape(*weights.shape[:-1], -1, _BLOCK // 2, 2).sum(axis=(-3, -1), dtype=np.int64)
    total: Integers = wrap_int16(pairs).sum(axis=-1) + weights[..., columns:].sum(axis=-1, dtype=np.int64)
    return total


def hybrid_product(product: HybridProduct, rows: QuantizedRows) -> Singles:
    """Return the sums, rounded to float32: quantized values int8[..., K] -> float32[..., O]."""
    total = accumulate_product(product.prepared, rows.codes)
    if product.lowest is not None:
        columns = product.lowest.columns.shape[0]
        extra = accumulate_product(product.lowest, np.minimum(rows.codes[..., :columns], 0))
        total = total.astype(np.int64) + 256 * extra.astype(np.int64)
    if rows.zero_point.any():
        total = total.astype(np.int64) - rows.zero_point[..., None] * product.row_sums
    return total.astype(np.float32)


@dataclass(frozen=True, eq=False)
class HybridMatrix:
    """Integer weights that meet quantized vectors.

    Attributes:
        product: packed weights.
        scale: Scale of the weights.
        asymmetric: whether vectors get a zero point.
    """

    product: HybridProduct
    scale: np.float32
    asymmetric: bool

    def prepare(self, x: Singles) -> object:
        """Quantize each vector."""
        return quantize_rows(x, self.asymmetric)

    def times(self, prepared: object) -> Singles:
        """Return the product in float32: f32(total) * f32(scale of the weights * scale of the vector)."""
        rows = cast(QuantizedRows, prepared)
        result: Singles = hybrid_product(self.product, rows) * (self.scale * rows.scale)[..., None]
        return result
