"""Softmax by powers of two (quantize_method=FAST_EXP) (docs/aipu.md, 5).

(M, N) of log2(e) / s in 13 bits; Q = 31 - floor(log2(terms)); l = ((x - rowmax) * M) >> N is log2 of a term.

adjust_q a of 0 and 1: whole logarithms. e = 2^(Q + l), 0 below 1; S = clamp(sum e, 1, 2^31 - 1); k left shifts bring
S into 2^30..2^31 - 1; log2 S = h - ((k - (30 - Q)) << a), h = 1 for S << k above sqrt(2) * 2^30 where a = 1, else 0;
p = (((l + bits) << a) - log2 S) >> a; y = clamp(2^p, 0 for p < 0): outputs are powers of two.

adjust_q of 8 to 15: l, log2 S and p have so many fraction bits, and two tables of 256 entries give log2 and 2^.

Source: Compass Optimizer, ops/softmax.py; utils/math_utils.py, simple_log2, Log2_norm, Pow2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.imported import imported_array, imported_numbers, multiplier_of, number_of
from tflq.interpreter.kernels.aipu.multiplier import Multiplier
from tflq.interpreter.kernels.aipu.scales import bits_of, code_limits, scale_of
from tflq.interpreter.numerics.fixed_point import INT32_MAX

FAST_EXP = "FAST_EXP"
METHOD, ADJUST = "quantize_method", "adjust_q"
ADJUSTMENTS = (0, 1, *range(8, 16))
LOG2_OF_E = 1.442695
MULTIPLIER_BITS = 13
FINE = 8
"""From this adjust_q on tables give the fractions."""

_SQRT2 = 1518500250  # sqrt(2) * 2^30
_TOP = 30
_TABLE_BITS = 8
_ONE = 15  # entries hold 2^15 for 1


@dataclass(frozen=True, eq=False)
class FastSoftmaxParams:
    """The params of one softmax.

    Attributes:
        axis: of the sample's own axes.
        rescale: M and N of log2(e) / s.
        top: Q.
        adjust: adjust_q.
        logarithms: RNE(2^15 * log2(1 + i / 256)); None below adjust_q of 8.
        powers: RNE(2^15 * 2^(i / 256)); None as above.
        bits: of the output.
        maximum: largest quantized value of the output.
        dtype: of the output.
    """

    axis: int
    rescale: Multiplier
    top: int
    adjust: int
    logarithms: Integers | None
    powers: Integers | None
    bits: int
    maximum: int
    dtype: np.dtype[np.generic]

    def apply(self, x: Array) -> Array:
        """Return quantized [S, ...] of quantized [S, ...]."""
        wide = x.astype(np.int64)
        below = wide - wide.max(axis=self.axis + 1, keepdims=True)
        codes = self._whole(below) if self.adjust < FINE else self._fine(below)
        stored: Array = np.clip(codes, 0, self.maximum).astype(self.dtype)
        return stored

    def _whole(self, below: Integers) -> Integers:
        m, n = self.rescale.first_m, self.rescale.first_n
        log = (below * m) >> n
        shifted, left = self._normalised(_power(self.top + log))
        half = (shifted > _SQRT2).astype(np.int64) * self.adjust
        log_sum = half - ((left - (_TOP - self.top)) << self.adjust)
        return _power((((log + self.bits) << self.adjust) - log_sum) >> self.adjust)

    def _fine(self, below: Integers) -> Integers:
        assert self.logarithms is not None
        m, n = self.rescale.first_m, self.rescale.first_n - self.adjust
        log = (below * m) >> n if n > 0 else (below * m) << -n
        shifted, left = self._normalised(self._table_power(log, self.top))
        fraction = self.logarithms[(shifted >> (_TOP - _TABLE_BITS)) & 0xFF] << _ONE
        log_sum = (fraction >> (_TOP - self.adjust)) - ((left - (_TOP - self.top)) << self.adjust)
        return self._table_power(log - log_sum, self.bits)

    def _normalised(self, terms: Integers) -> tuple[Integers, Integers]:
        """Return the sum of the terms shifted into 2^30..2^31 - 1, and by how much."""
        total = np.clip(terms.sum(axis=self.axis + 1, keepdims=True), 1, INT32_MAX)
        left = _TOP - np.floor(np.log2(total.astype(np.float64))).astype(np.int64)
        return total << left, left

    def _table_power(self, log: Integers, top: int) -> Integers:
        """Return 2^(top + log), log with adjust_q fraction bits, of which the first 8 count."""
        assert self.powers is not None
        index = (log & ((1 << self.adjust) - 1)) >> (self.adjust - _TABLE_BITS)
        right = np.clip(_TOP - top - (log >> self.adjust), -1, 62)
        entries = self.powers[index] << _ONE
        powers: Integers = np.where(right < 0, entries << 1, entries >> np.maximum(right, 0))
        return powers


def is_fast(node: Node) -> bool:
    """Whether the layer uses powers of two: it was requested, or a quantised file says so."""
    return node.attributes.text(METHOD, "") == FAST_EXP or imported_array(node, "is_fast") is not None


def lower_fast(node: Node, operands: Operands) -> FastSoftmaxParams:
    """Decide M, N, Q and the tables.

    Raises:
        UnsupportedError: another adjust_q; a multiplier that would shift to the left.
    """
    x, output = operands.input(0), operands.output()
    axis = node.attributes.integer("axis") % len(x.shape)
    adjust = number_of(node, "adjust", lambda: node.attributes.integer(ADJUST, 1))
    if adjust not in ADJUSTMENTS:
        raise UnsupportedError(f"adjust_q={adjust}; allowed is {', '.join(map(str, ADJUSTMENTS))}")
    ratio = np.float32(np.float32(LOG2_OF_E) / scale_of(x))
    rescale = multiplier_of(node, ratio, MULTIPLIER_BITS)
    if rescale.first_n < 0:
        raise UnsupportedError(f"FAST_EXP of steps of {1 / scale_of(x):g}: they are too coarse; use softmax=lut")
    top = 31 - int(np.floor(np.log2(x.shape[axis])))
    logarithms, powers = _tables(node) if adjust >= FINE else (None, None)
    limit = code_limits(output)[1]
    return FastSoftmaxParams(
        axis, rescale, top, adjust, logarithms, powers, bits_of(output), limit, output.dtype.storage
    )


def _tables(node: Node) -> tuple[Integers, Integers]:
    logarithms, powers = imported_numbers(node, "logarithms"), imported_numbers(node, "powers")
    if logarithms is not None and powers is not None:
        return logarithms, powers
    i = np.arange(1 << _TABLE_BITS) / (1 << _TABLE_BITS)
    one = float(1 << _ONE)
    return np.rint(one * np.log2(1 + i)).astype(np.int64), np.rint(one * np.exp2(i)).astype(np.int64)


def _power(exponent: Integers) -> Integers:
    """Return 2^exponent, 0 where the exponent is negative."""
    powers: Integers = np.left_shift(1, np.clip(exponent, 0, 62)) * (exponent >= 0)
    return powers
