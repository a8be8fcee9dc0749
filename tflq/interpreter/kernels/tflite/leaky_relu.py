"""LEAKY_RELU: x where x >= 0, else alpha x, in TFLite's integer arithmetic (docs/tflite.md).

v = x - z_i; y = clamp(z_o + MBQ(v, of f32(s_i / s_o))) for v >= 0, else clamp(z_o + MBQ(v, of f32(f32(s_i alpha) /
s_o))). A negative alpha multiplies by its magnitude and negates after the rounding (TensorFlow 2.21 passes the
negative multiplier on, which differs in exact ties only). int8, uint8, int16 with zero points 0.

Source: TFLite kernels/activations.cc (LeakyReluPrepare) and internal/reference/leaky_relu.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.numerics.fixed_point import multiply_by_quantized_multiplier as mbq
from tflq.interpreter.numerics.fixed_point import scalar_multiplier, wrap_int32
from tflq.interpreter.numerics.lookup_tables import Table, look_up, make_table
from tflq.interpreter.operands.checks import EIGHT_BITS, quantised_ends


@dataclass(frozen=True, eq=False)
class LeakyRelu:
    """The params of one LEAKY_RELU.

    Attributes:
        input_zero_point: of the input.
        output_zero_point: of the output.
        identity_multiplier: int32, for v >= 0.
        identity_shift: positive is left.
        alpha_multiplier: int32, for v < 0; negative where alpha is.
        alpha_shift: positive is left.
        table: T[256] or T[65536], by the raw bits of the code.
    """

    input_zero_point: int
    output_zero_point: int
    identity_multiplier: int
    identity_shift: int
    alpha_multiplier: int
    alpha_shift: int
    table: Table


def lower(node: Node, operands: Operands) -> LeakyRelu:
    """Decide the params.

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take, or int16 with a zero point.
        GraphError: a tensor without scale.
    """
    dtype, si, zi, so, zo = quantised_ends(operands, (*EIGHT_BITS, DType.INT16))
    alpha = np.float32(node.attributes.real("alpha", 0.0))
    alpha_multiplier, alpha_shift = scalar_multiplier(si * alpha / so)
    multiplier, shift = scalar_multiplier(si / so)
    sign = -1 if alpha_multiplier < 0 else 1

    def entry(code: Integers) -> Integers:
        value = code - zi
        negative = sign * mbq(value, abs(alpha_multiplier), alpha_shift)
        scaled = np.where(value >= 0, mbq(value, multiplier, shift), negative)
        return np.clip(wrap_int32(scaled + zo), dtype.minimum, dtype.maximum)

    table = make_table(entry, dtype, dtype)
    return LeakyRelu(zi, zo, multiplier, shift, alpha_multiplier, alpha_shift, table)


def run(params: LeakyRelu, x: Array) -> tuple[Array, ...]:
    """Run LEAKY_RELU: T[S, *shape] -> T[S, *shape]."""
    return (look_up(params.table, x),)
