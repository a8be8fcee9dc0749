"""REDUCE_PROD over some axes, in TFLite's integer arithmetic (docs/tflite.md).

int8, int16: p = x_0 - z_i; for each further element p = MBQ64(p (x - z_i)); y = clamp(MBQ64(p) + z_o), all with the
multiplier of s_i / s_o^(1/n) in float64: each step rescales, so that p stays an int32 (cut, not clamped).
Integers without quantisation: the product in the tensor's type, which wraps.

Source: TFLite kernels/reduce.cc (PrepareProd, EvalProd), internal/reference/reduce.h (QuantizedReduceProd).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.reduction import PlainReduction, lower_plain_reduction, rows_of, run_fold
from tflq.interpreter.numerics.fixed_point import multiply_by_quantized_multiplier_64, quantize_multiplier, wrap_int32
from tflq.interpreter.operands.checks import (
    is_quantised,
    per_tensor,
    require_same_type,
    require_type,
    require_zero_points_of_zero,
)
from tflq.interpreter.operands.reduction_axes import Reduction, lower_reduction, shape_of_result

PLAIN_TYPES = (DType.INT32, DType.INT64, DType.UINT8, DType.INT8, DType.INT16)
LARGEST_SHIFT = 14
"""Beyond it MBQ64 shifts right by 0 or less, which C++ leaves undefined."""


@dataclass(frozen=True)
class Product:
    """The integers of one REDUCE_PROD.

    Attributes:
        reduction: axes and count.
        dtype: of input and output.
        input_zero_point: of the input.
        output_zero_point: of the output.
        multiplier: int32, of one step.
        shift: positive is left.
    """

    reduction: Reduction
    dtype: DType
    input_zero_point: int
    output_zero_point: int
    multiplier: int
    shift: int


def lower(node: Node, operands: Operands) -> Product | PlainReduction:
    """Decide the integers of REDUCE_PROD.

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take, or scales beyond the shifts that C++ defines.
        GraphError: a tensor without scale; an axis out of range, or computed at run time.
    """
    source, output = operands.input(0), operands.output()
    if not is_quantised(source):
        return lower_plain_reduction(node, operands, PLAIN_TYPES)
    dtype = require_type(source, (DType.INT8, DType.INT16))
    require_same_type(source, output)
    if dtype is DType.INT16:
        require_zero_points_of_zero(source, output)
    (si, zi), (so, zo) = per_tensor(source), per_tensor(output)
    reduction = lower_reduction(node, operands)
    real = float(si) / math.pow(float(so), 1.0 / max(1, reduction.count))
    multiplier, shift = quantize_multiplier(real)
    if shift > LARGEST_SHIFT:
        raise UnsupportedError(
            f"scales {si} -> {so} of {reduction.count} factors give a multiplier of {real:.6g}; below 2^14 is defined"
        )
    return Product(reduction, dtype, zi, zo, int(multiplier), int(shift))


def run(params: Product | PlainReduction, x: Array, *_axes: Array) -> tuple[Array, ...]:
    """Run REDUCE_PROD: T[S, *shape] -> T[S, *shape without the axes, or with 1 there]."""
    if isinstance(params, PlainReduction):
        return run_fold(params, x, operation=np.multiply)
    shape = shape_of_result(params.reduction, x)
    factors = rows_of(params.reduction, x).astype(np.int64) - params.input_zero_point
    if factors.size == 0:
        return (np.zeros(shape, x.dtype),)
    product = factors[0]
    for factor in factors[1:]:
        product = _rescale(params, product * factor)
    result = wrap_int32(_rescale(params, product) + params.output_zero_point)
    return (np.clip(result, params.dtype.minimum, params.dtype.maximum).astype(x.dtype).reshape(shape),)


def _rescale(params: Product, value: Array) -> Array:
    return multiply_by_quantized_multiplier_64(value, params.multiplier, params.shift)
