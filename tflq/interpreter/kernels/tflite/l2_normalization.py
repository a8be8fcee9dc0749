"""L2_NORMALIZATION over the last axis: x / |x|, in TFLite's integer arithmetic. int8, uint8.

v = x - z_i; (r, k) = 1 / sqrt(sum of v^2) (integer_functions.py), the sum an int32 that wraps. int8:
y = clamp(MBQ(v, r, k + 7)); uint8: y = clamp(RDBP(SRDHM(128 v, r), -k) + 128). The output has scale 1/128 and zero
point 0 or 128.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import lower_unary
from tflq.interpreter.numerics.fixed_point import (
    multiply_by_quantized_multiplier,
    rounding_divide_by_pot,
)
from tflq.interpreter.numerics.fixed_point import saturating_rounding_doubling_high_mul as srdhm
from tflq.interpreter.numerics.integer_functions import inverse_square_root
from tflq.interpreter.operands.checks import EIGHT_BITS, per_tensor
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True)
class L2Normalization:
    """The params of one L2_NORMALIZATION: type and the input's zero point."""

    dtype: DType
    input_zero_point: int


def lower(node: Node, operands: Operands) -> L2Normalization:
    """Check the operands.

    Raises:
        UnsupportedError: a type, an output quantization or a fused activation that TFLite's kernel does not take.
        GraphError: a tensor without scale, or a scalar.
    """
    dtype = lower_unary(operands, EIGHT_BITS).dtype
    require_normalizable(node, operands)
    scale, zero_point = per_tensor(operands.output())
    wanted = 0 if dtype is DType.INT8 else 128
    if float(scale) != 1 / 128 or zero_point != wanted:
        raise UnsupportedError(
            f"the output has scale {scale} and zero point {zero_point}; TFLite's {dtype.value} l2_normalization takes "
            f"1/128 and {wanted}"
        )
    return L2Normalization(dtype, per_tensor(operands.input(0))[1])


def run(params: L2Normalization, x: Array) -> tuple[Array, ...]:
    """Run L2_NORMALIZATION: T[S, ..., C] -> T[S, ..., C].

    Raises:
        UnsupportedError: the sum of squares reaches 2^31 and overflows TFLite's int32.
    """
    value = x.astype(np.int64) - params.input_zero_point
    total = np.sum(value * value, axis=-1, keepdims=True)
    if total.size and int(total.max()) >= 1 << 31:
        raise UnsupportedError("l2_normalization: a sum of squares reaches 2^31, where TFLite's int32 overflows")
    multiplier, shift = inverse_square_root(total)
    if params.dtype is DType.INT8:
        result = multiply_by_quantized_multiplier(value, multiplier, shift + 7)
    else:
        result = rounding_divide_by_pot(srdhm(128 * value, multiplier), -shift) + 128
    return (np.clip(result, params.dtype.minimum, params.dtype.maximum).astype(x.dtype),)


def require_normalizable(node: Node, operands: Operands) -> None:
    """Check that there is an axis and no fused activation; raises as `lower`."""
    if not operands.input(0).shape:
        raise GraphError("the input is a scalar; l2_normalization takes one axis or more")
    activation = node.attributes.text("fused_activation_function", "none")
    if activation != "none":
        raise UnsupportedError(f"fused activation '{activation}'; l2_normalization takes none")


KERNELS = {
    "l2_normalization": Kernel(lower, run,
        "L2_NORMALIZATION over the last axis: x / |x|, in TFLite's integer arithmetic. int8, uint8",
        "TFLite kernels/l2norm.cc, internal/reference/integer_ops/l2normalization.h, internal/reference/ "
        "l2normalization.h"),
}  # fmt: skip
