"""Div by a table of reciprocals: y = RNE(sign(b') * a' * t(|b'|) * M * 2^-N) - zp_y, x' = x + zp (docs/aipu.md, 5).

t[i] = RNE(65535 / i), t[0] = 0: dividing by zero gives 0. r = s_y * s_b / (s_a * 65535).

Source: Compass Optimizer, ops/div.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.fixed_point import Integers
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, type_of_multiplier
from tflq.interpreter.kernels.aipu.scales import bits_of, code_limits, offset_of, scale_of
from tflq.interpreter.kernels.aipu.stated import multiplier_of, stated_table
from tflq.interpreter.kernels.aipu.written import Written
from tflq.interpreter.samples import align

NUMERATOR = 65535
ORDER = ("scale_value", "scale_type", "shift_value", "shift_type")


@dataclass(frozen=True, eq=False)
class DivIntegers:
    """The integers of one division: the table, zp of the inputs, M and N, and the output's limits."""

    table: Integers
    input_offsets: tuple[int, int]
    rescale: Multiplier
    offset: int
    minimum: int
    maximum: int
    dtype: np.dtype[np.generic]
    written: Written


def lower(node: Node, operands: Operands) -> DivIntegers:
    """Decide the table, M and N.

    Raises:
        UnsupportedError: a divisor wider than 8 bits.
    """
    a, b, output = operands.input(0), operands.input(1), operands.output()
    if bits_of(b) > 8:
        raise UnsupportedError(f"a divisor of {bits_of(b)} bits; allowed are 8")
    table = stated_table(node, "lut")
    if table is None:
        table = _reciprocals(bits_of(b))
    bits = bits_of(output)
    ratio = np.float32(scale_of(output) * scale_of(b)) / np.float32(scale_of(a) * np.float32(NUMERATOR))
    found = multiplier_of(node, ratio, bits)
    values = (found.first_m, type_of_multiplier(bits), found.first_n, "int8")
    written = Written({"lut": table.astype(np.uint16)}, dict(zip(ORDER, values, strict=True)))
    low, high = code_limits(output)
    return DivIntegers(
        table, (offset_of(a), offset_of(b)), found, offset_of(output), low, high, output.dtype.storage, written
    )


def _reciprocals(bits: int) -> Integers:
    steps = np.arange(1 << bits, dtype=np.float64)
    table: Integers = np.rint(NUMERATOR / np.maximum(steps, 1)).astype(np.int64) * (steps > 0)
    return table


def run(integers: DivIntegers, a: Array, b: Array) -> tuple[Array, ...]:
    """Run Div: codes [S, ...] and [S, ...] -> codes [S, ...]."""
    left, right = (x.astype(np.int64) + zp for x, zp in zip(align(a, b), integers.input_offsets, strict=True))
    index = np.minimum(np.abs(right), integers.table.size - 1)
    total = np.sign(right) * left * integers.table[index]
    codes = np.clip(integers.rescale.apply(total) - integers.offset, integers.minimum, integers.maximum)
    return (codes.astype(integers.dtype),)
