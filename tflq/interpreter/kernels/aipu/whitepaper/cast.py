"""Cast by the whitepaper's table (4.10): t[q] = clamp(trunc((q + zp_x) / s_x)), the cast of each code's real number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.fixed_point import Integers
from tflq.interpreter.kernels.aipu.codes import OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.scales import bits_of, code_limits, is_plain, offset_of, scale_of
from tflq.interpreter.kernels.aipu.written import NOTHING, Written


@dataclass(frozen=True, eq=False)
class CastIntegers:
    """Results by code, from the lowest one on; None for an input that holds integers already; how they are stored."""

    table: Integers | None
    lowest: int
    codes: OutputCodes
    written: Written = NOTHING


def lower(_node: Node, operands: Operands) -> CastIntegers:
    """Compute the table.

    Raises:
        UnsupportedError: codes wider than 8 bits.
    """
    x, codes = operands.input(0), codes_of(operands.output())
    if is_plain(x):
        return CastIntegers(None, 0, codes)
    if bits_of(x) > 8:
        raise UnsupportedError(f"Cast of {bits_of(x)} bits by a table; allowed are 8")
    low, high = code_limits(x)
    real = np.float32(np.arange(low, high + 1) + offset_of(x)) / scale_of(x)
    return CastIntegers(np.trunc(real).astype(np.int64), low, codes)


def run(integers: CastIntegers, x: Array) -> tuple[Array, ...]:
    """Run Cast: codes [S, ...] -> whole numbers [S, ...]."""
    if integers.table is None:
        return (x.astype(integers.codes.dtype),)
    return (integers.codes.store(integers.table[x.astype(np.int64) - integers.lowest]),)
