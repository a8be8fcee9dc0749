"""RELU, RELU6, RELU_N1_TO_1 and RELU_0_TO_1 as operators of their own: a rescale and a clamp, made into a table.

y = clamp(MBQ(x - z_i, m, s) + z_o, q(low), q(high)), q(v) = z_o + round_half_away(f32(v / s_o)); (m, s) is the
multiplier of f32(s_i / s_o). TFLite rescales here, TFLM only clamps.

Source: TFLite kernels/activations.cc (ReluPrepare, QuantizedReluX) and internal/reference/reference_ops.h (ReluX).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, DType, Operands
from tflq.interpreter.numerics.fixed_point import Integers, activation_range, quantize_multiplier, wrap_int32
from tflq.interpreter.numerics.fixed_point import multiply_by_quantized_multiplier as mbq
from tflq.interpreter.numerics.lookup_tables import Table, look_up, make_table
from tflq.interpreter.operands.checks import (
    per_tensor,
    require_same_type,
    require_type,
    require_zero_points_of_zero,
)


@dataclass(frozen=True, eq=False)
class Clamped:
    """The integers of one operator of the RELU family.

    Attributes:
        input_zero_point: of the input.
        output_zero_point: of the output.
        multiplier: int32.
        shift: positive is left.
        minimum: smallest code.
        maximum: largest code.
        table: T[256] or T[65536], by the raw bits of the code.
    """

    input_zero_point: int
    output_zero_point: int
    multiplier: int
    shift: int
    minimum: int
    maximum: int
    table: Table


def lower_clamped(operands: Operands, bounds: tuple[str, str], allowed: Collection[DType]) -> Clamped:
    """Decide the integers.

    Args:
        operands: of the node.
        bounds: names of the fused activations (`activation_range`) whose lower and upper bound these are.
        allowed: types that TFLite's kernel takes.

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take, or int16 with a zero point.
        GraphError: a tensor without scale.
    """
    source, output = operands.input(0), operands.output()
    dtype = require_type(source, allowed)
    require_same_type(source, output)
    if dtype is DType.INT16:
        require_zero_points_of_zero(source, output)
    (si, zi), (so, zo) = per_tensor(source), per_tensor(output)
    multiplier, shift = (int(part) for part in quantize_multiplier(float(si / so)))
    low = activation_range(bounds[0], so, zo, dtype.minimum, dtype.maximum)[0]
    high = activation_range(bounds[1], so, zo, dtype.minimum, dtype.maximum)[1]

    def entry(code: Integers) -> Integers:
        return np.clip(wrap_int32(mbq(code - zi, multiplier, shift) + zo), low, high)

    return Clamped(zi, zo, multiplier, shift, low, high, make_table(entry, dtype, dtype))


def run_clamped(params: Clamped, x: Array) -> tuple[Array, ...]:
    """Run it: T[S, *shape] -> T[S, *shape]."""
    return (look_up(params.table, x),)
