"""Div by a table of reciprocals: y = RNE(sign(b') * a' * t(|b'|) * M * 2^-N) - zp_y, x' = x + zp (docs/aipu.md, 5).

t[i] = RNE(65535 / i), t[0] = 0: dividing by zero gives 0. Divisors of 16 bits read between the entries, which are few
units large there: a quotient of 16 bits is no better than the entries are. r = s_y * s_b / (s_a * 65535).

Source: Compass Optimizer, ops/div.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.codes import OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, type_of_multiplier
from tflq.interpreter.kernels.aipu.scales import bits_of, offset_of, scale_of
from tflq.interpreter.kernels.aipu.stated import multiplier_of, stated_shift, stated_table
from tflq.interpreter.kernels.aipu.tables import Table, table_bits
from tflq.interpreter.kernels.aipu.written import Written
from tflq.interpreter.numerics.fixed_point import Integers
from tflq.interpreter.samples import align

NUMERATOR = 65535
ORDER = ("scale_value", "scale_type", "shift_value", "shift_type")


@dataclass(frozen=True, eq=False)
class DivParams:
    """The integers of one division: the table, zp of the inputs, the largest divisor, M and N, the output's codes."""

    table: Table
    input_offsets: tuple[int, int]
    largest: int
    rescale: Multiplier
    codes: OutputCodes
    written: Written


def lower(node: Node, operands: Operands) -> DivParams:
    """Decide the table, M and N."""
    a, b, output = operands.input(0), operands.input(1), operands.output()
    given = stated_table(node, "lut")
    entries = _reciprocals(bits_of(b), table_bits(node, b)) if given is None else given
    table = Table(entries, 0, stated_shift(node, entries, bits_of(b)), 0, NUMERATOR)
    bits = bits_of(output)
    ratio = np.float32(scale_of(output) * scale_of(b)) / np.float32(scale_of(a) * np.float32(NUMERATOR))
    found = multiplier_of(node, ratio, bits)
    values = (found.first_m, type_of_multiplier(bits), found.first_n, "int8")
    written = Written({"lut": entries.astype(np.uint16)}, dict(zip(ORDER, values, strict=True)))
    offsets = (offset_of(a), offset_of(b))
    return DivParams(table, offsets, (1 << bits_of(b)) - 1, found, codes_of(output), written)


def _reciprocals(bits: int, entries: int) -> Integers:
    """Return RNE(65535 / v) at 2^entries even steps v of 0..2^bits - 1, in float32; 0 at v = 0."""
    steps = np.linspace(0, (1 << bits) - 1, 1 << entries, dtype=np.float32)
    quotients = np.rint(np.float32(NUMERATOR) / np.maximum(steps, np.float32(1)))
    table: Integers = quotients.astype(np.int64) * (steps > 0)
    return table


def run(params: DivParams, a: Array, b: Array) -> tuple[Array, ...]:
    """Run Div: codes [S, ...] and [S, ...] -> codes [S, ...]."""
    left, right = (x.astype(np.int64) + zp for x, zp in zip(align(a, b), params.input_offsets, strict=True))
    reciprocal = params.table.lookup(np.minimum(np.abs(right), params.largest))
    return (params.codes.requantise(np.sign(right) * left * reciprocal, params.rescale),)
