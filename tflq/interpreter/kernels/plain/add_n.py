"""ADD_N: the sum of all inputs in their order, which have one shape; int32 wraps.

(TFLite splits four inputs and more among its threads; this is the result of one.) Source: TFLite kernels/add_n.cc.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_unary
from tflq.interpreter.operands.checks import require_same_type


def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the operands.

    Raises:
        UnsupportedError: other or unequal types.
        GraphError: fewer than two inputs, or unequal shapes.
    """
    count = len(operands.inputs)
    if count < 2:
        raise GraphError(f"{count} inputs; add_n takes two or more")
    tensors = [operands.input(i) for i in range(count)]
    require_same_type(*tensors)
    for tensor in tensors:
        if tensor.shape != tensors[0].shape:
            raise GraphError(f"inputs have shapes {tensors[0].shape} and {tensor.shape}; add_n takes equal ones")
    return lower_unary(operands, (DType.FLOAT32, DType.INT32))


def run(params: Elementwise, *arrays: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Run ADD_N: T[S or 1, *shape] of each -> T[S, *shape]."""
    with np.errstate(over="ignore", invalid="ignore"):
        return (reduce(np.add, arrays),)
