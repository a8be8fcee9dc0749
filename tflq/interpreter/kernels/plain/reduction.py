"""Reductions of plain numbers and unchanged quantized values: one element for each place outside the axes.

REDUCE_MAX, REDUCE_MIN, REDUCE_ANY and REDUCE_ALL; SUM, MEAN and REDUCE_PROD of numbers that are not quantized
(docs/rules/tflite/index.md). (TFLite splits a sum or product over all axes among its threads from 1024 elements
a thread on; this is the result of one.)

Quantized values are reduced unchanged; TFLite refuses integers of 8 and 16 bits if the scale or zero point changes.

Floats: r = start; for each element e in order: r = e > r ? e : r (e < r for the smallest). `start` is the smallest
(largest) finite number, or the first element if all axes are reduced. So NaN is passed over unless it is that first
element, and infinities of the wrong sign become finite.

Source: TFLite kernels/reduce.cc (EvalType, ReduceAllDims) and internal/reference/reduce.h (ReduceGeneric).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import (
    EIGHT_BITS,
    Reduction,
    is_quantized,
    lower_reduction,
    require_same_type,
    require_type,
    shape_of_result,
)
from tflq.interpreter.registry import Kernel

_ORDERED = (DType.FLOAT32, DType.INT32, DType.INT64, DType.UINT8, DType.INT8, DType.INT16, DType.BOOL)


@dataclass(frozen=True)
class PlainReduction:
    """The reduced axes, and the type.

    Attributes:
        reduction: axes and count.
        dtype: Type of input and output.
        takes_all: whether every axis of the input is reduced.
    """

    reduction: Reduction
    dtype: DType
    takes_all: bool


def lower_plain_reduction(node: Node, operands: Operands, allowed: Collection[DType]) -> PlainReduction:
    """Decide the axes.

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take, or a quantization that changes.
        GraphError: an axis out of range, or computed at run time.
    """
    source, output = operands.input(0), operands.output()
    dtype = require_type(source, allowed)
    require_same_type(source, output)
    if dtype in (*EIGHT_BITS, DType.INT16):
        _require_same_quantization(operands)
    reduction = lower_reduction(node, operands)
    return PlainReduction(reduction, dtype, len(reduction.axes) == len(source.shape))


def _run_extreme(params: PlainReduction, x: Array, *_axes: Array, largest: bool) -> tuple[Array, ...]:
    """Return the largest or smallest element of each place: T[S, *shape] -> T[S, *shape without the axes]."""
    shape = shape_of_result(params.reduction, x)
    rows = rows_of(params.reduction, x)
    start = _start(params.dtype, largest)
    if params.dtype is DType.FLOAT32:
        result = _extreme_float(rows, start, largest, params.takes_all)
    else:
        reduce = np.maximum.reduce if largest else np.minimum.reduce
        result = np.asarray(reduce(rows, axis=0, initial=start), x.dtype)
    return (np.asarray(result.reshape(shape)),)


def run_fold(params: PlainReduction, x: Array, *_axes: Array, operation: np.ufunc) -> tuple[Array, ...]:
    """Return the sum or product of each place, in the tensor's own type: integers wrap, floats are processed in order.

    A fold of floats starts at the operation's identity, or at the first element if all axes are reduced.

    Args:
        params: Result of `lower_plain_reduction`.
        x: T[S, *shape].
        _axes: known since `lower_plain_reduction`.
        operation: np.add or np.multiply.

    Returns:
        T[S, *shape without the axes, or with 1 there].
    """
    rows = rows_of(params.reduction, x)
    if not params.dtype.is_floating:
        result = np.asarray(operation.reduce(rows, axis=0, dtype=x.dtype))
    else:
        first = params.takes_all and rows.shape[0] > 0
        result = rows[0].copy() if first else np.full(rows.shape[1], operation.identity, x.dtype)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            for row in rows[int(first) :]:
                operation(result, row, out=result)
    return (np.asarray(result.reshape(shape_of_result(params.reduction, x))),)


def rows_of(reduction: Reduction, x: Array) -> Array:
    """Return the elements that become one, in TFLite's order, as rows: T[count, places]."""
    reduced = [axis + 1 for axis in reduction.axes]
    kept = [axis for axis in range(x.ndim) if axis not in reduced]
    places = int(np.prod([x.shape[axis] for axis in kept], dtype=np.int64))
    return np.asarray(x.transpose(*reduced, *kept).reshape(reduction.count, places))


