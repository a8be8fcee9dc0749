"""LOGICAL_AND: x and y, elementwise with broadcasting. Source: TFLite kernels/logical.cc."""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_binary
from tflq.interpreter.samples import align


def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the operands; errors as `lower_binary`."""
    return lower_binary(operands, (DType.BOOL,))


def run(params: Elementwise, first: Array, second: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Run LOGICAL_AND: bool[S or 1, *shape] twice, shapes broadcast -> bool[S, *shape]."""
    return (np.asarray(np.logical_and(*align(first, second))),)
