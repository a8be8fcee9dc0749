"""ABS, the RELUs and HARD_SWISH in TFLite's integer arithmetic, made into tables.

ABS: int8, int16 (quantized): y = clamp(|x - z_i| + z_o), rescaled by MBQ of f32(s_i / s_o) if the scales differ. int16
and int32 without quantization: |x|, the lowest number stays.

RELUs: y = clamp(MBQ(x - z_i, m, s) + z_o, q(low), q(high)), q(v) = z_o + round_half_away(f32(v / s_o)); (m, s) is the
multiplier of f32(s_i / s_o). RELU6 of TensorFlow Lite Micro does not rescale: y = clamp(x, z_i, q(6)), with the input's
scale and zero point in q; it refuses a q(6) that does not fit the type.

HARD_SWISH: h = (x - z_i) << 7; p = SRDHM16(h, m_o); r = h scaled so that 3.0 is 2^15: left shift all but one bit,
saturating; SRDHM16 with m_r; the last left shift, saturating, or a right shift with RDBP; r = (r + 2^15) >> 1; y =
clamp(RDBP(trunc(r p / 2^15), -e_o) + z_o). The multipliers approximate f32(f32(s_i / 128) / s_o) and f32(f32(s_i / 128)
/ f32(3 / 32768)), cut to int16 with rounding and saturation. int8, uint8.

Source: TFLite kernels/activations.cc (ReluPrepare, QuantizedReluX) and internal/reference/reference_ops.h (ReluX).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

import numpy as np

from tflq.arrays import Integers
from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_unary
from tflq.interpreter.numerics.fixed_point import (
    activation_range,
    quantize_multiplier,
    round_half_away,
    saturate,
    saturating_doubling_high_mul_16,
    saturating_rounding_doubling_high_mul,
    scalar_multiplier,
    wrap_int32,
)
from tflq.interpreter.numerics.fixed_point import multiply_by_quantized_multiplier as mbq
from tflq.interpreter.numerics.gemmlowp import rounding_divide_int16_by_pot
from tflq.interpreter.numerics.lookup_tables import Table, look_up, make_table
from tflq.interpreter.operands.checks import (
    EIGHT_BITS,
    is_quantized,
    per_tensor,
    quantized_ends,
    require_same_type,
    require_type,
)
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True, eq=False)
class Abs:
    """The params of one ABS.

    Attributes:
        input_zero_point: Zero point of the input.
        output_zero_point: Zero point of the output.
        multiplier: int32; 0 if the scales are equal (no rescaling).
        shift: positive is left.
        table: T[256] or T[65536], by the raw bits of the code.
    """

    input_zero_point: int
    output_zero_point: int
    multiplier: int
    shift: int
    table: Table


def _lower_abs(node: Node, operands: Operands) -> Abs | Elementwise:  # noqa: ARG001
    """Decide the params.

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take, or int16 with a zero point.
        GraphError: int8 without scale.
    """
    dtype = lower_unary(operands, (DType.INT8, DType.INT16, DType.INT32)).dtype
    if dtype is DType.INT32 or (dtype is DType.INT16 and not is_quantized(operands.input(0))):
        return Elementwise(dtype)
    _, si, zi, so, zo = quantized_ends(operands, (dtype,))
    multiplier, shift = scalar_multiplier(si / so) if si != so else (0, 0)

    def entry(code: Integers) -> Integers:
        value = np.abs(code - zi)
        scaled = mbq(value, multiplier, shift) if si != so else value
        return np.clip(wrap_int32(scaled + zo), dtype.minimum, dtype.maximum)

    return Abs(zi, zo, multiplier, shift, make_table(entry, dtype, dtype))


def _run_abs(params: Abs | Elementwise, x: Array) -> tuple[Array, ...]:
    """Run ABS: T[S, *shape] -> T[S, *shape]."""
    return (look_up(params.table, x) if isinstance(params, Abs) else np.asarray(np.abs(x)),)


@dataclass(frozen=True, eq=False)
class Clamped:
    """The params of one operator of the RELU family.

    Attributes:
        input_zero_point: Zero point of the input.
        output_zero_point: Zero point of the output.
        multiplier: int32.
        shift: positive is left.
        minimum: smallest quantized value.
        maximum: largest quantized value.
        table: T[256] or T[65536], by the raw bits of the quantized value.
    """

    input_zero_point: int
    output_zero_point: int
    multiplier: int
    shift: int
    minimum: int
    maximum: int
    table: Table


def _lower(
    node: Node,  # noqa: ARG001
    operands: Operands,
    bounds: tuple[str, str],
    allowed: Collection[DType],
    keeps_values: bool = False,
) -> Clamped:
    """Decide the params.

    Args:
        node: the node.
        operands: Operands of the node.
        bounds: names of the fused activations (`activation_range`) with this lower and upper bound.
        allowed: types that TFLite's kernel takes.
        keeps_values: Clamp without rescaling, as RELU6 of TensorFlow Lite Micro.

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take, int16 with a zero point, or a bound that TensorFlow
            Lite Micro refuses.
        GraphError: a tensor without scale.
    """
    dtype, si, zi, so, zo = quantized_ends(operands, allowed)
    if keeps_values:
        so, zo = si, zi
        six = int(zi + round_half_away(np.float32(6) / si))
        if six > dtype.maximum:
            raise UnsupportedError(f"6 is {six} as a quantized value; TensorFlow Lite Micro allows {dtype.maximum}")
    multiplier, shift = scalar_multiplier(si / so)
    low = activation_range(bounds[0], so, zo, dtype.minimum, dtype.maximum)[0]
    high = activation_range(bounds[1], so, zo, dtype.minimum, dtype.maximum)[1]

    def entry(code: Integers) -> Integers:
        return np.clip(wrap_int32(mbq(code - zi, multiplier, shift) + zo), low, high)

    return Clamped(zi, zo, multiplier, shift, low, high, make_table(entry, dtype, dtype))


def _run(params: Clamped, x: Array) -> tuple[Array, ...]:
    return (look_up(params.table, x),)


def _clamp(summary: str, bounds: tuple[str, str], allowed: Collection[DType]) -> Kernel:
    return Kernel(
        partial(_lower, bounds=bounds, allowed=allowed),
        _run,
        f"{summary}, rescaled to the output",
        "TFLite kernels/activations.cc (QuantizedReluX)",
    )


@dataclass(frozen=True, eq=False)
class HardSwish:
    """The params of one HARD_SWISH.

    Attributes:
        input_zero_point: Zero point of the input.
        output_zero_point: Zero point of the output.
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