def _extreme_float(rows: Array, start: np.generic, largest: bool, takes_all: bool) -> Array:
    first = takes_all and rows.shape[0] > 0
    is_plain = not bool((np.isnan(rows) | (np.signbit(rows) & (rows == 0))).any())
    if is_plain:  # no order matters
        reduce = np.maximum.reduce if largest else np.minimum.reduce
        return np.asarray(reduce(rows, axis=0) if first else reduce(rows, axis=0, initial=start), rows.dtype)
    better = np.greater if largest else np.less
    result: Array = rows[0].copy() if first else np.full(rows.shape[1], start)
    for row in rows[int(first) :]:
        np.copyto(result, row, where=better(row, result))
    return result


def _start(dtype: DType, largest: bool) -> np.generic:
    bound: np.generic
    if dtype is DType.FLOAT32:
        limit = np.finfo(np.float32).max
        bound = -limit if largest else limit
    elif dtype is DType.BOOL:
        bound = np.bool_(not largest)
    else:
        bound = dtype.storage.type(dtype.minimum if largest else dtype.maximum)
    return bound


def _require_same_quantization(operands: Operands) -> None:
    source, output = operands.input(0), operands.output()
    types = [(t.affine.scale[0], int(t.affine.zero_point[0])) if is_quantized(t) else (0, 0) for t in (source, output)]
    if types[0] != types[1]:
        raise UnsupportedError(
            f"scale and zero point are {types[0]} for input '{source.name}' and {types[1]} for output "
            f"'{output.name}'; the kernel takes equal ones"
        )
    if source.dtype is DType.INT16 and types[0][1]:
        raise UnsupportedError(f"tensor '{source.name}' (int16) has zero point {types[0][1]}; the kernel takes 0 only")


def _extreme(summary: str, allowed: Collection[DType], largest: bool) -> Kernel:
    return Kernel(
        partial(lower_plain_reduction, allowed=allowed),
        partial(_run_extreme, largest=largest),
        summary,
        "TFLite kernels/reduce.cc",
    )


def _lower_mean(node: Node, operands: Operands) -> Reduction:
    """Decide the axes.

    Raises:
        UnsupportedError: another type.
        GraphError: an axis out of range, or computed at run time.
    """
    require_type(operands.input(0), (DType.FLOAT32,))
    require_same_type(operands.input(0), operands.output())
    return lower_reduction(node, operands)


def _run_mean(params: Reduction, x: Array, *_axes: Array) -> tuple[Array, ...]:
    """Run MEAN: float32[S, *shape] -> float32[S, *shape without the axes, or with 1 there]."""
    shape = shape_of_result(params, x)
    if params.count == 0:
        return (np.full(shape, np.nan, np.float32),)
    rows = rows_of(params, x)
    total = np.zeros(rows.shape[1], np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for row in rows:
            np.add(total, row, out=total)
    return ((total / np.float32(params.count)).reshape(shape),)


def _fold(summary: str, operation: np.ufunc) -> Kernel:
    return Kernel(
        partial(lower_plain_reduction, allowed=(DType.FLOAT32,)),
        partial(run_fold, operation=operation),
        summary,
        "TFLite kernels/reduce.cc, internal/reference/reduce.h (ReduceGeneric)",
    )


UNQUANTIZED = {
    "mean": Kernel(_lower_mean, _run_mean,
        "a float32 sum in the order of the elements, then one division",
        "TFLite kernels/internal/reference/reduce.h (Mean)"),
    "sum": _fold("a float32 sum in the order of the elements", np.add),
    "reduce_prod": _fold("a float32 product in the order of the elements", np.multiply),
}  # fmt: skip

KERNELS = {
    "reduce_all": _extreme("logical and over some axes", (DType.BOOL,), largest=False),
    "reduce_any": _extreme("logical or over some axes", (DType.BOOL,), largest=True),
    "reduce_max": _extreme("the largest element over some axes", _ORDERED, largest=True),
    "reduce_min": _extreme("the smallest element over some axes", _ORDERED, largest=False),
}  # fmt: skip
