"""DEQUANTIZE: integers to float32 (docs/tflite.md).

Per tensor: y = f32(f64(s) * (x - z)), one rounding. Per channel: y = f32(s_c * f32(x - z_c)), a product of float32.
From 8 bits per tensor that is a table. int2, int4, uint4, int8, uint8, int16.

Source: TFLite kernels/dequantize.h, internal/reference/dequantize.h and integer_ops/dequantize.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers, Reals, Singles
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.numerics.lookup_tables import Table, is_used, look_up, make_table
from tflq.interpreter.operands.checks import EIGHT_BITS, per_tensor, require_type

NARROW = (DType.INT2, DType.INT4, DType.UINT4)


@dataclass(frozen=True, eq=False)
class Dequantize:
    """What DEQUANTIZE needs.

    Attributes:
        scale: float64[1] per tensor; float32 per channel, shaped to broadcast against [S, *shape].
        zero_point: int64, shaped likewise.
        table: float32[256] by the raw bits of the code; None where there is none.
    """

    scale: Reals
    zero_point: Integers
    table: Table | None = None


def lower(node: Node, operands: Operands) -> Dequantize:  # noqa: ARG001
    """Decide scale and table.

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take, or int16 with a zero point.
        GraphError: a tensor without scale.
    """
    source = operands.input(0)
    require_type(operands.output(), (DType.FLOAT32,))
    dtype = require_type(source, (*NARROW, *EIGHT_BITS, DType.INT16))
    if source.affine.is_per_axis:
        return _per_channel(source)
    scale, zero_point = per_tensor(source)
    if dtype is DType.INT16 and zero_point:
        raise UnsupportedError(f"tensor '{source.name}' (int16) has zero point {zero_point}; the kernel takes 0 only")
    params = Dequantize(np.array([scale], np.float64), np.array([zero_point], np.int64))
    if dtype not in EIGHT_BITS:
        return params
    table = make_table(lambda code: _evaluate(params, code), dtype, DType.FLOAT32)
    return Dequantize(params.scale, params.zero_point, table)


def run(params: Dequantize, x: Array) -> tuple[Array, ...]:
    """Run DEQUANTIZE: T[S, *shape] -> float32[S, *shape]."""
    if is_used(params.table):
        return (look_up(params.table, x),)
    return (_evaluate(params, x.astype(np.int64)),)


def _evaluate(params: Dequantize, code: Integers) -> Singles:
    difference = (code - params.zero_point).astype(params.scale.dtype)
    return np.asarray(difference * params.scale, np.float32)


def _per_channel(source: Tensor) -> Dequantize:
    affine, axis = source.affine, source.affine.axis
    require_type(source, (*NARROW, *EIGHT_BITS))
    if axis is None or not 0 <= axis < len(source.shape) or source.shape[axis] != affine.scale.size:
        raise GraphError(
            f"tensor '{source.name}' of shape {source.shape} has {affine.scale.size} scales along axis {axis}; "
            f"their number must be the size of that axis"
        )
    scales, zero_points = affine.along(len(source.shape))
    return Dequantize(scales.astype(np.float32), zero_points.astype(np.int64))
