"""HARD_SWISH: x * relu6(x + 3) / 6, in TFLite's 16-bit integer arithmetic (docs/tflite.md), made into a table.

h = (x - z_i) << 7; p = SRDHM16(h, m_o); r = h scaled so that 3.0 is 2^15: left shift all but one bit, saturating;
SRDHM16 with m_r; the last left shift, saturating, or a right shift with RDBP; r = (r + 2^15) >> 1; y =
clamp(RDBP(trunc(r p / 2^15), -e_o) + z_o). Multipliers are those of f32(f32(s_i / 128) / s_o) and of f32(f32(s_i /
128) / f32(3 / 32768)), cut to int16 with rounding and saturation. int8, uint8.

Source: TFLite kernels/activations.cc (HardSwishPrepare) and internal/reference/hard_swish.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.numerics.fixed_point import (
    quantize_multiplier,
    saturate,
    saturating_doubling_high_mul_16,
    saturating_rounding_doubling_high_mul,
)
from tflq.interpreter.numerics.gemmlowp import rounding_divide_int16_by_pot
from tflq.interpreter.numerics.lookup_tables import Table, look_up, make_table
from tflq.interpreter.operands.checks import EIGHT_BITS, per_tensor, require_same_type, require_type


@dataclass(frozen=True, eq=False)
class HardSwish:
    """The params of one HARD_SWISH.

    Attributes:
        input_zero_point: of the input.
        output_zero_point: of the output.
        output_multiplier: int16.
        output_exponent: -31..0.
        relu_multiplier: int16.
        relu_exponent: -31..31; positive is left.
        table: T[256], by the raw bits of the code.
    """

    input_zero_point: int
    output_zero_point: int
    output_multiplier: int
    output_exponent: int
    relu_multiplier: int
    relu_exponent: int
    table: Table


def lower(node: Node, operands: Operands) -> HardSwish:  # noqa: ARG001
    """Decide the params.

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take, an output scale below 1/128 of the input's (TFLite
            refuses it), or an input scale above 2^24.
        GraphError: a tensor without scale.
    """
    source, output = operands.input(0), operands.output()
    dtype = require_type(source, EIGHT_BITS)
    require_same_type(source, output)
    (si, zi), (so, zo) = per_tensor(source), per_tensor(output)
    fine = np.float32(1.0 / 128.0) * si
    output_multiplier, output_exponent = _multiplier(fine / so)
    relu_multiplier, relu_exponent = _multiplier(fine / (np.float32(3.0) / np.float32(32768.0)))
    if output_exponent > 0:
        raise UnsupportedError(
            f"input scale {si} and output scale {so}: the output's must be 1/128 of the input's or more"
        )
    if relu_exponent > 31:
        raise UnsupportedError(f"input scale {si} is above 2^24: the kernel shifts by more than 31 bits")
    parts = (zi, zo, output_multiplier, output_exponent, relu_multiplier, relu_exponent)

    def entry(code: Integers) -> Integers:
        return np.clip(_evaluate(code, *parts), dtype.minimum, dtype.maximum)

    return HardSwish(*parts, make_table(entry, dtype, dtype))


def run(params: HardSwish, x: Array) -> tuple[Array, ...]:
    """Run HARD_SWISH: T[S, *shape] -> T[S, *shape]."""
    return (look_up(params.table, x),)


def _multiplier(real: np.float32) -> tuple[int, int]:
    wide, exponent = (int(part) for part in quantize_multiplier(float(real)))
    return min((wide + (1 << 15)) >> 16, 32767), exponent


def _evaluate(
    code: Integers,
    input_zero_point: int,
    output_zero_point: int,
    output_multiplier: int,
    output_exponent: int,
    relu_multiplier: int,
    relu_exponent: int,
) -> Integers:
    fine = (code - input_zero_point) << 7
    on_output_scale = saturating_rounding_doubling_high_mul(fine, output_multiplier, 16)
    relu = saturate(fine << max(relu_exponent - 1, 0), 16)
    relu = saturating_rounding_doubling_high_mul(relu, relu_multiplier, 16)
    if relu_exponent > 0:
        relu = saturate(relu << 1, 16)
    relu = rounding_divide_int16_by_pot(relu, max(-relu_exponent, 0))
    relu = (relu + (1 << 15)) >> 1
    product = saturating_doubling_high_mul_16(relu, on_output_scale)
    return rounding_divide_int16_by_pot(product, -output_exponent) + output_zero_point
