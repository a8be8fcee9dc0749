"""What activations behind a 32-bit filter output, or alone on 8 bits, share: a rule, run in blocks or as a table."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.graph import Array, Tensor
from tflq.interpreter.numerics.fixed_point import Integers
from tflq.interpreter.numerics.lookup_tables import Table, is_used, look_up, make_table

CurveRule = Callable[[Integers], Integers]
_BLOCK = 1 << 15


def curve_table(rule: CurveRule, source: Tensor, output: Tensor) -> Table | None:
    """Return rule(code) for each code of an input of 8 or 16 bits, stored as the output; None for 32 bits."""
    return make_table(rule, source.dtype, output.dtype) if source.dtype.bits <= 16 else None


def run_curve(table: Table | None, rule: CurveRule, x: Array, dtype: np.dtype[np.generic]) -> Array:
    """Apply a table, or the rule in blocks that fit the cache: codes [S, *shape] -> codes [S, *shape]."""
    if is_used(table):
        return np.asarray(look_up(table, x))
    flat = x.reshape(-1)
    result = np.empty(flat.shape, dtype)
    for i in range(0, flat.size, _BLOCK):
        result[i : i + _BLOCK] = rule(flat[i : i + _BLOCK].astype(np.int64))
    return result.reshape(x.shape)
