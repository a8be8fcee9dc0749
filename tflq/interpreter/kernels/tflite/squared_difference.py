"""SQUARED_DIFFERENCE: (x_1 - x_2)^2, elementwise with broadcasting, in TFLite's integers (docs/tflite.md).

int8: v_k = MBQ((x_k - z_k) << 7, of s_k / t), t = f32(2 max(s_1, s_2)); y = clamp(MBQ((v_1 - v_2)^2, of t^2 /
f32(2^14 s_o)) + z_o), quotients in float64; the square stays below 2^31. int32 without quantisation wraps.

Source: TFLite kernels/squared_difference.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_binary
from tflq.interpreter.kernels.tflite.rescaled_sum import RescaledPair
from tflq.interpreter.numerics.fixed_point import quantize_multiplier_smaller_than_one
from tflq.interpreter.numerics.pair_tables import look_up_pairs, make_pairs
from tflq.interpreter.operands.checks import per_tensor
from tflq.interpreter.samples import align

LEFT_SHIFT = 7


@dataclass(frozen=True, eq=False)
class SquaredDifference(RescaledPair):
    """The params of one SQUARED_DIFFERENCE of int8.

    Attributes:
        pairs: int8[65536]: the result of every pair of quantized values, by 256 raw(x_1) + raw(x_2).
    """

    pairs: Array


def lower(node: Node, operands: Operands) -> SquaredDifference | Elementwise:  # noqa: ARG001
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

    def squared(x: Integers, y: Integers) -> Integers:
        return rule.finish((rule.fine(0, x) - rule.fine(1, y)) ** 2)

    return SquaredDifference(**vars(rule), pairs=make_pairs(squared, DType.INT8, DType.INT8, DType.INT8))


def run(params: SquaredDifference | Elementwise, first: Array, second: Array) -> tuple[Array, ...]:
    """Run SQUARED_DIFFERENCE: T[S or 1, *shape] twice, shapes broadcast -> T[S, *shape]."""
    x, y = align(first, second)
    if isinstance(params, SquaredDifference):
        return (look_up_pairs(params.pairs, x, y),)
    difference = np.subtract(x, y)
    return (np.asarray(np.multiply(difference, difference)),)
