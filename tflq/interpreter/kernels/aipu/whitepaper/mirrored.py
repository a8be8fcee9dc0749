"""Functions with a symmetry by half a table (whitepaper, 3.3.2.2).

t[i] = RNE(s_y * f(i / s_x)) for i = 0..max|x + zp_x|. Even functions: y = t[|x + zp_x|] - zp_y; odd ones: that with the
sign of x + zp_x; Sigmoid, where f(-v) = 1 - f(v): RNE(s_y) - t[|x + zp_x|] for negative ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.curve import function_of
from tflq.interpreter.kernels.aipu.multiplier import OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.scales import bits_of, code_limits, is_wide, offset_of, scale_of
from tflq.interpreter.registry import Kernel

EVEN, ODD, ABOUT_HALF = "even", "odd", "about a half"
SYMMETRIES = {
    "cosine": EVEN,
    "square": EVEN,
    "sine": ODD,
    "SOFTSIGN": ODD,
    "TANH": ODD,
    "SIGMOID": ABOUT_HALF,
}


@dataclass(frozen=True, eq=False)
class MirroredParams:
    """Half a table and how it is mirrored.

    Attributes:
        entries: int64[max|x + zp_x| + 1], without zero point.
        symmetry: even, odd, or about a half.
        one: RNE(s_y).
        input_offset: zp_x.
        codes: how the output is stored.
    """

    entries: Integers
    symmetry: str
    one: int
    input_offset: int
    codes: OutputCodes

    def apply(self, x: Array) -> Array:
        """Return quantized values of quantized values."""
        v = x.astype(np.int64) + self.input_offset
        found = self.entries[np.abs(v)]
        if self.symmetry == ODD:
            found = found * np.sign(v)
        elif self.symmetry == ABOUT_HALF:
            found = np.where(v < 0, self.one - found, found)
        return self.codes.store(found)


def lower_mirrored(node: Node, operands: Operands) -> MirroredParams:
    """Compute half a table.

    Raises:
        UnsupportedError: quantized values wider than 8 bits, whose table is sampled.
    """
    x, output = operands.input(0), operands.output()
    if is_wide(x):
        raise UnsupportedError(f"half a table of {bits_of(x)} bits; allowed are 8")
    zp = offset_of(x)
    largest = max(abs(code + zp) for code in code_limits(x))
    steps = np.arange(largest + 1, dtype=np.float64) / float(scale_of(x))
    with np.errstate(all="ignore"):
        real = function_of(node)(steps).astype(np.float32)
    entries = np.rint(scale_of(output) * real).astype(np.int64)
    name = node.attributes.text("method", "") or node.operator
    one = int(np.rint(scale_of(output)))
    return MirroredParams(entries, SYMMETRIES[name], one, zp, codes_of(output))


def run(params: MirroredParams, x: Array) -> tuple[Array, ...]:
    """Run Sine, Cosine or Square: quantized [S, ...] -> quantized [S, ...]."""
    return (params.apply(x),)


KERNELS = dict.fromkeys(
    ("cosine", "sine", "square"),
    Kernel(lower_mirrored, run, "half a table, mirrored", "whitepaper ACN-AWP-1002A, 3.3.2.2; docs/aipu.md, 10"),
)
