"""The two roundings of GAP9's tools: from floating-point values to quantized values, and of accumulators by shifting.

Source: docs/rules/gap9/quantization.md#ranges.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from tflq.arrays import Integers, Reals
from tflq.graph import Affine, DType, Node, Tensor
from tflq.interpreter.numerics.fixed_point import wrap_int32
from tflq.interpreter.recording.primitive import primitive


@primitive("rounded", "floor({x} + 0.5)")
def round_half_up(x: ArrayLike) -> Reals:
    """rnd(x) = floor(x + 0.5), in the precision of x; ties go up (-0.5 -> 0, 0.5 -> 1)."""
    return np.asarray(np.floor(np.asarray(x) + 0.5))


def wrapped_norm(x: ArrayLike, shift: ArrayLike) -> Integers:
    """`norm` in int32, as NNTool computes it: x and x + 2^(n-1) keep their low 32 bits."""
    n = np.asarray(shift, np.int64)
    return np.asarray(wrap_int32(wrap_int32(x) + ((np.int64(1) << n) >> 1)) >> n, np.int64)


def quantize(real: ArrayLike, affine: Affine, rank: int | None = None) -> Integers:
    """Quantize floating-point values: clip(rnd(x / scale) + zero_point, qmin, qmax).

    Args:
        real: floating-point numbers; the quotient has the precision of numpy's promotion.
        affine: per tensor, or along its axis.
        rank: rank of the tensor that a per-axis scale is shaped for; None for the rank of `real`.
    """
    x = np.asarray(real)
    scale, zero_point = affine.along(x.ndim if rank is None else rank)
    codes = round_half_up(x / scale) + zero_point
    return np.asarray(np.clip(codes, affine.minimum_code, affine.maximum_code), np.int64)


def dequantize(codes: ArrayLike, affine: Affine) -> Reals:
    """Dequantize quantized values: (q - zero_point) * scale, float64."""
    q = np.asarray(codes, np.int64)
    scale, zero_point = affine.along(q.ndim)
    return np.asarray((q - zero_point) * scale)


def same_scales(a: Reals, b: Reals) -> bool:
    """Whether NNTool takes scales, [O] or [1], as the same: |S_a - S_b| <= 1e-8 + 1e-5 S_b in all channels.

    The first term is absolute: of scales below 1e-8 any two are the same.
    """
    return np.allclose(a, b, rtol=1e-5, atol=1e-8)


def code_type(affine: Affine) -> DType:
    """Return the element type of the quantized values of an affine quantization: uint8, int16, int32, ..."""
    width = 8 if affine.bits <= 8 else affine.bits
    return DType(f"{'int' if affine.signed else 'uint'}{width}")


@dataclass(frozen=True)
class Stored:
    """How results are stored.

    Attributes:
        minimum: smallest quantized value.
        maximum: largest quantized value.
        dtype: Storage type of the array.
    """

    minimum: int
    maximum: int
    dtype: np.dtype[np.generic]

    @staticmethod
    def of_output(output: Tensor) -> Stored:
        """Return how a tensor is stored."""
        return Stored(output.affine.minimum_code, output.affine.maximum_code, output.dtype.storage)

    def clip(self, x: ArrayLike) -> Integers:
        """Clip to the quantized values."""
        return np.clip(np.asarray(x, np.int64), self.minimum, self.maximum)


def shift_between(source: Affine, target: Affine) -> int:
    """Return the bits by which NNTool shifts between two widths, however their scales differ; 0: it multiplies.

    Both are signed with zero point 0, and |S_8 - 256 S_16| <= 1e-4, which it counts as one scale
    (docs/differences/gap9.md).
    """
    bits = target.bits - source.bits
    narrow, wide = (source, target) if bits > 0 else (target, source)
    is_near = abs(float(narrow.scale[0]) - 2.0 ** abs(bits) * float(wide.scale[0])) <= 1e-4
    plain = all(a.signed and not a.zero_point.any() for a in (source, target))
    return bits if plain and is_near else 0


def taken_for(node: Node, affine: Affine) -> Affine:
    """Return the type that NNTool's readers take a result for (docs/differences/gap9.md), else `affine`."""
    if "outside_scale" not in node.attributes:
        return affine
    scale, zero_point = node.attributes.real("outside_scale"), node.attributes.integer("outside_zero_point")
    return replace(affine, scale=np.array([scale]), zero_point=np.array([zero_point], np.int64))
