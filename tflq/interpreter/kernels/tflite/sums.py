"""ADD, SUB and SQUARED_DIFFERENCE, elementwise with broadcasting, in integers as TFLite has them.

ADD and SUB of int16 with three scales that are powers of two: one input is shifted, then they are added, saturating.

Used only if the option pot_scale_int16 is set (the schema's default) and each scale is within 1e-3 of a power of two,
measured by its base-2 logarithm in float32. y = clamp(RDBP(x_1, e_1) ± RDBP(x_2, e_2)), one of e_1, e_2 is 0.

int8, uint8: rescaled_sum.py. int16: rescaled_sum.py, or shifts if the options and scales require it. Integers without
quantization: plain/binary.py.

SQUARED_DIFFERENCE: int8: v_k = MBQ((x_k - z_k) << 7, of s_k / t), t = f32(2 max(s_1, s_2)); y = clamp(MBQ((v_1 -
v_2)^2, of t^2 / f32(2^14 s_o)) + z_o), quotients in float64; the square stays below 2^31. int32 without quantization
wraps.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

import numpy as np

from tflq.arrays import Integers
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.kernels.plain.binary import PlainBinary, lower_plain, run_plain
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_binary
from tflq.interpreter.kernels.tflite.rescale import Rounding
from tflq.interpreter.kernels.tflite.rescaled_sum import (
    RescaledPair,
    RescaledSum,
    WeightedSum,
    add_vectors,
    lower_rescaled_sum,
    lower_weighted_sum,
    run_rescaled_sum,
    run_weighted_sum,
)
from tflq.interpreter.numerics.fixed_point import (
    activation_range,
    quantize_multiplier_smaller_than_one,
    round_half_away,
)
from tflq.interpreter.numerics.gemmlowp import rounding_divide_int16_by_pot
from tflq.interpreter.numerics.lookup_tables import look_up_pairs, make_pairs
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


@dataclass(frozen=True)
class PowerOfTwoSum:
    """The params of one ADD or SUB with scales that are powers of two.

    Attributes:
        sign: Sign of the second input: 1 for ADD, -1 for SUB.
        right_shifts: Right shifts of both inputs; one is 0.
        minimum: smallest quantized value after the fused activation.
        maximum: largest quantized value.
    """

    sign: int
    right_shifts: tuple[int, int]
    minimum: int
    maximum: int


def power_of_two_exponent(scale: np.float32) -> int | None:
    """Return the exponent of a scale that TFLite takes for a power of two, or None.

    Source: TFLite kernels/internal/quantization_util.cc, CheckedLog2.
    """
    one = np.float32(1)
    natural = np.float32(np.log(np.float64(scale)))
    log2 = natural * (one / np.float32(np.log(2.0)))
    rounded = np.float32(round_half_away(log2))
    return int(rounded) if abs(log2 - rounded) < np.float32(1e-3) else None


def has_power_of_two_scales(node: Node, operands: Operands) -> bool:
    """Whether TFLite takes this path for an int16 ADD or SUB."""
    tensors = (operands.input(0), operands.input(1), operands.output())
    asked = node.attributes.boolean("pot_scale_int16", True)
    return asked and all(power_of_two_exponent(per_tensor(t)[0]) is not None for t in tensors)


def lower_power_of_two_sum(sign: int, node: Node, operands: Operands) -> PowerOfTwoSum:
    """Decide the shifts.

    Raises:
        GraphError: neither input has the output's scale, or an input's is larger.
        UnsupportedError: shapes that broadcast (TFLite's ADD reads beyond its input there), or a shift above 31.
    """
    first, second, output = operands.input(0), operands.input(1), operands.output()
    shifts = (_exponent(output) - _exponent(first), _exponent(output) - _exponent(second))
    if min(shifts) != 0:
        raise GraphError(
            f"int16 with scales that are powers of two: input scales are 2^{_exponent(first)} and "
            f"2^{_exponent(second)}, the output's 2^{_exponent(output)}; one input must have the output's scale and "
            f"neither a larger one"
        )
    if max(shifts) > 31:
        raise UnsupportedError(
            f"int16 with scales that are powers of two: they differ by 2^{max(shifts)}, at most 2^31"
        )
    if sign == 1 and first.shape != second.shape:
        raise UnsupportedError(
            f"int16 ADD with scales that are powers of two takes equal shapes, found {first.shape} and {second.shape}; "
            f"TFLite reads beyond its inputs there"
        )
    activation = node.attributes.text("fused_activation_function", "none")
    low, high = activation_range(activation, per_tensor(output)[0], 0, -32768, 32767)
    return PowerOfTwoSum(sign, shifts, low, high)


def run_power_of_two_sum(params: PowerOfTwoSum, first: Array, second: Array) -> tuple[Array, ...]:
    """Run it: int16[S or 1, *shape] twice -> int16[S, *shape]."""
    x, y = align(first, second)
    e1, e2 = params.right_shifts
    total = rounding_divide_int16_by_pot(x, e1) + params.sign * rounding_divide_int16_by_pot(y, e2)
    return (np.clip(total, params.minimum, params.maximum).astype(np.int16),)


def _exponent(tensor: Tensor) -> int:
    exponent = power_of_two_exponent(per_tensor(tensor)[0])
    assert exponent is not None  # checked before by has_power_of_two_scales
    return exponent


_Params = RescaledSum | WeightedSum | PowerOfTwoSum | PlainBinary


def _lower(
    node: Node,
    operands: Operands,
    sign: int,
    plain_types: Collection[DType],
    rounding: Rounding = Rounding.DOUBLE,
) -> _Params:
    """Decide the params of ADD (sign 1) or SUB (sign -1).

    Args:
        node: ADD or SUB.
        operands: Operands of the node.
        sign: 1 or -1.
        plain_types: Types without quantization that TFLite's kernel takes.
        rounding: Last steps of 8 bits: DOUBLE; FLOAT32 for XNNPACK's weighted sum; UP for vectors (of int16, too).

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take, or scales at which it aborts.
        GraphError: shapes that do not broadcast, or a tensor without scale.
    """
    first, second, output = operands.input(0), operands.input(1), operands.output()
    dtype = require_type(first, (*EIGHT_BITS, DType.INT16, *plain_types))
    has_scales = any(map(is_quantized, (first, second, output)))
    if dtype not in EIGHT_BITS and not (dtype is DType.INT16 and has_scales):
        return lower_plain("add" if sign == 1 else "sub", node, operands, plain_types)
    require_same_type(first, second, output)
    require_broadcast(first, second)
    if dtype is DType.INT16:
        require_symmetric(first, second, output)
        if has_power_of_two_scales(node, operands):
            return lower_power_of_two_sum(sign, node, operands)
    elif rounding is Rounding.FLOAT32:
        return lower_weighted_sum(sign, node, operands)
    params = lower_rescaled_sum(sign, node, operands)
    return add_vectors(params) if rounding is Rounding.UP and first.shape == second.shape else params


def _run(params: _Params, first: Array, second: Array) -> tuple[Array, ...]:
    if isinstance(params, RescaledSum):
        return run_rescaled_sum(params, first, second)
    if isinstance(params, WeightedSum):
        return run_weighted_sum(params, first, second)
    if isinstance(params, PowerOfTwoSum):
        return run_power_of_two_sum(params, first, second)
    return run_plain(params, first, second)


LEFT_SHIFT = 7


@dataclass(frozen=True, eq=False)
class SquaredDifference(RescaledPair):
    """The params of one SQUARED_DIFFERENCE of int8.

    Attributes:
        pairs: int8[65536]: the result of every pair of quantized values, by 256 raw(x_1) + raw(x_2).
    """

    pairs: Array


def _lower_squared_difference(node: Node, operands: Operands) -> SquaredDifference | Elementwise:  # noqa: ARG001
    """Decide the params.

    Raises:
        UnsupportedError: types that TFLite's kernel does not take, or scales at which it aborts the process (an output
            scale of t^2 / 2^14 or less).
        GraphError: shapes that do not broadcast, or int8 without scale.
    """
    checked = lower_binary(operands, (DType.INT8, DType.INT32))
    if checked.dtype is DType.INT32:
        return checked
    tensors = (operands.input(0), operands.input(1), operands.output())
    (s1, z1), (s2, z2), (so, zo) = (per_tensor(tensor) for tensor in tensors)
    twice = float(np.float32(2) * max(s1, s2))
    divisor = float(np.float32(1 << 2 * LEFT_SHIFT) * so)
    (m1, e1), (m2, e2), (mo, eo) = (
        quantize_multiplier_smaller_than_one(real)
        for real in (float(s1) / twice, float(s2) / twice, twice * twice / divisor)
    )

    rule = RescaledPair(LEFT_SHIFT, (z1, z2), (m1, m2), (e1, e2), zo, mo, eo, -128, 127)

    def squared_difference(x: Integers, y: Integers) -> Integers:
        return rule.finish((rule.fine(0, x) - rule.fine(1, y)) ** 2)

    return SquaredDifference(**vars(rule), pairs=make_pairs(squared_difference, DType.INT8, DType.INT8, DType.INT8))


def _run_squared_difference(params: SquaredDifference | Elementwise, first: Array, second: Array) -> tuple[Array, ...]:
    """Run SQUARED_DIFFERENCE: T[S or 1, *shape] twice, shapes broadcast -> T[S, *shape]."""
    x, y = align(first, second)
    if isinstance(params, SquaredDifference):
        return (look_up_pairs(params.pairs, x, y),)
    difference = np.subtract(x, y)
    return (np.asarray(np.multiply(difference, difference)),)


KERNELS = {
    "add": Kernel(partial(_lower, sign=1, plain_types=(DType.FLOAT16, DType.INT16, DType.INT32, DType.INT64)), _run,
        "x_1 + x_2 and a fused activation", "TFLite kernels/add.cc, internal/reference/add.h"),
    "sub": Kernel(partial(_lower, sign=-1, plain_types=(DType.INT32, DType.INT64)), _run,
        "x_1 - x_2 and a fused activation", "TFLite kernels/sub.cc, internal/reference/sub.h"),
    "squared_difference": Kernel(_lower_squared_difference, _run_squared_difference,
        "(x_1 - x_2)^2, elementwise with broadcasting, in TFLite's integers (docs/rules/tflite/index.md)",
        "TFLite kernels/squared_difference.cc"),
}  # fmt: skip
