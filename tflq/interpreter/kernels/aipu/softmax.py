"""Softmax and its logarithm (docs/aipu.md, 5).

Softmax by a table of exponentials (quantize_method=LUT), or as softmax_fast.py does. e = t[x - rowmax + 2^b - 1], S =
sum e, (M, N) of s_y, L = 31 - ceil(log2 M); R = trunc(M * 2^L / S); y = clamp(RNE(e * R * 2^-(N + L)) - zp_y). Where an
axis of fewer than 8 meets a multiple of 128 rows, at 8 bits, the Optimizer divides with rounding instead.

LogSoftmax by a table of exponentials in float32. t[i] = exp((i - (2^b - 1)) / s_x); y = clamp(RNE(f32((x - max) * q0 -
q1 * ln(sum_j t[2^b - 1 + x_j - max]))) - zp), q0 = s_y / s_x, q1 = s_y; the output's range is -16..0. Multiplier and
shift of the IR are 1 and 0.

SOFTMAX: RNE(e * trunc(M * 2^L / sum e) * 2^-(N + L)) - zp_y. Source: Compass Optimizer, ops/softmax.py; docs/aipu.md,
5.
LOG_SOFTMAX: RNE(f32((x - max) * q0 - q1 * ln(sum t))) - zp_y. Source: Compass Optimizer, ops/logsoftmax.py;
docs/aipu.md, 5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers, Singles
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands, Tensor
from tflq.interpreter.kernels.aipu.exponentials import exponential_of_library
from tflq.interpreter.kernels.aipu.float_sums import library_of
from tflq.interpreter.kernels.aipu.imported import imported_array, imported_numbers, multiplier_of
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, OutputCodes, codes_of, scaled
from tflq.interpreter.kernels.aipu.scales import bits_of, offset_of, scale_of
from tflq.interpreter.kernels.aipu.softmax_fast import FastSoftmaxParams, is_fast, lower_fast
from tflq.interpreter.kernels.aipu.tables import Table, even_steps, table_bits, table_shift
from tflq.interpreter.registry import Kernel

EXPONENT_BITS = 20
LARGEST_AXIS = 4096
SMALL_AXIS = 8
SMALL_ROWS = 128


@dataclass(frozen=True, eq=False)
class SoftmaxParams:
    """The params of one softmax.

    Attributes:
        table: of exp, entries below 2^20.
        axis: of the sample's own axes.
        span: 2^b - 1, the index of the row's maximum.
        rescale: M and N of s_y.
        is_small: whether the division rounds.
        codes: how the output is stored.
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
    found = multiplier_of(node, scale_of(output), bits_of(output))
    rows = x.size // count
    is_small = count < SMALL_AXIS and rows % SMALL_ROWS == 0 and bits == 8
    return SoftmaxParams(table, axis, (1 << bits) - 1, found, is_small, codes_of(output))


def require_short_axis(node: Node, x: Tensor) -> int:
    """Return the axis, counted from the front.

    Raises:
        UnsupportedError: more than 4096 terms, whose sum could leave 32 bits.
    """
    axis = node.attributes.integer("axis") % max(len(x.shape), 1)
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
    """t[i] = clamp(RNE(exp((g - (2^b - 1) + zp) / s + (ln(2^20 - 1) - zp / s)))); g = i where n = 2^b.

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
    """What one layer needs.

    Attributes:
        table: float32[n], a power of two.
        shift: bits of an index below the table's.
        axis: behind the sample axis.
        factors: q0 and q1.
        codes: of the output.
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
    "softmax": Kernel(lower_softmax, run_softmax),
    "log_softmax": Kernel(lower_log_softmax, run_log_softmax),
}
