"""RELU, RELU6, RELU_N1_TO_1 and RELU_0_TO_1 as operators of their own: a rescale and a clamp, made into a table.

y = clamp(MBQ(x - z_i, m, s) + z_o, q(low), q(high)), q(v) = z_o + round_half_away(f32(v / s_o)); (m, s) is the
multiplier of f32(s_i / s_o). TFLite rescales here, TFLM only clamps.

Source: TFLite kernels/activations.cc (ReluPrepare, QuantizedReluX) and internal/reference/reference_ops.h (ReluX).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

import numpy as np

from tflq.arrays import Integers
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.numerics.fixed_point import activation_range, scalar_multiplier, wrap_int32
from tflq.interpreter.numerics.fixed_point import multiply_by_quantized_multiplier as mbq
from tflq.interpreter.numerics.lookup_tables import Table, look_up, make_table
from tflq.interpreter.operands.checks import EIGHT_BITS, quantised_ends
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True, eq=False)
class Clamped:
    """The params of one operator of the RELU family.

    Attributes:
        input_zero_point: of the input.
        output_zero_point: of the output.
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


def _lower(node: Node, operands: Operands, bounds: tuple[str, str], allowed: Collection[DType]) -> Clamped:  # noqa: ARG001
    """Decide the params.

    Args:
        node: the node.
        operands: of the node.
        bounds: names of the fused activations (`activation_range`) whose lower and upper bound these are.
        allowed: types that TFLite's kernel takes.

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take, or int16 with a zero point.
        GraphError: a tensor without scale.
    """
    dtype, si, zi, so, zo = quantised_ends(operands, allowed)
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


KERNELS = {
    "relu": _clamp("max(x, 0)", ("relu", "relu"), (*EIGHT_BITS, DType.INT16)),
    "relu6": _clamp("min(max(x, 0), 6)", ("relu6", "relu6"), (*EIGHT_BITS, DType.INT16)),
    "relu_0_to_1": _clamp("min(max(x, 0), 1)", ("relu", "relu_n1_to_1"), EIGHT_BITS),
    "relu_n1_to_1": _clamp("min(max(x, -1), 1)", ("relu_n1_to_1", "relu_n1_to_1"), EIGHT_BITS),
}
