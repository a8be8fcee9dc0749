"""FILL: one value everywhere, in the shape that input 0 gives.

Source: TFLite kernels/fill.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.movable import (
    FIXED_SIZE,
    constant_vector,
    require_movable,
    require_same_quantisation,
    require_symmetric_int16,
    shape_of,
)
from tflq.interpreter.operands.result_size import require_result


@dataclass(frozen=True)
class Fill:
    """The shape, of the model's own axes."""

    shape: tuple[int, ...]


def lower(node: Node, operands: Operands) -> Fill:
    """Decide the shape.

    Raises:
        GraphError: a negative size, a shape computed at run time, or a value that is no scalar.
        UnsupportedError: types or quantisations that differ, or that TFLite does not fill.
    """
    value = operands.input(1)
    require_movable(node, value, operands.output(), (*FIXED_SIZE, DType.STRING))
    require_same_quantisation(node, value, operands.output())
    require_symmetric_int16(node, value)
    if value.shape:
        raise GraphError(f"the value '{value.name}' has shape {value.shape}; a scalar is needed")
    shape = shape_of(constant_vector(operands, 0), "the shape to fill")
    require_result(shape, value.dtype)
    return Fill(shape)


def run(params: Fill, _shape: Array | None, value: Array) -> tuple[Array, ...]:
    """Run FILL: T[S] -> T[S, *shape], a view of the value."""
    scalar = value.reshape(-1, *(1,) * len(params.shape))
    return (np.broadcast_to(scalar, (value.shape[0], *params.shape)),)
