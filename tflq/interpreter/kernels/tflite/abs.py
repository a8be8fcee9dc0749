"""ABS: |x| in TFLite's integer arithmetic.

int8, int16 (quantised): y = clamp(|x - z_i| + z_o), rescaled by MBQ of f32(s_i / s_o) where the scales differ.
int16 and int32 without quantisation: |x|, the lowest number stays. Source: TFLite kernels/elementwise.cc (AbsEval).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_unary
from tflq.interpreter.numerics.fixed_point import multiply_by_quantized_multiplier as mbq
from tflq.interpreter.numerics.fixed_point import scalar_multiplier, wrap_int32
from tflq.interpreter.numerics.lookup_tables import Table, look_up, make_table
from tflq.interpreter.operands.checks import is_quantised, quantised_ends


@dataclass(frozen=True, eq=False)
class Abs:
    """The params of one ABS.

    Attributes:
        input_zero_point: of the input.
        output_zero_point: of the output.
        multiplier: int32; 0 where the scales are equal, and nothing is rescaled.
        shift: positive is left.
        table: T[256] or T[65536], by the raw bits of the code.
    """

    input_zero_point: int
    output_zero_point: int
    multiplier: int
    shift: int
    table: Table


def lower(node: Node, operands: Operands) -> Abs | Elementwise:  # noqa: ARG001
    """Decide the params.

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take, or int16 with a zero point.
        GraphError: int8 without scale.
    """
    dtype = lower_unary(operands, (DType.INT8, DType.INT16, DType.INT32)).dtype
    if dtype is DType.INT32 or (dtype is DType.INT16 and not is_quantised(operands.input(0))):
        return Elementwise(dtype)
    _, si, zi, so, zo = quantised_ends(operands, (dtype,))
    multiplier, shift = scalar_multiplier(si / so) if si != so else (0, 0)

    def entry(code: Integers) -> Integers:
        value = np.abs(code - zi)
        scaled = mbq(value, multiplier, shift) if si != so else value
        return np.clip(wrap_int32(scaled + zo), dtype.minimum, dtype.maximum)

    return Abs(zi, zo, multiplier, shift, make_table(entry, dtype, dtype))


def run(params: Abs | Elementwise, x: Array) -> tuple[Array, ...]:
    """Run ABS: T[S, *shape] -> T[S, *shape]."""
    return (look_up(params.table, x) if isinstance(params, Abs) else np.asarray(np.abs(x)),)
