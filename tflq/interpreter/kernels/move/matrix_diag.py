"""MATRIX_DIAG and MATRIX_SET_DIAG: rows as the diagonals of matrices, of zeros or of input 0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_result, require_same_type
from tflq.interpreter.operands.movable import equal_samples, require_movable
from tflq.interpreter.registry import Kernel

TYPES = (DType.UINT8, DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.FLOAT32, DType.UINT32)


@dataclass(frozen=True)
class Diagonal:
    """Length of the diagonal."""

    size: int


def _lower_diag(node: Node, operands: Operands) -> Diagonal:
    """Read the length.

    Raises:
        GraphError: a scalar input.
        UnsupportedError: a type that TFLite does not take.
    """
    source = operands.input(0)
    require_movable(node, source, operands.output(), TYPES)
    if not source.shape:
        raise GraphError(f"'{source.name}' is a scalar; a diagonal has one axis at least")
    require_result((*source.shape, source.shape[-1]), source.dtype)
    return Diagonal(source.shape[-1])


def _run_diag(params: Diagonal, x: Array) -> tuple[Array, ...]:
    """Run MATRIX_DIAG: T[S, *rows, n] -> T[S, *rows, n, n]."""
    result = np.zeros((*x.shape, params.size), x.dtype)
    places = np.arange(params.size)
    result[..., places, places] = x
    return (result,)


def _lower_set(node: Node, operands: Operands) -> Diagonal:
    """Read the length.

    Raises:
        GraphError: less than two axes, or a diagonal of another shape.
        UnsupportedError: types that differ, or that TFLite does not take.
    """
    source, diagonal = operands.input(0), operands.input(1)
    require_movable(node, source, operands.output(), TYPES)
    require_same_type(source, diagonal)
    if len(source.shape) < 2 or diagonal.shape != (*source.shape[:-2], min(source.shape[-2:])):
        raise GraphError(f"a diagonal of shape {diagonal.shape} does not fit matrices of shape {source.shape}")
    return Diagonal(min(source.shape[-2:]))


def _run_set(params: Diagonal, x: Array, diagonal: Array) -> tuple[Array, ...]:
    """Run MATRIX_SET_DIAG: T[S or 1, *rest, rows, columns], T[S or 1, *rest, n] -> T[S, *rest, rows, columns]."""
    result, values = equal_samples(x, diagonal)
    result = result.copy()
    places = np.arange(params.size)
    result[..., places, places] = values
    return (result,)


KERNELS = {
    "matrix_diag": Kernel(_lower_diag, _run_diag,
        "a square matrix for each row of the input, which stands on its diagonal, zeros elsewhere",
        "TFLite kernels/matrix_diag.cc"),
    "matrix_set_diag": Kernel(_lower_set, _run_set,
        "the matrices of input 0 with the rows of input 1 on their diagonals", "TFLite kernels/matrix_set_diag.cc"),
}  # fmt: skip
