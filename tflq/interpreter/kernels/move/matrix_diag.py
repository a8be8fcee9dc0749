"""MATRIX_DIAG: a square matrix for each row of the input, which stands on its diagonal, zeros elsewhere.

Source: TFLite kernels/matrix_diag.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.movable import require_movable
from tflq.interpreter.operands.result_size import require_result

TYPES = (DType.UINT8, DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.FLOAT32, DType.UINT32)


@dataclass(frozen=True)
class MatrixDiag:
    """Length of the diagonal."""

    size: int


def lower(node: Node, operands: Operands) -> MatrixDiag:
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
    return MatrixDiag(source.shape[-1])


def run(params: MatrixDiag, x: Array) -> tuple[Array, ...]:
    """Run MATRIX_DIAG: T[S, *rows, n] -> T[S, *rows, n, n]."""
    result = np.zeros((*x.shape, params.size), x.dtype)
    places = np.arange(params.size)
    result[..., places, places] = x
    return (result,)
