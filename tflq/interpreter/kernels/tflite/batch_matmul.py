"""BATCH_MATMUL in TFLite's integer arithmetic (docs/tflite.md).

total = sum over k of (x - zx) * (y - zy). int8: an int32 that wraps, y = clamp(MBQ(total) + zo); with an int32 output
the sum of x * y as it is, zero points ignored. int16 with int16 or int8: an int64 and MBQ64. The real multiplier is
f32(sx sy) / so, the quotient in float64. Of weights with several scales TFLite reads the one scale that older files
have instead, 0 here: every result is the output's zero point. float32 with int8: hybrid_batch_matmul.py.

Source: TFLite kernels/batch_matmul.cc, internal/reference/batch_matmul.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.accumulate.products import exact_products
from tflq.interpreter.kernels.tflite.hybrid_batch_matmul import HybridBatchMatmul, lower_hybrid, run_hybrid
from tflq.interpreter.kernels.tflite.rescale import Rescale, Rounding, make_rescale, make_rule
from tflq.interpreter.numerics.fixed_point import wrap_int32
from tflq.interpreter.operands.batch_matmul import Adjoints, require_product
from tflq.interpreter.operands.checks import per_tensor, require_same_type, require_symmetric, require_type


@dataclass(frozen=True, eq=False)
class BatchMatmul(Adjoints):
    """The params of one BATCH_MATMUL.

    Attributes:
        zero_points: of both inputs; 0 for an int32 output.
        magnitude: bound on the accumulator.
        rescale: how totals become quantized values; None for an int32 output.
    """

    zero_points: tuple[int, int]
    magnitude: int
    rescale: Rescale | None


def lower(node: Node, operands: Operands) -> BatchMatmul | HybridBatchMatmul:
    """Decide the params.

    Raises:
        UnsupportedError: types or quantisation that TFLite's kernel does not take.
        GraphError: shapes that do not multiply, or a tensor without scale.
    """
    x, y, output = operands.input(0), operands.input(1), operands.output()
    if x.dtype is DType.FLOAT32:
        return lower_hybrid(node, operands)
    dtype = require_type(x, (DType.INT8, DType.INT16))
    require_type(y, (DType.INT8,) if dtype is DType.INT8 else (DType.INT8, DType.INT16))
    adj_x, adj_y, depth = require_product(node, operands)
    if dtype is DType.INT8 and output.dtype is DType.INT32:
        return BatchMatmul(adj_x, adj_y, (0, 0), max(1, depth) << 14, None)
    require_same_type(x, output)
    if dtype is DType.INT16:
        require_symmetric(x, output, *(() if y.affine.is_per_axis else (y,)))
    (sx, zx), (so, _) = per_tensor(x), per_tensor(output)
    sy, zy = (np.float32(0), 0) if y.affine.is_per_axis else per_tensor(y)
    largest = [max(z - tensor.dtype.minimum, tensor.dtype.maximum - z) for tensor, z in ((x, zx), (y, zy))]
    magnitude = max(1, depth) * largest[0] * largest[1]
    rounding, bits = (Rounding.DOUBLE, 32) if dtype is DType.INT8 else (Rounding.SINGLE_64, 64)
    rule = make_rule(node, output, np.array([float(sx * sy) / float(so)]), rounding, bits)
    bound = np.array([magnitude])
    rescale = make_rescale(rule, np.zeros(1, np.int64), -bound, bound)
    return BatchMatmul(adj_x, adj_y, (zx, zy), magnitude, rescale)


def run(params: BatchMatmul | HybridBatchMatmul, x: Array, y: Array) -> tuple[Array, ...]:
    """Run BATCH_MATMUL: T[S or 1, ..., A, K], U[S or 1, ..., K, B] -> T or int32 [S, ..., A, B]."""
    if isinstance(params, HybridBatchMatmul):
        return run_hybrid(params, x, y)
    left, right = (
        array.astype(np.int32) - zero for array, zero in zip(params.factors(x, y), params.zero_points, strict=True)
    )
    total = exact_products(left, right, params.magnitude)
    if params.rescale is None:
        return (wrap_int32(total.astype(np.int64)).astype(np.int32),)
    return (params.rescale.apply(total.reshape(-1, 1)).reshape(total.shape),)
