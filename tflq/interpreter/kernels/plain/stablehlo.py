"""What the elementwise operators of StableHLO share: equal types and equal shapes."""

from __future__ import annotations

from collections.abc import Collection

from tflq.graph import DType, Operands
from tflq.interpreter.kernels.plain.atan2 import require_equal_shapes
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_binary

INTEGERS = (
    DType.INT8,
    DType.INT16,
    DType.INT32,
    DType.INT64,
    DType.UINT8,
    DType.UINT16,
    DType.UINT32,
    DType.UINT64,
    DType.BOOL,
)
NUMBERS = (DType.FLOAT32, DType.FLOAT16, DType.FLOAT64, *INTEGERS)


def lower_stablehlo(operands: Operands, allowed: Collection[DType]) -> Elementwise:
    """Check the operands.

    Raises:
        UnsupportedError: types that TFLite's kernel does not take.
        GraphError: unequal shapes.
    """
    require_equal_shapes(operands)
    return lower_binary(operands, allowed)