def _lower_hard_swish(node: Node, operands: Operands) -> HardSwish:  # noqa: ARG001
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


def _run_hard_swish(params: HardSwish, x: Array) -> tuple[Array, ...]:
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


KERNELS = {
    "relu": _clamp("max(x, 0)", ("relu", "relu"), (*EIGHT_BITS, DType.INT16)),
    "relu6": _clamp("min(max(x, 0), 6)", ("relu6", "relu6"), (*EIGHT_BITS, DType.INT16)),
    "relu_0_to_1": _clamp("min(max(x, 0), 1)", ("relu", "relu_n1_to_1"), EIGHT_BITS),
    "relu_n1_to_1": _clamp("min(max(x, -1), 1)", ("relu_n1_to_1", "relu_n1_to_1"), EIGHT_BITS),
    "abs": Kernel(_lower_abs, _run_abs,
        "|x| in TFLite's integer arithmetic", "TFLite kernels/elementwise.cc (AbsEval)"),
    "hard_swish": Kernel(_lower_hard_swish, _run_hard_swish,
        "x * relu6(x + 3) / 6, in TFLite's 16-bit integer arithmetic (docs/rules/tflite/index.md), made into a table",
        "TFLite kernels/activations.cc (HardSwishPrepare) and internal/reference/hard_swish.h"),
}  # fmt: skip
