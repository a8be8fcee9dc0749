"""LEAKY_RELU and PRELU: x if x >= 0, else alpha * x, in TFLite's integer arithmetic (docs/rules/tflite/index.md).

LEAKY_RELU: v = x - z_i; y = clamp(z_o + MBQ(v, of f32(s_i / s_o))) for v >= 0, else clamp(z_o + MBQ(v, of f32(f32(s_i
alpha) / s_o))). A negative alpha multiplies by its magnitude and negates after the rounding (TensorFlow 2.21 passes the
negative multiplier on, which differs in exact ties only). int8, uint8, int16 with zero points 0. TFLM computes both
multipliers in float64: s_i / s_o and s_i alpha / s_o. XNNPACK, 8 bits: y = clamp(((v m + 128) >> 8) + z_o), m =
half_to_even(256 f32(s_i / s_o)) for v >= 0, else half_to_even(256 f32(f32(s_i / s_o) alpha)).

PRELU: v = x - z_i; y = clamp(z_o + MBQ(v, of f32(s_i / s_o))) for v >= 0, else clamp(z_o + MBQ(v * (a - z_a), of
f32(f32(s_i s_a) / s_o))). int8 and uint8 with an alpha of the same type, int16 with an int8 alpha. TFLM: in float64.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.arrays import Integers
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.tflite.rescale import Rounding
from tflq.interpreter.numerics.fixed_point import multiply_by_quantized_multiplier as mbq
from tflq.interpreter.numerics.fixed_point import norm, scalar_multiplier, wrap_int32
from tflq.interpreter.numerics.lookup_tables import Table, is_used, look_up, look_up_pairs, make_pairs, make_table
from tflq.interpreter.operands.checks import (
    EIGHT_BITS,
    per_tensor,
    quantized_ends,
    require_alpha_fits,
    require_same_type,
    require_type,
)
from tflq.interpreter.registry import Kernel
from tflq.interpreter.samples import align


@dataclass(frozen=True, eq=False)
class LeakyRelu:
    """The params of one LEAKY_RELU.

    Attributes:
        input_zero_point: Zero point of the input.
        output_zero_point: Zero point of the output.
        identity_multiplier: int32, for v >= 0.
        identity_shift: positive is left.
        alpha_multiplier: int32, for v < 0; negative if alpha is.
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


@dataclass(frozen=True, eq=False)
class EightBitLeakyRelu:
    """The params of one LEAKY_RELU of 8 bits as XNNPACK computes it.

    Attributes:
        input_zero_point: Zero point of the input.
        output_zero_point: Zero point of the output.
        multipliers: Multipliers for v >= 0 and for v < 0, in 1/256.
        table: Table T[256], by the raw bits of the quantized value.
    """

    input_zero_point: int
    output_zero_point: int
    multipliers: tuple[int, int]
    table: Table


def _lower_in_8_bits(node: Node, operands: Operands) -> EightBitLeakyRelu:
    dtype, si, zi, so, zo = quantized_ends(operands, EIGHT_BITS)
    alpha, unit = np.float32(node.attributes.real("alpha", 0.0)), np.float32(256)
    positive, negative = int(np.rint(unit * (si / so))), int(np.rint(unit * (si / so * alpha)))

    def entry(code: Integers) -> Integers:
        value = code - zi
        scaled = norm(value * np.where(value >= 0, positive, negative), 8)
        return np.clip(scaled + zo, dtype.minimum, dtype.maximum)

    return EightBitLeakyRelu(zi, zo, (positive, negative), make_table(entry, dtype, dtype))


def _lower_leaky_relu(
    node: Node, operands: Operands, wide_scales: bool = False, rounding: Rounding = Rounding.DOUBLE
) -> LeakyRelu | EightBitLeakyRelu:
    """Decide the params.

    Args:
        node: LEAKY_RELU.
        operands: Operands of the node.
        wide_scales: Whether multipliers are computed in float64.
        rounding: DOUBLE, or FLOAT32 for XNNPACK's rule of 8 bits.

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take, or int16 with a zero point.
        GraphError: a tensor without scale.
    """
    if rounding is Rounding.FLOAT32 and operands.input(0).dtype in EIGHT_BITS:
        return _lower_in_8_bits(node, operands)
    dtype, si, zi, so, zo = quantized_ends(operands, (*EIGHT_BITS, DType.INT16))
    real = np.float64 if wide_scales else np.float32
    source, alpha, target = real(si), real(np.float32(node.attributes.real("alpha", 0.0))), real(so)
    alpha_multiplier, alpha_shift = scalar_multiplier(source * alpha / target)
    multiplier, shift = scalar_multiplier(source / target)
    sign = -1 if alpha_multiplier < 0 else 1

    def entry(code: Integers) -> Integers:
        value = code - zi
        negative = sign * mbq(value, abs(alpha_multiplier), alpha_shift)
        scaled = np.where(value >= 0, mbq(value, multiplier, shift), negative)
        return np.clip(wrap_int32(scaled + zo), dtype.minimum, dtype.maximum)

    table = make_table(entry, dtype, dtype)
    return LeakyRelu(zi, zo, multiplier, shift, alpha_multiplier, alpha_shift, table)


