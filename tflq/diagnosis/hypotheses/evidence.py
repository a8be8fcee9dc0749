"""Evidence for a cause, in bits: its saving compared with a list of the differing elements.

    list:  L0 = n * (log2 N + log2 v)
    cause: Lh = log2(tried) + bits of its place and numbers + left * (log2 N + log2 v)
    gain = L0 - Lh

n differing elements of N, v values that a difference takes (largest - smallest + 1, at least 2), `tried` variants
computed so far, `left` elements that still differ. A fitted bias or weight costs 16 bits, a code 8, the name of a
channel of C log2 C.
A cause is certain if no element is left and gain >= 20 (chance 1e-6), consistent with the dump if gain >= 10, and is
not named below.

Example: 5 of 6468 elements differ by +1 or +2 in 3 of 22 channels. L0 = 5 * (12.7 + 1) = 68. Biases of the 3
channels cost 9 + 10.6 + 3 * 16 = 68: no gain. Another rounding costs 9: a gain of 59 bits, certain.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

CERTAIN, CONSISTENT = 20.0, 10.0
"""Gains from which on a cause is certain, and consistent with the dump."""
NUMBER, CODE = 16.0, 8.0
"""Bits of a fitted bias, weight or factor, and of a code read from the dump."""


@dataclass(frozen=True)
class Evidence:
    """The size of a list of the differences.

    Attributes:
        differing: Number n of differing elements.
        elements: Number N of elements.
        values: Number v of values that a difference takes, at least 2.
    """

    differing: int
    elements: int
    values: int

    @property
    def element_bits(self) -> float:
        """Bits that name a differing element and its difference."""
        return log2(max(self.elements, 2)) + log2(max(self.values, 2))

    def gain(self, left: int, bits: float, tried: int) -> float:
        """Return L0 - Lh.

        Args:
            left: Number of elements that still differ.
            bits: Bits of the cause's place and numbers.
            tried: Number of variants computed so far, at least 1.
        """
        return (self.differing - left) * self.element_bits - bits - log2(max(tried, 1))
