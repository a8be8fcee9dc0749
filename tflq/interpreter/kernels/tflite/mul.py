"""MUL and DIV, elementwise with broadcasting and a fused activation, in integers as TFLite.

Source: docs/rules/tflite/index.md.

MUL: y = clamp(MBQ((x_1 - z_1) * (x_2 - z_2), m, s) + z_o), int32; the product of two int16 fits. The real multiplier is
f32(f32(s_1 * s_2) / s_o): float32 throughout, unlike most operators (TFLM: in float64). XNNPACK multiplies the product
by it in float32, half to even, in place of MBQ. int16 inputs with an 8-bit output take the scales
for powers of two and ignore them: y = z_o + clamp(RDBP(SRDHM16(x_1, x_2), 8)).

DIV: a = x_1 - z_1, b = x_2 - z_2, both negated if b < 0; (r, k) = 1 / b (gemmlowp.py, 31 integer bits); h = number of
sign bits of a minus 1; u = SRDHM(a << h, r); y = clamp(RDBP(SRDHM(u, m), k + h - e) + z_o) with (m, e) of f32(s_1 /
f32(s_2 s_o)). The exponent reaches beyond 31, for which C++ leaves RDBP undefined: the rule follows x86
(undefined_shifts.py), which saturates tiny quotients. int32 without quantization: the quotient toward zero.

A divisor of 0 is refused at run time, as in LiteRT (TensorFlow 2.21 refuses the code 0 instead).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.arrays import Integers
from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.binary import (
    ComplexProduct,
    PlainBinary,
    clamp_in_place,
    lower_complex,
    lower_plain,
    run_complex,
    run_plain,
)
from tflq.interpreter.kernels.tflite.rescale import Rounding, round_product_in_float32
from tflq.interpreter.kernels.tflite.undefined_shifts import rounding_divide_by_pot_x86
from tflq.interpreter.numerics.fixed_point import (
    activation_range,
    quantize_multiplier,
    rounding_divide_by_pot,
    saturating_rounding_doubling_high_mul,
    wrap_int32,
)
from tflq.interpreter.numerics.fixed_point import multiply_by_quantized_multiplier as mbq
from tflq.interpreter.numerics.fixed_point import saturating_rounding_doubling_high_mul as srdhm
from tflq.interpreter.numerics.gemmlowp import bit_length, reciprocal
from tflq.interpreter.numerics.lookup_tables import RescaledPair, is_used, look_up_pairs, make_pairs
from tflq.interpreter.operands.checks import (
    EIGHT_BITS,
    is_quantized,
    per_tensor,
    require_broadcast,
    require_same_type,
    require_symmetric,
    require_type,
)
from tflq.interpreter.registry import Kernel
from tflq.interpreter.samples import align

PLAIN_TYPES = (DType.FLOAT16, DType.INT16, DType.INT32, DType.INT64, DType.UINT32)


@dataclass(frozen=True, eq=False)
class QuantizedProduct(RescaledPair):
    """The params of one MUL.

    Attributes:
        narrowing: whether int16 inputs meet an 8-bit output, without rescaling.
        scale: Real multiplier that replaces MBQ, as FLOAT32 of `Rounding`; None if MBQ runs.
    """

    narrowing: bool = False
    scale: np.float32 | None = None


def _lower_mul(
    node: Node, operands: Operands, rounding: Rounding = Rounding.DOUBLE, wide_scales: bool = False
) -> QuantizedProduct | PlainBinary | ComplexProduct:
    """Decide the params of MUL.

    Args:
        node: MUL.
        operands: Operands of the node.
        rounding: Last step of 8 bits, DOUBLE or FLOAT32.
        wide_scales: Whether the real multiplier is computed in float64.

    Raises:
        UnsupportedError: types that TFLite's kernel does not take.
        GraphError: shapes that do not broadcast, or a tensor without scale.
    """
    first, second, output = operands.input(0), operands.input(1), operands.output()
    dtype = require_type(first, (*EIGHT_BITS, *PLAIN_TYPES, DType.COMPLEX64))
    if dtype is DType.COMPLEX64:
        return lower_complex(node, operands)
    if dtype not in EIGHT_BITS and not (dtype is DType.INT16 and is_quantized(output)):
        return lower_plain("mul", node, operands, PLAIN_TYPES)
    require_same_type(first, second)
    require_broadcast(first, second)
    (so, zo) = per_tensor(output)
    activation = node.attributes.text("fused_activation_function", "none")
    low, high = activation_range(activation, so, zo, output.dtype.minimum, output.dtype.maximum)
    if dtype is DType.INT16 and output.dtype in EIGHT_BITS:
        return _narrowing(operands, QuantizedProduct((0, 0), zo, 0, 0, low, high, output.dtype, narrowing=True))
    require_same_type(first, output)
    if dtype is DType.INT16:
        require_symmetric(first, second, output)
    (s1, z1), (s2, z2) = per_tensor(first), per_tensor(second)
    ratio = float(s1) * float(s2) / float(so) if wide_scales else float(s1 * s2 / so)
    multiplier, shift = quantize_multiplier(ratio)
    params = QuantizedProduct((z1, z2), zo, int(multiplier), int(shift), low, high, dtype)
    if dtype not in EIGHT_BITS:
        return params
    if rounding is Rounding.FLOAT32:
        params = replace(params, scale=s1 * s2 / so)
    return replace(params, pairs=make_pairs(lambda x, y: _compute(params, x, y), dtype, dtype, dtype))


def _run_mul(params: QuantizedProduct | PlainBinary | ComplexProduct, first: Array, second: Array) -> tuple[Array, ...]:
    """Run MUL: T[S or 1, *shape] twice, shapes broadcast -> T[S, *shape]."""
    if isinstance(params, ComplexProduct):
        return run_complex(first, second)
    if isinstance(params, PlainBinary):
        return run_plain(params, first, second)
    x, y = align(first, second)
    if is_used(params.pairs):
        return (look_up_pairs(params.pairs, x, y),)
    if params.narrowing:
        product = rounding_divide_by_pot(saturating_rounding_doubling_high_mul(x, y, 16), 8)
        result = np.clip(product + params.output_zero_point, params.minimum, params.maximum)
    else:
        result = _compute(params, x.astype(np.int64), y.astype(np.int64))
    return (result.astype(params.dtype.storage),)


def _narrowing(operands: Operands, params: QuantizedProduct) -> QuantizedProduct:
    first, second = operands.input(0), operands.input(1)
    if first.shape != second.shape:
        raise UnsupportedError(
            f"int16 inputs with an 8-bit output take equal shapes, found {first.shape} and {second.shape}; "
            f"TFLite reads beyond its inputs there"
        )
    return params


def _compute(params: QuantizedProduct, x: Integers, y: Integers) -> Integers:
    z1, z2 = params.input_zero_points
    product = wrap_int32((x - z1) * (y - z2))
    if params.scale is None:
        rescaled = mbq(product, params.multiplier, params.shift)
    else:
        rescaled = round_product_in_float32(product, params.scale)
    return np.clip(wrap_int32(rescaled + params.output_zero_point), params.minimum, params.maximum)


def _lower_div(node: Node, operands: Operands) -> RescaledPair | PlainBinary:
    """Decide the params of DIV.

    Raises:
        UnsupportedError: types that TFLite's kernel does not take.
        GraphError: shapes that do not broadcast, or a tensor without scale.
    """
    first, second, output = operands.input(0), operands.input(1), operands.output()
    dtype = require_type(first, (*EIGHT_BITS, DType.INT16, DType.INT32))
    if dtype is DType.INT32:
        return lower_plain("div", node, operands, (DType.INT32,))
    require_same_type(first, second, output)
    require_broadcast(first, second)
    (s1, z1), (s2, z2), (so, zo) = per_tensor(first), per_tensor(second), per_tensor(output)
    multiplier, shift = quantize_multiplier(float(s1 / (s2 * so)))
    activation = node.attributes.text("fused_activation_function", "none")
    low, high = activation_range(activation, so, zo, dtype.minimum, dtype.maximum)
    params = RescaledPair((z1, z2), zo, int(multiplier), int(shift), low, high, dtype)
    if dtype is DType.INT16:
        return params

    def quotient(x: Integers, y: Integers) -> Integers:
        return _divide(params, x - z1, np.where(y == z2, 1, y - z2))  # the entry of a divisor of 0 is never read

    return replace(params, pairs=make_pairs(quotient, dtype, dtype, dtype))


def _run_div(params: RescaledPair | PlainBinary, first: Array, second: Array) -> tuple[Array, ...]:
    """Run DIV: T[S or 1, *shape] twice, shapes broadcast -> T[S, *shape].

    Raises:
        UnsupportedError: a divisor is 0.
    """
    x, y = align(first, second)
    zero = 0 if isinstance(params, PlainBinary) else params.input_zero_points[1]
    if np.any(np.equal(y, zero)):
        raise UnsupportedError(f"div: a divisor is 0 (code {zero}); TFLite refuses it")
    if isinstance(params, PlainBinary):
        return (_divide_plain(params, x, y),)
    if is_used(params.pairs):
        return (look_up_pairs(params.pairs, x, y),)
    z1, z2 = params.input_zero_points
    return (_divide(params, x.astype(np.int64) - z1, y.astype(np.int64) - z2).astype(params.dtype.storage),)


def _divide(params: RescaledPair, a: Integers, b: Integers) -> Integers:
    a, b = np.broadcast_arrays(np.where(b < 0, -a, a), np.abs(b))
    mantissa, over_unit = reciprocal(b, 31)
    headroom = 31 - bit_length(np.where(a < 0, -a - 1, a))
    quotient = srdhm(wrap_int32(a << headroom), mantissa)
    scaled = srdhm(quotient, params.multiplier)
    result = rounding_divide_by_pot_x86(scaled, over_unit + headroom - params.shift)
    return np.clip(wrap_int32(result + params.output_zero_point), params.minimum, params.maximum)


def _divide_plain(params: PlainBinary, x: Array, y: Array) -> Array:
    dividend, divisor = x.astype(np.int64), y.astype(np.int64)
    if np.any((dividend == -(1 << 31)) & (divisor == -1)):
        raise UnsupportedError("div: -2^31 / -1 does not fit int32; TFLite ends the process there")
    quotient = np.abs(dividend) // np.abs(divisor)
    signed = np.where((dividend < 0) != (divisor < 0), -quotient, quotient)
    return clamp_in_place(signed.astype(np.int32), params.minimum, params.maximum)


KERNELS = {
    "mul": Kernel(_lower_mul, _run_mul,
        "x_1 * x_2, elementwise with broadcasting and a fused activation, in integers as TFLite "
            "(docs/rules/tflite/index.md)",
        "TFLite kernels/mul.cc and internal/reference/integer_ops/mul.h, internal/reference/mul.h"),
    "div": Kernel(_lower_div, _run_div,
        "x_1 / x_2, elementwise with broadcasting and a fused activation, in TFLite's integers "
            "(docs/rules/tflite/index.md)",
        "TFLite kernels/div.cc, internal/reference/div.h (DivElementwise)"),
}  # fmt: skip
