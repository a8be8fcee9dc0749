"""Cosine and Sine: a plain table at 8 bits; at 16 a table of one period, read at the place in it (docs/aipu.md, 4).

i = RNE((x + zp_x) * M * 2^-N) mod n, r = n / (2 pi s_x); t[k] = RNE(32767 f(2 pi k / (n - 1))), n a power of two. The
output is symmetric at s_y = 32767.

Source: Compass Optimizer, ops/cosine.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu import curve
from tflq.interpreter.kernels.aipu.multiplier import WIDEST, Multiplier, type_of_multiplier
from tflq.interpreter.kernels.aipu.scales import bits_of, encode, offset_of, scale_of
from tflq.interpreter.kernels.aipu.stated import multiplier_of, stated_table
from tflq.interpreter.kernels.aipu.tables import table_bits
from tflq.interpreter.kernels.aipu.written import CURVED, Written, rescale_keys
from tflq.interpreter.numerics.fixed_point import Integers

OPERATORS: dict[str, Callable[[Array], Array]] = {"cosine": np.cos, "sine": np.sin}
SCALE = 32767


@dataclass(frozen=True, eq=False)
class PeriodicParams:
    """The integers of one layer: the table of a period, zp_x, M and N, the output's type."""

    entries: Integers
    input_offset: int
    rescale: Multiplier
    dtype: np.dtype[np.generic]
    written: Written

    def apply(self, x: Array) -> Array:
        """Return codes of codes."""
        place = self.rescale.apply(x.astype(np.int64) + self.input_offset).astype(np.int64)
        found: Array = self.entries[place & (self.entries.size - 1)].astype(self.dtype)
        return found


def lower(node: Node, operands: Operands) -> PeriodicParams | curve.CurveParams:
    """Compute the table; at 16 bits M and N.

    Raises:
        UnsupportedError: an input of another width.
    """
    x, output = operands.input(0), operands.output()
    if max(bits_of(x), bits_of(output)) <= 8:
        return curve.lower(node, operands)
    if bits_of(x) != bits_of(output):
        raise UnsupportedError(
            f"{node.operator} from {bits_of(x)} to {bits_of(output)} bits; allowed is one width in both layers"
        )
    given = stated_table(node, "lut")
    entries = given if given is not None else _period(node, operands)
    ratio = np.float32(entries.size / 2 / np.pi) / scale_of(x)
    found = multiplier_of(node, ratio, WIDEST + 1)
    written = Written({"lut": entries.astype(np.int16)}, rescale_keys(CURVED, found, type_of_multiplier(WIDEST + 1)))
    return PeriodicParams(entries, offset_of(x), found, output.dtype.storage, written)


def run(params: PeriodicParams | curve.CurveParams, x: Array) -> tuple[Array, ...]:
    """Run the table: codes [S, ...] -> codes [S, ...]."""
    return (params.apply(x),)


def _period(node: Node, operands: Operands) -> Integers:
    count = 1 << table_bits(node, operands.input(0))
    angles = np.linspace(0, 2 * np.pi, count, dtype=np.float32)
    values = OPERATORS[node.operator](angles.astype(np.float64))
    return encode(values.astype(np.float32), operands.output().affine)
