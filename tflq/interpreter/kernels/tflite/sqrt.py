"""SQRT of quantised tensors: y = clamp(int(f32(sqrt(f32(s_i (x - z_i))) / s_o)) + z_o).

The quotient is cut toward zero, not rounded.

int8, int16. Negative numbers are refused at run time. Source: TFLite kernels/elementwise.cc (SqrtEvalQuantized).
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import lower_unary
from tflq.interpreter.kernels.tflite.non_negative import NonNegative, run_non_negative
from tflq.interpreter.numerics.fixed_point import Integers, float_to_int32, wrap_int32
from tflq.interpreter.numerics.lookup_tables import make_table
from tflq.interpreter.operands.checks import per_tensor, require_zero_points_of_zero


def lower(node: Node, operands: Operands) -> NonNegative:  # noqa: ARG001
    """Make the table.

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take, or int16 with a zero point.
        GraphError: a tensor without scale.
    """
    source, output = operands.input(0), operands.output()
    dtype = lower_unary(operands, (DType.INT8, DType.INT16)).dtype
    if dtype is DType.INT16:
        require_zero_points_of_zero(source, output)
    (si, zi), (so, zo) = per_tensor(source), per_tensor(output)

    def entry(code: Integers) -> Integers:
        root = np.sqrt(si * np.maximum(code - zi, 0).astype(np.float32))
        return np.clip(wrap_int32(float_to_int32(root / so) + zo), dtype.minimum, dtype.maximum)

    return NonNegative("sqrt", zi, make_table(entry, dtype, dtype))


def run(params: NonNegative, x: Array) -> tuple[Array, ...]:
    """Run SQRT: T[S, *shape] -> T[S, *shape]; raises as `run_non_negative`."""
    return run_non_negative(params, x)
