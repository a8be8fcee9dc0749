"""FLOOR_MOD: x - y floor(x / y), elementwise with broadcasting: C's remainder, plus y where their signs differ.

Source: TFLite kernels/floor_mod.cc, internal/reference/floor_mod.h.
"""

from __future__ import annotations

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_binary
from tflq.interpreter.samples import align

TYPES = (DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32, DType.INT64)


def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the operands; errors as `lower_binary`."""
    return lower_binary(operands, TYPES)


def run(params: Elementwise, first: Array, second: Array) -> tuple[Array, ...]:
    """Run FLOOR_MOD: T[S or 1, *shape] twice, shapes broadcast -> T[S, *shape].

    Raises:
        UnsupportedError: an integer divisor is 0, or the lowest int32 or int64 meets -1.
    """
    x, y = align(first, second)
    if params.dtype.is_integer:
        _check_divisors(params, x, y)
    with np.errstate(all="ignore"):
        rest = np.fmod(x, y)
        return (np.where((rest != 0) & (np.less(y, 0) != (rest < 0)), np.add(rest, y), rest),)


def _check_divisors(params: Elementwise, x: Array, y: Array) -> None:
    if np.any(np.equal(y, 0)):
        raise UnsupportedError("floor_mod: a divisor is 0; TFLite refuses it")
    wide = params.dtype in (DType.INT32, DType.INT64)
    if wide and np.any(np.equal(x, params.dtype.minimum) & np.equal(y, -1)):
        raise UnsupportedError("floor_mod: the lowest number by -1; TFLite ends the process there")
