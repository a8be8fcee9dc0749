"""Softmax and its logarithm (docs/rules/aipu/operators.md).

Softmax by a table of exponentials (quantize_method=LUT), or by powers of two. e = t[x - rowmax + 2^b - 1], S =
sum e, (M, N) of s_y, L = 31 - ceil(log2 M); R = trunc(M * 2^L / S); y = clamp(RNE(e * R * 2^-(N + L)) - zp_y). If an
axis of fewer than 8 meets a multiple of 128 rows, at 8 bits, the Optimizer divides with rounding instead.

LogSoftmax by a table of exponentials in float32. t[i] = exp((i - (2^b - 1)) / s_x); y = clamp(RNE(f32((x - max) * q0 -
q1 * ln(sum_j t[2^b - 1 + x_j - max]))) - zp), q0 = s_y / s_x, q1 = s_y; the output's range is -16..0. Multiplier and
shift of the IR are 1 and 0.

Powers of two (quantize_method=FAST_EXP): (M, N) of log2(e) / s in 13 bits; Q = 31 - floor(log2(terms)); l = ((x -
rowmax) * M) >> N is log2 of a term.

adjust_q a of 0 and 1: whole logarithms. e = 2^(Q + l), 0 below 1; S = clamp(sum e, 1, 2^31 - 1); k left shifts bring
S into 2^30..2^31 - 1; log2 S = h - ((k - (30 - Q)) << a), h = 1 for S << k above sqrt(2) * 2^30 if a = 1, else 0; p =
(((l + bits) << a) - log2 S) >> a; y = clamp(2^p, 0 for p < 0): outputs are powers of two.

adjust_q of 8 to 15: l, log2 S and p have adjust_q fraction bits, and two tables of 256 entries return log2 and 2^.

Source: Compass Optimizer, ops/softmax.py; utils/math_utils.py, simple_log2, Log2_norm, Pow2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers, Singles
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands, Tensor
from tflq.interpreter.kernels.aipu.exponentials import exponential_of_library
from tflq.interpreter.kernels.aipu.float_sums import library_of
from tflq.interpreter.kernels.aipu.imported import imported_array, imported_numbers, multiplier_of, number_of
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, OutputCodes, codes_of, scaled
from tflq.interpreter.kernels.aipu.scales import bits_of, code_limits, offset_of, scale_of
from tflq.interpreter.kernels.aipu.tables import Table, even_steps, table_bits, table_shift
from tflq.interpreter.numerics.fixed_point import INT32_MAX
from tflq.interpreter.registry import Kernel

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
        axis: Axis among the sample's own axes.
        rescale: M and N of log2(e) / s.
        top: Q.
        adjust: adjust_q.
        logarithms: RNE(2^15 * log2(1 + i / 256)); None below adjust_q of 8.
        powers: RNE(2^15 * 2^(i / 256)); None as above.
        bits: Bits of the output.
        maximum: largest quantized value of the output.
        dtype: Storage type of the output.
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
        codes = self._whole_logarithms(below) if self.adjust < FINE else self._fine(below)
        stored: Array = np.clip(codes, 0, self.maximum).astype(self.dtype)
        return stored

    def _whole_logarithms(self, below: Integers) -> Integers:
        m, n = self.rescale.first_m, self.rescale.first_n
        log = (below * m) >> n
        shifted, left = self._normalize_sum(_power(self.top + log))
        half = (shifted > _SQRT2).astype(np.int64) * self.adjust
        log_sum = half - ((left - (_TOP - self.top)) << self.adjust)
        return _power((((log + self.bits) << self.adjust) - log_sum) >> self.adjust)

    def _fine(self, below: Integers) -> Integers:
        assert self.logarithms is not None
        m, n = self.rescale.first_m, self.rescale.first_n - self.adjust
        log = (below * m) >> n if n > 0 else (below * m) << -n
        shifted, left = self._normalize_sum(self._table_power(log, self.top))
        fraction = self.logarithms[(shifted >> (_TOP - _TABLE_BITS)) & 0xFF] << _ONE
        log_sum = (fraction >> (_TOP - self.adjust)) - ((left - (_TOP - self.top)) << self.adjust)
        return self._table_power(log - log_sum, self.bits)

    def _normalize_sum(self, terms: Integers) -> tuple[Integers, Integers]:
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
    """Whether the layer uses powers of two: it was requested, or the quantized file has the param is_fast."""
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
    """Return 2^exponent, 0 if the exponent is negative."""
    powers: Integers = np.left_shift(1, np.clip(exponent, 0, 62)) * (exponent >= 0)
    return powers


EXPONENT_BITS = 20
LARGEST_AXIS = 4096
SMALL_AXIS = 8
SMALL_ROWS = 128


@dataclass(frozen=True, eq=False)
class SoftmaxParams:
    """The params of one softmax.

    Attributes:
        table: Table of exp, entries below 2^20.
        axis: Axis among the sample's own axes.
        span: 2^b - 1, the index of the row's maximum.
        rescale: M and N of s_y.
        is_small: whether the division rounds.
        codes: Quantized values of the output.
    """

    table: Table
    axis: int
    span: int
    rescale: Multiplier
    is_small: bool
    codes: OutputCodes


def lower_softmax(node: Node, operands: Operands) -> SoftmaxParams | FastSoftmaxParams:
    """Decide the params of Softmax.

    Raises:
        UnsupportedError: more than 4096 terms; as `lower_fast`.
    """
    x, output = operands.input(0), operands.output()
    axis = require_short_axis(node, x)
    count = x.shape[axis]
    if is_fast(node):
        return lower_fast(node, operands)
    bits = bits_of(x)
    table = exponentials(node, operands)
    multiplier = multiplier_of(node, scale_of(output), bits_of(output))
    rows = x.size // count
    is_small = count < SMALL_AXIS and rows % SMALL_ROWS == 0 and bits == 8
    return SoftmaxParams(table, axis, (1 << bits) - 1, multiplier, is_small, codes_of(output))


def require_short_axis(node: Node, x: Tensor) -> int:
    """Return the axis, counted from the front.

    Raises:
        UnsupportedError: more than 4096 terms (their sum could exceed 32 bits).
    """
    axis = node.attributes.integer("axis") % len(x.shape)
    if x.shape[axis] > LARGEST_AXIS:
        raise UnsupportedError(
            f"softmax over {x.shape[axis]} terms; allowed are {LARGEST_AXIS}: split it or use a target's float"
        )
    return axis


def run_softmax(params: SoftmaxParams | FastSoftmaxParams, x: Array) -> tuple[Array, ...]:
    """Run Softmax: quantized [S, ...] -> quantized [S, ...]."""
    if isinstance(params, FastSoftmaxParams):
        return (params.apply(x),)
    axis = params.axis + 1
    wide = x.astype(np.int64)
    e = params.table.lookup(wide - wide.max(axis=axis, keepdims=True) + params.span)
    total = np.maximum(e.sum(axis=axis, keepdims=True), 1)
    m, n = params.rescale.first_m, params.rescale.first_n
    largest = int(params.table.entries.max())
    if params.is_small:
        shift = 31 - _log2_up(largest)
        z = ((e << shift) + (total >> 1)) // total
        shares = scaled(z, m, n + shift)
    else:
        shift = (30 if largest == 1 else 31) - _log2_up(m)
        r = (m << shift) // total
        shares = scaled(e, r, n + shift)
    return (params.codes.store(shares),)


def _log2_up(value: int) -> int:
    return int(np.ceil(np.log2(value)))


_SMALLEST_EXPONENT = -87.0
"""What lies below rounds to an entry of 0 all the same."""


def exponentials(node: Node, operands: Operands) -> Table:
    """t[i] = clamp(RNE(exp((g - (2^b - 1) + zp) / s + (ln(2^20 - 1) - zp / s)))); g = i if n = 2^b.

    Every step is float32: the logarithm, zp / s, their difference, and the argument.
    """
    x = operands.input(0)
    given = imported_numbers(node)
    bits, entries = bits_of(x), table_bits(node, x)
    span = (1 << bits) - 1
    limit = (1 << EXPONENT_BITS) - 1
    if given is not None:
        return Table(given, 0, table_shift(node, given, bits), 0, limit)
    zp, inverse = np.float32(offset_of(x)), np.float32(1) / scale_of(x)
    grid = even_steps(0, span, 1 << entries) - np.float32(span) + zp
    shift = np.float32(np.float32(np.log(np.float64(limit))) - np.float32(zp / scale_of(x)))
    argument = (grid * inverse).astype(np.float32) + shift
    values = exponential_of_library(np.maximum(argument, np.float32(_SMALLEST_EXPONENT)), library_of(node))
    codes: Integers = np.clip(np.rint(values), 0, limit).astype(np.int64)
    return Table(codes, 0, bits - entries, 0, limit)


LOWEST = -16.0


@dataclass(frozen=True, eq=False)
class LogSoftmaxParams:
    """The params of one LogSoftmax.

    Attributes:
        table: float32[n], a power of two.
        shift: bits of an index below the table's.
        axis: Axis of the terms, after the sample axis.
        factors: q0 and q1.
        codes: Quantized values of the output.
    """

    table: Singles
    shift: int
    axis: int
    factors: tuple[np.float32, np.float32]
    codes: OutputCodes


def lower_log_softmax(node: Node, operands: Operands) -> LogSoftmaxParams:
    """Compute the table and q0, q1."""
    x, output = operands.input(0), operands.output()
    table = _table(node, x)
    factors = _factors(node, x, output)
    shift = bits_of(x) - (table.size.bit_length() - 1)
    axis = node.attributes.integer("axis") % len(x.shape) + 1
    return LogSoftmaxParams(table, shift, axis, factors, codes_of(output))


def run_log_softmax(params: LogSoftmaxParams, x: Array) -> tuple[Array, ...]:
    """Run LogSoftmax: quantized [S, ...] -> quantized [S, ...]."""
    below = x.astype(np.int64) - x.astype(np.int64).max(axis=params.axis, keepdims=True)
    index = below + (params.table.size << params.shift) - 1
    place, rest = index >> params.shift, index & ((1 << params.shift) - 1)
    above = np.append(params.table[1:], params.table[-1])
    base = params.table[place]
    between = (above[place] - base) * rest.astype(np.float32) / np.float32(1 << params.shift)
    total = (base + between).sum(axis=params.axis, keepdims=True, dtype=np.float32)
    q0, q1 = params.factors
    value = below.astype(np.float32) * q0 - np.log(total.astype(np.float64)).astype(np.float32) * q1
    return (params.codes.store(np.rint(value).astype(np.int64)),)


def _table(node: Node, x: Tensor) -> Singles:
    given = imported_array(node, "table")
    if given is not None:
        return np.asarray(given, np.float32)
    span = (1 << bits_of(x)) - 1
    steps = even_steps(0, span, 1 << table_bits(node, x))
    inverse = np.float32(1) / -scale_of(x)
    values: Singles = np.exp((steps * inverse).astype(np.float64)).astype(np.float32)[::-1]
    return np.ascontiguousarray(values)


def _factors(node: Node, x: Tensor, output: Tensor) -> tuple[np.float32, np.float32]:
    given = imported_array(node, "factors")
    if given is not None:
        q0, q1 = np.asarray(given, np.float32)
        return q0, q1
    return np.float32(scale_of(output) / scale_of(x)), scale_of(output)


KERNELS = {
    "softmax": Kernel(lower_softmax, run_softmax,
        "RNE(e * trunc(M * 2^L / sum e) * 2^-(N + L)) - zp_y", "Compass Optimizer, ops/softmax.py; "
            "docs/rules/aipu/operators.md"),
    "log_softmax": Kernel(lower_log_softmax, run_log_softmax,
        "RNE(f32((x - max) * q0 - q1 * ln(sum t))) - zp_y", "Compass Optimizer, ops/logsoftmax.py; "
            "docs/rules/aipu/operators.md"),
}  # fmt: skip
