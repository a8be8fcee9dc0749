"""PRELU: int8 slopes with one shift where the mode is symmetric, float16 where it is not (docs/tpu_mlir.md, 5).

symmetric: r is the first with max|alpha| * 2^(r+1) >= 127, slope = trunc(alpha * 2^r); q < 0: up(q * slope, r).
float16: x < 0: f16(x * f16(alpha)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.tpu_mlir.rounding import saturate, shift_half_up
from tflq.interpreter.numerics.fixed_point import Integers
from tflq.interpreter.operands.checks import require_same_type
from tflq.interpreter.operands.prelu import require_alpha_fits
from tflq.interpreter.samples import align

_LARGEST_SLOPE = 127
_LARGEST_SHIFT = 31


@dataclass(frozen=True, eq=False)
class PReluParams:
    """The numbers of one PRELU.

    Attributes:
        slope: int64 or float16, the shape of alpha.
        shift: r; 0 in float16.
        dtype: of input and output.
    """

    slope: Array
    shift: int
    dtype: DType


def lower(node: Node, operands: Operands) -> PReluParams:  # noqa: ARG001
    """Decide slopes and shift.

    Raises:
        UnsupportedError: a negative or infinite slope, all slopes 0, other types, or an unsigned input.
        GraphError: alpha does not broadcast to the input, or is computed at run time.
    """
    source, alpha = operands.input(0), np.asarray(operands.constant(1), np.float64)
    require_alpha_fits(operands)
    require_same_type(operands.output(), source)
    if not np.all((alpha >= 0) & np.isfinite(alpha)):
        raise UnsupportedError("a slope is negative or not finite; what the tool does there is not known")
    if source.dtype is DType.FLOAT16:
        return PReluParams(alpha.astype(np.float16), 0, source.dtype)
    if source.dtype is not DType.INT8:
        raise UnsupportedError(f"input '{source.name}' is {source.dtype.value}, never negative: remove the prelu")
    largest = float(alpha.max(initial=0.0))
    shift = next((r for r in range(_LARGEST_SHIFT + 1) if largest * 2.0 ** (r + 1) >= _LARGEST_SLOPE), None)
    if shift is None or np.trunc(largest * 2.0**shift) > _LARGEST_SLOPE:
        raise UnsupportedError(f"the largest slope is {largest:.6g}; 2^-25 to below 128 fit 8 bits and a shift")
    slope: Integers = np.trunc(alpha * 2.0**shift).astype(np.int64)
    return PReluParams(slope, shift, source.dtype)


def run(params: PReluParams, x: Array, _alpha: Array) -> tuple[Array, ...]:
    """Run PRELU: int8 or float16 [S, *shape] -> the same type and shape."""
    aligned, slope = align(x, params.slope[None])
    if params.dtype is DType.FLOAT16:
        real = aligned.astype(np.float16, copy=False)
        with np.errstate(over="ignore"):
            return (np.where(real < 0, real * slope.astype(np.float16, copy=False), real),)
    codes = aligned.astype(np.int64)
    scaled = shift_half_up(codes * slope.astype(np.int64, copy=False), params.shift)
    return (saturate(np.where(codes < 0, scaled, codes), params.dtype),)