def _run_leaky_relu(params: LeakyRelu | EightBitLeakyRelu, x: Array) -> tuple[Array, ...]:
    """Run LEAKY_RELU: T[S, *shape] -> T[S, *shape]."""
    return (look_up(params.table, x),)


@dataclass(frozen=True, eq=False)
class Prelu:
    """The params of one PRELU.

    Attributes:
        input_zero_point: Zero point of the input.
        alpha_zero_point: Zero point of alpha.
        output_zero_point: Zero point of the output.
        identity_multiplier: int32, for v >= 0.
        identity_shift: positive is left.
        alpha_multiplier: int32, for v < 0.
        alpha_shift: positive is left.
        dtype: Type of input and output.
        pairs: T8[65536]: the result of every pair of quantized values, by 256 raw(x) + raw(alpha); None for int16.
    """

    input_zero_point: int
    alpha_zero_point: int
    output_zero_point: int
    identity_multiplier: int
    identity_shift: int
    alpha_multiplier: int
    alpha_shift: int
    dtype: DType
    pairs: Array | None = None


def _lower_prelu(node: Node, operands: Operands, wide_scales: bool = False) -> Prelu:  # noqa: ARG001
    """Decide the params; with `wide_scales` the multipliers are computed in float64.

    Raises:
        UnsupportedError: types that TFLite's kernel does not take.
        GraphError: a tensor without scale, or an alpha that does not broadcast to the input's shape.
    """
    source, alpha, output = operands.input(0), operands.input(1), operands.output()
    dtype = require_type(source, (*EIGHT_BITS, DType.INT16))
    require_same_type(source, output)
    require_type(alpha, (DType.INT8,) if dtype is DType.INT16 else (dtype,))
    require_alpha_fits(operands)
    (si, zi), (sa, za), (so, zo) = per_tensor(source), per_tensor(alpha), per_tensor(output)
    real = np.float64 if wide_scales else np.float32
    scale, target = real(si), real(so)
    (m1, e1), (m2, e2) = (scalar_multiplier(ratio) for ratio in (scale / target, scale * real(sa) / target))
    params = Prelu(zi, za, zo, m1, e1, m2, e2, dtype)
    if dtype is DType.INT16:
        return params
    return replace(params, pairs=make_pairs(lambda x, y: _compute(params, x, y), dtype, dtype, dtype))


def _run_prelu(params: Prelu, x: Array, alpha: Array) -> tuple[Array, ...]:
    """Run PRELU: T[S, *shape], alpha [S or 1, ...] -> T[S, *shape]."""
    x, alpha = align(x, alpha)
    if is_used(params.pairs):
        return (look_up_pairs(params.pairs, x, alpha),)
    return (_compute(params, x.astype(np.int64), alpha.astype(np.int64)).astype(params.dtype.storage),)


def _compute(params: Prelu, x: Integers, alpha: Integers) -> Integers:
    value = x - params.input_zero_point
    product = wrap_int32(value * (alpha - params.alpha_zero_point))
    scaled = np.where(
        value >= 0,
        mbq(value, params.identity_multiplier, params.identity_shift),
        mbq(product, params.alpha_multiplier, params.alpha_shift),
    )
    result = wrap_int32(scaled + params.output_zero_point)
    return np.clip(result, params.dtype.minimum, params.dtype.maximum)


KERNELS = {
    "leaky_relu": Kernel(_lower_leaky_relu, _run_leaky_relu,
        "x where x >= 0, else alpha x, in TFLite's integer arithmetic (docs/rules/tflite/index.md)",
        "TFLite kernels/activations.cc (LeakyReluPrepare) and internal/reference/leaky_relu.h"),
    "prelu": Kernel(_lower_prelu, _run_prelu,
        "x where x >= 0, else alpha * x with one alpha per element of a shape that broadcasts, in TFLite's integers",
        "TFLite kernels/activations.cc (PreluPrepare), internal/reference/prelu.h"),
}  # fmt: skip
