"""LEAKY_RELU and PRELU: int8 where the mode is symmetric, float16 where it is not (docs/tpu_mlir.md, 5).

LEAKY_RELU, symmetric: q >= 0: q; else up(q * m, s), 8-bit m about alpha. float16: x < 0: f16(f32(x) * f32(alpha)).
PRELU, symmetric: one shift for int8 slopes; r is the first with max|alpha| * 2^(r+1) >= 127, slope =
trunc(alpha * 2^r); q < 0: up(q * slope, r). float16: x < 0: f16(x * f16(alpha)).

LEAKY_RELU: q >= 0: q; else up(q * m, s). Source: docs/tpu_mlir.md, 5.
PRELU: q >= 0: q; else up(q * slope, r). Source: docs/tpu_mlir.md, 5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.tpu_mlir.curves import TableParams, run_curve, table_of
from tflq.interpreter.kernels.tpu_mlir.multiplier import Multiplier, find_multiplier, saturate, shift_half_up
from tflq.interpreter.operands.checks import require_alpha_fits, require_same_type
from tflq.interpreter.registry import Kernel
from tflq.interpreter.samples import align

MULTIPLIER_BITS = 8
_LARGEST_SLOPE = 127
_LARGEST_SHIFT = 31


@dataclass(frozen=True, eq=False)
class LeakyReluParams:
    """The params of one LEAKY_RELU.

    Attributes:
        alpha: float32.
        rescale: m and s about alpha; None in float16.
        table: None in float16.
    """

    alpha: np.float32
    rescale: Multiplier | None = None
    table: TableParams | None = None


def lower_leaky_relu(node: Node, operands: Operands) -> LeakyReluParams:
    """Decide the params of LEAKY_RELU.

    Raises:
        UnsupportedError: alpha is negative, or the types differ.
    """
    alpha = np.float32(node.attributes.real("alpha"))
    if not 0 <= alpha < np.inf:
        raise UnsupportedError(f"alpha is {alpha}; slopes from 0 are known: write a negative one as prelu or mul")
    require_same_type(operands.output(), operands.input(0))
    if operands.output().dtype is DType.FLOAT16:
        return LeakyReluParams(alpha)
    if alpha == 0:
        return LeakyReluParams(alpha, None, table_of(lambda q: np.maximum(q, 0), operands))
    found = find_multiplier(float(alpha), MULTIPLIER_BITS)
    m, s = found.multiplier[0], found.shift[0]
    table = table_of(lambda q: np.maximum(q, 0) + shift_half_up(np.minimum(q, 0) * m, s), operands)
    return LeakyReluParams(alpha, found, table)


def run_leaky_relu(params: LeakyReluParams, x: Array) -> tuple[Array, ...]:
    """Run LEAKY_RELU: int8 or float16 [S, *shape] -> the same type and shape."""
    if params.table is not None:
        return run_curve(params.table, x)
    real = np.asarray(x, np.float16)
    return (np.where(real < 0, (real.astype(np.float32) * params.alpha).astype(np.float16), real),)


@dataclass(frozen=True, eq=False)
class PReluParams:
    """The params of one PRELU.

    Attributes:
        slope: int64 or float16, the shape of alpha.
        shift: r; 0 in float16.
        dtype: of input and output.
    """

    slope: Array
    shift: int
    dtype: DType


def lower_prelu(node: Node, operands: Operands) -> PReluParams:  # noqa: ARG001
    """Decide slopes and shift.

    Raises:
        UnsupportedError: an infinite slope, all slopes 0, other types, or an unsigned input.
        GraphError: alpha does not broadcast to the input, or is computed at run time.
    """
    source, alpha = operands.input(0), np.asarray(operands.constant(1), np.float64)
    require_alpha_fits(operands)
    require_same_type(operands.output(), source)
    if not np.all(np.isfinite(alpha)):
        raise UnsupportedError("a slope is not finite; train or export the model anew")
    if source.dtype is DType.FLOAT16:
        return PReluParams(alpha.astype(np.float16), 0, source.dtype)
    if source.dtype is not DType.INT8:
        raise UnsupportedError(f"input '{source.name}' is {source.dtype.value}, never negative: remove the prelu")
    largest = float(np.abs(alpha).max(initial=0.0))
    shift = next((r for r in range(_LARGEST_SHIFT + 1) if largest * 2.0 ** (r + 1) >= _LARGEST_SLOPE), None)
    if shift is None or np.trunc(largest * 2.0**shift) > _LARGEST_SLOPE:
        raise UnsupportedError(f"the largest slope is {largest:.6g}; 2^-25 to below 128 fit 8 bits and a shift")
    slope: Integers = np.trunc(alpha * 2.0**shift).astype(np.int64)
    return PReluParams(slope, shift, source.dtype)


def run_prelu(params: PReluParams, x: Array, _alpha: Array) -> tuple[Array, ...]:
    """Run PRELU: int8 or float16 [S, *shape] -> the same type and shape."""
    aligned, slope = align(x, params.slope[None])
    if params.dtype is DType.FLOAT16:
        real = aligned.astype(np.float16, copy=False)
        with np.errstate(over="ignore"):
            return (np.where(real < 0, real * slope.astype(np.float16, copy=False), real),)
    codes = aligned.astype(np.int64)
    scaled = shift_half_up(np.minimum(codes, 0) * slope.astype(np.int64, copy=False), params.shift)
    return (saturate(np.maximum(codes, 0) + scaled, params.dtype),)


KERNELS = {
    "leaky_relu": Kernel(lower_leaky_relu, run_leaky_relu),
    "prelu": Kernel(lower_prelu, run_prelu),
}
