"""MATRIX_SET_DIAG: the matrices of input 0 with the rows of input 1 on their diagonals.

Source: TFLite kernels/matrix_set_diag.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.move.matrix_diag import TYPES
from tflq.interpreter.operands.checks import require_same_type
from tflq.interpreter.operands.indexing import equal_samples
from tflq.interpreter.operands.movable import require_movable


@dataclass(frozen=True)
class MatrixSetDiag:
    """Length of the diagonal."""

    size: int


def lower(node: Node, operands: Operands) -> MatrixSetDiag:
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
    return MatrixSetDiag(min(source.shape[-2:]))


def run(params: MatrixSetDiag, x: Array, diagonal: Array) -> tuple[Array, ...]:
    """Run MATRIX_SET_DIAG: T[S or 1, *rest, rows, columns], T[S or 1, *rest, n] -> T[S, *rest, rows, columns]."""
    result, values = equal_samples(x, diagonal)
    result = result.copy()
    places = np.arange(params.size)
    result[..., places, places] = values
    return (result,)
