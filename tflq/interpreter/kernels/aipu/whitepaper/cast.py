"""Cast by the whitepaper's table (4.10): t[q] = clamp(trunc((q + zp_x) / s_x)), the cast of each code's real number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.codes import OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.scales import bits_of, code_limits, is_plain, offset_of, scale_of
from tflq.interpreter.kernels.aipu.written import NOTHING, Written
from tflq.interpreter.numerics.fixed_point import Integers


@dataclass(frozen=True, eq=False)
class CastParams:
    """Results by code, from the lowest one on; None for an input that holds integers already; how they are stored."""

    table: Integers | None
    lowest: int
    codes: OutputCodes
    written: Written = NOTHING


def lower(_node: Node, operands: Operands) -> CastParams:
    """Compute the table.

    Raises:
        UnsupportedError: codes wider than 8 bits.
    """
    x, codes = operands.input(0), codes_of(operands.output())
    if is_plain(x):
        return CastParams(None, 0, codes)
    if bits_of(x) > 8:
        raise UnsupportedError(f"Cast of {bits_of(x)} bits by a table; allowed are 8")
    low, high = code_limits(x)
    real = np.float32(np.arange(low, high + 1) + offset_of(x)) / scale_of(x)
    return CastParams(np.trunc(real).astype(np.int64), low, codes)


def run(params: CastParams, x: Array) -> tuple[Array, ...]:
    """Run Cast: codes [S, ...] -> whole numbers [S, ...]."""
    if params.table is None:
        return (x.astype(params.codes.dtype),)
    return (params.codes.store(params.table[x.astype(np.int64) - params.lowest]),)
