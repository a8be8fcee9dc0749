"""SUB: x_1 - x_2, elementwise with broadcasting and a fused activation: one IEEE operation in the tensor's type.

Equal to TFLite bit for bit. Source: TFLite kernels/sub.cc.
"""

from __future__ import annotations

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.binary import PlainBinary, lower_plain, run_plain

TYPES = (DType.FLOAT32, DType.INT32, DType.INT64)


def lower(node: Node, operands: Operands) -> PlainBinary:
    """Check the operands and decide the bounds; errors as `lower_plain`."""
    return lower_plain("sub", node, operands, TYPES)


def run(params: PlainBinary, first: Array, second: Array) -> tuple[Array, ...]:
    """Run SUB: T[S or 1, *shape] twice, shapes broadcast -> T[S, *shape]."""
    return run_plain(params, first, second)
