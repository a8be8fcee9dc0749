"""SUM over some axes, in TFLite's integer arithmetic (docs/tflite.md).

int8, uint8, int16: y = clamp(MBQ(sum - z_i n, of s_i / s_o in float64) + z_o); the sum is an int32 that wraps.
TFLite's reference kernel reads int8 and int16 data as uint8, whatever they are; the rule here is the one it states and
follows for uint8. int32, int64 without quantisation: the sum in the tensor's type, which wraps.

Source: TFLite kernels/reduce.cc (EvalSum), internal/reference/reduce.h (QuantizedMeanOrSum).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.reduction import PlainReduction, lower_plain_reduction, run_fold
from tflq.interpreter.numerics.fixed_point import multiply_by_quantized_multiplier as mbq
from tflq.interpreter.numerics.fixed_point import quantize_multiplier, wrap_int32
from tflq.interpreter.operands.checks import (
    EIGHT_BITS,
    per_tensor,
    require_same_type,
    require_type,
    require_zero_points_of_zero,
)
from tflq.interpreter.operands.reduction_axes import Reduction, lower_reduction, shape_of_result

PLAIN_TYPES = (DType.INT32, DType.INT64)


@dataclass(frozen=True)
class Sum:
    """The integers of one SUM.

    Attributes:
        reduction: axes and count.
        dtype: of input and output.
        input_zero_point: of the input.
        output_zero_point: of the output.
        multiplier: int32.
        shift: positive is left.
    """

    reduction: Reduction
    dtype: DType
    input_zero_point: int
    output_zero_point: int
    multiplier: int
    shift: int


def lower(node: Node, operands: Operands) -> Sum | PlainReduction:
    """Decide the integers of SUM.

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take.
        GraphError: a tensor without scale; an axis out of range, or computed at run time.
    """
    source, output = operands.input(0), operands.output()
    dtype = require_type(source, (*EIGHT_BITS, DType.INT16, *PLAIN_TYPES))
    if dtype in PLAIN_TYPES:
        return lower_plain_reduction(node, operands, PLAIN_TYPES)
    require_same_type(source, output)
    if dtype is DType.INT16:
        require_zero_points_of_zero(source, output)
    (si, zi), (so, zo) = per_tensor(source), per_tensor(output)
    multiplier, shift = quantize_multiplier(float(si) / float(so))
    return Sum(lower_reduction(node, operands), dtype, zi, zo, int(multiplier), int(shift))


def run(params: Sum | PlainReduction, x: Array, *_axes: Array) -> tuple[Array, ...]:
    """Run SUM: T[S, *shape] -> T[S, *shape without the axes, or with 1 there]."""
    if isinstance(params, PlainReduction):
        return run_fold(params, x, operation=np.add)
    shape = shape_of_result(params.reduction, x)
    if x.size == 0:
        return (np.zeros(shape, x.dtype),)
    total = np.add.reduce(x, axis=tuple(axis + 1 for axis in params.reduction.axes), dtype=np.int64)
    accumulator = wrap_int32(total - params.input_zero_point * params.reduction.count)
    rescaled = mbq(accumulator, params.multiplier, params.shift) + params.output_zero_point
    result = np.clip(wrap_int32(rescaled), params.dtype.minimum, params.dtype.maximum)
    return (result.astype(x.dtype).reshape(shape),)
