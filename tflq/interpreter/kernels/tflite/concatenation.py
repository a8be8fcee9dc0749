"""CONCATENATION in TFLite's integer arithmetic: uint8 is rescaled, everything else is moved.

Source: docs/rules/tflite/index.md.

uint8: y = clamp(int32(round_half_away(f32(f32(x * r) + b))) + z_o) with r = f32(s_i * f32(1 / s_o)), b = f32(-z_i * r),
for inputs with another scale or zero point than the output: a table. int8 must share scale and zero point; int16 must
have zero points 0, and its scales are not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.kernels.move.parts import Concatenation, check_shapes, concatenate
from tflq.interpreter.numerics.fixed_point import float_to_int32, round_half_away
from tflq.interpreter.numerics.lookup_tables import Table, look_up, make_table
from tflq.interpreter.operands.checks import is_quantized, per_tensor, require_same_type, require_symmetric
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True, eq=False)
class RescaledConcatenation:
    """CONCATENATION with a table for each input.

    Attributes:
        move: axis.
        tables: uint8[256] for each input; None if it is copied.
    """

    move: Concatenation
    tables: tuple[Table | None, ...]


def lower(node: Node, operands: Operands) -> RescaledConcatenation:
    """Decide axis and tables.

    Raises:
        UnsupportedError: int8 with other scales than the output's, int16 with a zero point, or a fused activation.
        GraphError: shapes that do not fit.
    """
    inputs = [operands.input(i) for i in range(len(operands.inputs))]
    output = operands.output()
    move = check_shapes(node, operands)
    require_same_type(*inputs, output)
    if output.dtype is DType.UINT8 and is_quantized(output):
        return RescaledConcatenation(move, tuple(_table(t, output) for t in inputs))
    if output.dtype is DType.INT8 and is_quantized(output):
        for tensor in inputs:
            if per_tensor(tensor) != per_tensor(output):
                raise UnsupportedError(
                    f"input '{tensor.name}' has scale and zero point {_words(tensor)}, the output {_words(output)}; "
                    f"int8 takes equal ones"
                )
    if output.dtype is DType.INT16:
        require_symmetric(*(t for t in (*inputs, output) if is_quantized(t)))
    return RescaledConcatenation(move, (None,) * len(inputs))


def run(params: RescaledConcatenation, *arrays: Array) -> tuple[Array, ...]:
    """Run CONCATENATION: T[S or 1, *shape_i] -> T[S, *shape]."""
    parts = [x if table is None else look_up(table, x) for table, x in zip(params.tables, arrays, strict=True)]
    return (concatenate(params.move, parts),)


def _table(source: Tensor, output: Tensor) -> Table | None:
    (si, zi), (so, zo) = per_tensor(source), per_tensor(output)
    if (si, zi) == (so, zo):
        return None
    scale = si * (np.float32(1) / so)
    bias = np.float32(-zi) * scale

    def entry(code: Integers) -> Integers:
        real = code.astype(np.float32) * scale + bias
        return np.clip(float_to_int32(round_half_away(real)) + zo, 0, 255)

    return make_table(entry, DType.UINT8, DType.UINT8)


def _words(tensor: Tensor) -> str:
    scale, zero_point = per_tensor(tensor)
    return f"{scale}, {zero_point}"


KERNELS = {
    "concatenation": Kernel(lower, run,
        "CONCATENATION in TFLite's integer arithmetic: uint8 is rescaled, everything else is moved "
            "(docs/rules/tflite/index.md)",
        "TFLite kernels/concatenation.cc and internal/reference/concatenation.h (ConcatenationWithScaling)"),
}  # fmt: skip
