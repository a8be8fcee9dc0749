"""Softmax by a table of exponentials (quantize_method=LUT), or as softmax_fast.py does (docs/aipu.md, 5).

e = t[x - rowmax + 2^b - 1], S = sum e, (M, N) of s_y, L = 31 - ceil(log2 M);
R = trunc(M * 2^L / S); y = clamp(RNE(e * R * 2^-(N + L)) - zp_y).
Where an axis of fewer than 8 meets a multiple of 128 rows, at 8 bits, the tool divides with rounding instead.

Source: Compass Optimizer, ops/softmax.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands, Tensor
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, type_of_multiplier
from tflq.interpreter.kernels.aipu.scales import bits_of, code_limits, offset_of, scale_of
from tflq.interpreter.kernels.aipu.softmax_fast import FAST_EXP, METHOD, FastSoftmaxParams, lower_fast
from tflq.interpreter.kernels.aipu.stated import multiplier_of, stated, stated_shift, stated_table
from tflq.interpreter.kernels.aipu.tables import Table, table_bits
from tflq.interpreter.kernels.aipu.written import CURVED, Written, rescale_keys
from tflq.interpreter.numerics.fixed_point import Integers

EXPONENT_BITS = 20
LARGEST_AXIS = 4096
SMALL_AXIS = 8
SMALL_ROWS = 128


@dataclass(frozen=True, eq=False)
class SoftmaxParams:
    """The integers of one softmax.

    Attributes:
        table: of exp, entries below 2^20.
        axis: of the sample's own axes.
        span: 2^b - 1, the index of the row's maximum.
        rescale: M and N of s_y.
        offset: zp_y.
        minimum: smallest code of the output.
        maximum: largest code.
        is_small: whether the division rounds.
        dtype: of the output.
        written: for the IR.
    """

    table: Table
    axis: int
    span: int
    rescale: Multiplier
    offset: int
    minimum: int
    maximum: int
    is_small: bool
    dtype: np.dtype[np.generic]
    written: Written


def lower(node: Node, operands: Operands) -> SoftmaxParams | FastSoftmaxParams:
    """Decide the integers of Softmax.

    Raises:
        UnsupportedError: more than 4096 terms; as `lower_fast`.
    """
    x, output = operands.input(0), operands.output()
    axis = require_short_axis(node, x)
    count = x.shape[axis]
    given = stated(node)
    if FAST_EXP in (node.attributes.text(METHOD, ""), "" if given is None else given.keys.get(METHOD)):
        return lower_fast(node, operands)
    bits = bits_of(x)
    table = exponentials(node, operands)
    found = multiplier_of(node, scale_of(output), bits_of(output))
    keys = {"quantize_method": "LUT", **rescale_keys(CURVED, found, type_of_multiplier(bits_of(output)))}
    written = Written({"lut": table.entries.astype(np.uint32)}, keys)
    rows = x.size // count
    is_small = count < SMALL_AXIS and rows % SMALL_ROWS == 0 and bits == 8
    low, high = code_limits(output)
    span = (1 << bits) - 1
    return SoftmaxParams(
        table, axis, span, found, offset_of(output), low, high, is_small, output.dtype.storage, written
    )


def require_short_axis(node: Node, x: Tensor) -> int:
    """Return the axis, counted from the front.

    Raises:
        UnsupportedError: more than 4096 terms, whose sum could leave 32 bits.
    """
    axis = node.attributes.integer("axis", -1) % max(len(x.shape), 1)
    if x.shape[axis] > LARGEST_AXIS:
        raise UnsupportedError(
            f"softmax over {x.shape[axis]} terms; allowed are {LARGEST_AXIS}: split it or use a target's float"
        )
    return axis


def run(params: SoftmaxParams | FastSoftmaxParams, x: Array) -> tuple[Array, ...]:
    """Run Softmax: codes [S, ...] -> codes [S, ...]."""
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
        scaled = np.rint(z.astype(np.float64) * m * np.exp2(-float(n + shift)))
    else:
        shift = (30 if largest == 1 else 31) - _log2_up(m)
        r = (m << shift) // total
        scaled = np.rint(e.astype(np.float64) * r * np.exp2(-float(n + shift)))
    codes = np.clip(scaled - params.offset, params.minimum, params.maximum)
    return (codes.astype(params.dtype),)


def _log2_up(value: int) -> int:
    return int(np.ceil(np.log2(value)))


def exponentials(node: Node, operands: Operands) -> Table:
    """t[i] = clamp(RNE(exp((g - (2^b - 1) + zp) / s + (ln(2^20 - 1) - zp / s)))), in float32; g = i where n = 2^b."""
    x = operands.input(0)
    given = stated_table(node, "lut")
    bits, entries = bits_of(x), table_bits(node, x)
    span = (1 << bits) - 1
    limit = (1 << EXPONENT_BITS) - 1
    if given is not None:
        return Table(given, 0, stated_shift(node, given, bits), 0, limit)
    zp, inverse = np.float32(offset_of(x)), np.float32(1) / scale_of(x)
    grid = np.linspace(0, span, 1 << entries, dtype=np.float32) - np.float32(span) + zp
    shift = np.float32(np.log(np.float64(limit)) - float(offset_of(x)) / float(scale_of(x)))
    argument = (grid * inverse).astype(np.float32) + shift
    # exp in float64, rounded once: a correctly rounded expf, which gives the tool's entries
    values = np.exp(argument.astype(np.float64)).astype(np.float32)
    codes: Integers = np.clip(np.rint(values), 0, limit).astype(np.int64)
    return Table(codes, 0, bits - entries, 0, limit)
