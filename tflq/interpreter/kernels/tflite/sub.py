"""SUB: x_1 - x_2, elementwise with broadcasting and a fused activation, in integers as TFLite (docs/tflite.md).

int8, uint8: rescaled_sum.py. int16: rescaled_sum.py, or power_of_two_sum.py where the options and scales ask for it.
Integers without quantisation: plain_binary.py. Source: TFLite kernels/sub.cc.
"""

from __future__ import annotations

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.binary import PlainBinary, lower_plain, run_plain
from tflq.interpreter.kernels.tflite.power_of_two_sum import (
    PowerOfTwoSum,
    has_power_of_two_scales,
    lower_power_of_two_sum,
    run_power_of_two_sum,
)
from tflq.interpreter.kernels.tflite.rescaled_sum import RescaledSum, lower_rescaled_sum, run_rescaled_sum
from tflq.interpreter.operands.checks import (
    EIGHT_BITS,
    is_quantised,
    require_broadcast,
    require_same_type,
    require_type,
    require_zero_points_of_zero,
)

PLAIN_TYPES = (DType.INT32, DType.INT64)


def lower(node: Node, operands: Operands) -> RescaledSum | PowerOfTwoSum | PlainBinary:
    """Decide the integers of SUB.

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take, or scales at which it aborts.
        GraphError: shapes that do not broadcast, or a tensor without scale.
    """
    first, second, output = operands.input(0), operands.input(1), operands.output()
    dtype = require_type(first, (*EIGHT_BITS, DType.INT16, *PLAIN_TYPES))
    if dtype not in EIGHT_BITS and not (dtype is DType.INT16 and is_quantised(first)):
        return lower_plain("sub", node, operands, PLAIN_TYPES)
    require_same_type(first, second, output)
    require_broadcast(first, second)
    if dtype is DType.INT16:
        require_zero_points_of_zero(first, second, output)
        if has_power_of_two_scales(node, operands):
            return lower_power_of_two_sum(-1, node, operands)
    return lower_rescaled_sum(-1, node, operands)


def run(params: RescaledSum | PowerOfTwoSum | PlainBinary, first: Array, second: Array) -> tuple[Array, ...]:
    """Run SUB: T[S or 1, *shape] twice, shapes broadcast -> T[S, *shape]."""
    if isinstance(params, RescaledSum):
        return run_rescaled_sum(params, first, second)
    if isinstance(params, PowerOfTwoSum):
        return run_power_of_two_sum(params, first, second)
    return run_plain(params, first, second)
