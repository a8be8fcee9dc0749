"""BATCH_MATMUL in TFLite's integer arithmetic, and of float32 activations with int8 weights.

Source: docs/rules/tflite/index.md.

Float32 activations with int8 weights: each row of x is quantized (hybrid.py), symmetrically unless
asymmetric_quantize_inputs is set. y = f32(f32(scale of the row * sw) * t), t = f32(f32(acc) - f32(sum over k of w *
zero point of the row)); per channel sw is that of the column. TFLite looks scales, zero points and sums up by the sum
of the coordinates in the stack, not by place: in stacks of two axes and more other rows' scales count, and so they do
here. If the weights' last axis of the stack is 1 and x is not transposed, that axis of x joins its rows first. TFLite
sums weights up at its first invocation only; here each sample has the sums of its weights.

Integers: total = sum over k of (x - zx) * (y - zy). int8: an int32 that wraps, y = clamp(MBQ(total) + zo); with an
int32 output the plain sum of x * y, zero points ignored. int16 with int16 or int8: an int64 and MBQ64. The real
multiplier is f32(sx sy) / so, the quotient in float64. Of weights with several scales TFLite reads the one scale that
older files have instead, 0 here: every result is the output's zero point.

Source: TFLite kernels/batch_matmul.cc (EvalHybrid), internal/reference/batch_matmul.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Singles
from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.accumulate.products import exact_products
from tflq.interpreter.kernels.tflite.hybrid import quantize_rows, row_sums
from tflq.interpreter.kernels.tflite.rescale import Rescale, Rounding, make_rescale, make_rule
from tflq.interpreter.numerics.fixed_point import wrap_int32
from tflq.interpreter.operands.checks import per_tensor, require_same_type, require_symmetric, require_type
from tflq.interpreter.operands.products import Adjoints, require_product
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True, eq=False)
class HybridBatchMatmul(Adjoints):
    """The params of a hybrid BATCH_MATMUL.

    Attributes:
        asymmetric: whether rows get a zero point.
        scale: Scale of the weights: float32[1] or float32[B].
    """

    asymmetric: bool
    scale: Singles


def lower_hybrid(node: Node, operands: Operands) -> HybridBatchMatmul:
    """Check the operands.

    Raises:
        UnsupportedError: other types, scales that fit no column, or asymmetric rows with weights of five axes in which
            TFLite reads sums that it has not written.
        GraphError: shapes that do not multiply, or weights without scale.
    """
    x, y = operands.input(0), operands.input(1)
    require_type(y, (DType.INT8,))
    require_type(operands.output(), (DType.FLOAT32,))
    adj_x, adj_y, _ = require_product(node, operands)
    scale = y.affine.scale.astype(np.float32)
    if scale.size not in (1, y.shape[-2] if adj_y else y.shape[-1]):
        raise UnsupportedError(f"weights '{y.name}' {y.shape} have {scale.size} scales; one or one a column is allowed")
    asymmetric = node.attributes.boolean("asymmetric_quantize_inputs", False)
    if asymmetric and _reads_beyond_sums(_join_rows(y.shape, _joins_rows(adj_x, x.shape, y.shape), rows=False)):
        raise UnsupportedError(
            f"asymmetric_quantize_inputs with weights '{y.name}' {y.shape}: TFLite sums up {y.shape[-4] * y.shape[-3]} "
            f"of their matrices and reads on; use fewer axes"
        )
    return HybridBatchMatmul(adj_x, adj_y, asymmetric, scale)


def run_hybrid(params: HybridBatchMatmul, x: Array, y: Array) -> tuple[Array, ...]:
    """Run it: float32[S, ..., A, K], int8[S or 1, ..., K, B] -> float32[S, ..., A, B]."""
    joins = _joins_rows(params.adj_x, x.shape[1:], y.shape[1:])
    left, right = (np.swapaxes(a, -1, -2) if adj else a for a, adj in ((x, params.adj_x), (y, params.adj_y)))
    stack = np.broadcast_shapes(left.shape[1:-2], right.shape[1:-2])
    shape = (*stack, left.shape[-2], right.shape[-1])
    left, right = (
        _stack_axes(a.reshape(len(a), *_join_rows(a.shape[1:], joins, rows)))
        for a, rows in ((left, True), (right, False))
    )
    rows = quantize_rows(np.ascontiguousarray(left, np.float32), params.asymmetric)
    total = exact_products(rows.codes, right, left.shape[-1] << 14).astype(np.float32)
    with np.errstate(all="ignore"):
        scale = _by_sum(rows.scale, total.shape[1:4]).astype(np.float32)[..., None] * params.scale
        if params.asymmetric:
            sums = _by_sum(row_sums(right.swapaxes(-1, -2)), total.shape[1:4]).astype(np.float32)
            offset = _by_sum(rows.zero_point, total.shape[1:4]).astype(np.float32)
            total = total - sums[..., None, :] * offset[..., None]
        result = scale * total
    return (np.asarray(result.reshape(result.shape[0], *shape), np.float32),)


def _joins_rows(adj_x: bool, x: tuple[int, ...], y: tuple[int, ...]) -> bool:
    """Whether the last axis of x's stack joins its rows; shapes without the sample axis."""
    return not adj_x and len(x) > 2 and len(y) > 2 and y[-3] == 1


def _join_rows(shape: tuple[int, ...], joins: bool, rows: bool) -> tuple[int, ...]:
    """Return the shape without the last axis of its stack, which multiplies the rows of x."""
    if not joins:
        return shape
    return (*shape[:-3], shape[-3] * shape[-2] if rows else shape[-2], shape[-1])


def _reads_beyond_sums(y: tuple[int, ...]) -> bool:
    """Whether TFLite, which sums up the matrices of the last two axes of a stack, looks for one after them."""
    stack = (1,) * (5 - len(y)) + y[:-2]
    return sum(n - 1 for n in stack) >= stack[1] * stack[2]


def _stack_axes(x: Array) -> Array:
    """Bring [S, ..., A, K] to five axes after the samples."""
    return x.reshape(x.shape[0], *(1,) * (6 - x.ndim), *x.shape[1:])


def _by_sum(values: Array, stack: tuple[int, ...]) -> Array:
    """Return values [S, L0, L1, L2, N] at the place that TFLite reads for each coordinate of the stack."""
    coordinates = np.indices(stack)
    place = sum(np.where(values.shape[1 + i] == 1, 0, coordinates[i]) for i in range(3))
    flat = values.reshape(values.shape[0], -1, values.shape[-1])
    return np.asarray(flat[:, place])


@dataclass(frozen=True, eq=False)
class BatchMatmul(Adjoints):
    """The params of one BATCH_MATMUL.

    Attributes:
        zero_points: Zero points of both inputs; 0 for an int32 output.
        magnitude: bound on the accumulator.
        rescale: Rule from totals to quantized values; None for an int32 output.
    """

    zero_points: tuple[int, int]
    magnitude: int
    rescale: Rescale | None


def _lower_batch_matmul(node: Node, operands: Operands) -> BatchMatmul | HybridBatchMatmul:
    """Decide the params.

    Raises:
        UnsupportedError: types or quantization that TFLite's kernel does not take.
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


def _run_batch_matmul(params: BatchMatmul | HybridBatchMatmul, x: Array, y: Array) -> tuple[Array, ...]:
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


KERNELS = {
    "batch_matmul": Kernel(_lower_batch_matmul, _run_batch_matmul,
        "BATCH_MATMUL in TFLite's integer arithmetic (docs/rules/tflite/index.md)",
        "TFLite kernels/batch_matmul.cc, internal/reference/batch_matmul.h"),
}  # fmt: skip
