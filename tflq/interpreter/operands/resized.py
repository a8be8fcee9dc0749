"""The size that RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR are asked for."""

from __future__ import annotations

from tflq.errors import GraphError
from tflq.graph import DType, Operands
from tflq.interpreter.operands.movable import constant_vector
from tflq.interpreter.operands.result_size import require_result


def resized_shape(operands: Operands) -> tuple[int, int]:
    """Return height and width of the output.

    Raises:
        GraphError: another rank than 4, a size below 1 or computed at run time.
        LimitError: the result is larger than the limits allow.
    """
    shape, sizes = operands.input(0).shape, constant_vector(operands, 1, (DType.INT32,))
    if len(shape) != 4 or len(sizes) != 2 or min(sizes) < 1 or 0 in shape[1:3]:
        raise GraphError(
            f"an input of shape {shape} is resized to {sizes}; 4 axes and two sizes of 1 or more are needed"
        )
    require_result((shape[0], *sizes, shape[3]), operands.output().dtype)
    return sizes[0], sizes[1]
