"""Elementwise operators of two 8-bit inputs, executed as a table of all pairs; of wider ones by their rule."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.graph import Array, DType, Tensor
from tflq.interpreter.numerics.fixed_point import Integers
from tflq.interpreter.numerics.lookup_tables import is_used
from tflq.interpreter.numerics.pair_tables import look_up_pairs, make_pairs
from tflq.interpreter.samples import align

PairRule = Callable[[Integers, Integers], Integers]
_BYTES = (DType.INT8, DType.UINT8)


def pair_table(rule: PairRule, first: Tensor, second: Tensor, output: Tensor) -> Array | None:
    """Return rule(x, y) for all 65536 pairs of codes, stored as the output; None where an input is wider than a byte.

    Args:
        rule: takes and returns int64.
        first: left operand, int8 or uint8; the two may differ.
        second: right operand.
        output: result.
    """
    if first.dtype not in _BYTES or second.dtype not in _BYTES:
        return None
    return make_pairs(rule, first.dtype, second.dtype, output.dtype)


def run_pairs(table: Array | None, rule: PairRule, first: Array, second: Array, dtype: np.dtype[np.generic]) -> Array:
    """Apply a table, or the rule, to arrays that broadcast: [S or 1, *shape] twice."""
    x, y = align(first, second)
    if is_used(table):
        return look_up_pairs(table, np.ascontiguousarray(x), np.ascontiguousarray(y))
    return rule(x.astype(np.int64), y.astype(np.int64)).astype(dtype)
