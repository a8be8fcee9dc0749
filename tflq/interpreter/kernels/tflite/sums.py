"""ADD and SUB, elementwise with broadcasting and a fused activation, in integers as TFLite (docs/tflite.md).

int8, uint8: rescaled_sum.py. int16: rescaled_sum.py, or power_of_two_sum.py where the options and scales ask for it.
Integers without quantisation: plain/binary.py.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

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
from tflq.interpreter.registry import Kernel

_Params = RescaledSum | PowerOfTwoSum | PlainBinary


def _lower(node: Node, operands: Operands, sign: int, plain_types: Collection[DType]) -> _Params:
    """Decide the params of ADD (sign 1) or SUB (sign -1).

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take, or scales at which it aborts.
        GraphError: shapes that do not broadcast, or a tensor without scale.
    """
    first, second, output = operands.input(0), operands.input(1), operands.output()
    dtype = require_type(first, (*EIGHT_BITS, DType.INT16, *plain_types))
    has_scales = any(map(is_quantised, (first, second, output)))
    if dtype not in EIGHT_BITS and not (dtype is DType.INT16 and has_scales):
        return lower_plain("add" if sign > 0 else "sub", node, operands, plain_types)
    require_same_type(first, second, output)
    require_broadcast(first, second)
    if dtype is DType.INT16:
        require_zero_points_of_zero(first, second, output)
        if has_power_of_two_scales(node, operands):
            return lower_power_of_two_sum(sign, node, operands)
    return lower_rescaled_sum(sign, node, operands)


def _run(params: _Params, first: Array, second: Array) -> tuple[Array, ...]:
    if isinstance(params, RescaledSum):
        return run_rescaled_sum(params, first, second)
    if isinstance(params, PowerOfTwoSum):
        return run_power_of_two_sum(params, first, second)
    return run_plain(params, first, second)


KERNELS = {
    "add": Kernel(
        partial(_lower, sign=1, plain_types=(DType.FLOAT16, DType.INT16, DType.INT32, DType.INT64)),
        _run,
        "x_1 + x_2 and a fused activation",
        "TFLite kernels/add.cc",
    ),
    "sub": Kernel(
        partial(_lower, sign=-1, plain_types=(DType.INT32, DType.INT64)),
        _run,
        "x_1 - x_2 and a fused activation",
        "TFLite kernels/sub.cc",
    ),
}
