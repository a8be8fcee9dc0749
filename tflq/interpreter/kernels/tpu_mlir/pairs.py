"""Elementwise operators of two 8-bit inputs, executed as a table of all pairs of codes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.graph import Array, Operands
from tflq.interpreter.kernels.tpu_mlir.rounding import saturate
from tflq.interpreter.numerics.fixed_point import Integers
from tflq.interpreter.numerics.pair_tables import look_up_pairs, make_pairs
from tflq.interpreter.operands.checks import EIGHT_BITS, require_broadcast, require_type
from tflq.interpreter.samples import align

PairRule = Callable[[Integers, Integers], Integers]


def pair_table(rule: PairRule, operands: Operands) -> Array:
    """Return sat(rule(x, y)) for all 65536 pairs of codes, stored as the output; read-only.

    Args:
        rule: takes codes int64[256, 1] and int64[1, 256], returns integers or rounded reals [256, 256].
        operands: two inputs of 8 bits, not necessarily of one type, and the output.

    Raises:
        UnsupportedError: another type.
        GraphError: shapes that do not broadcast.
    """
    first, second, output = operands.input(0), operands.input(1), operands.output()
    for tensor in (first, second, output):
        require_type(tensor, EIGHT_BITS)
    require_broadcast(first, second)
    return make_pairs(lambda x, y: saturate(rule(x, y), output.dtype), first.dtype, second.dtype, output.dtype)


def run_pairs(table: Array, first: Array, second: Array) -> Array:
    """Apply a table to arrays that broadcast: [S or 1, *shape] twice."""
    x, y = align(first, second)
    return look_up_pairs(table, np.ascontiguousarray(x), np.ascontiguousarray(y))
