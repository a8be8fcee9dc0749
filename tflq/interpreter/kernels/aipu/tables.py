"""Tables of a function and their lookup, interpolated if the quantized values are wider than the table.

Source: docs/rules/aipu/values.md#tables.

Source: Compass Optimizer, ops/activation.py and utils/math_utils.py, lookup_lut_powerof2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers, Singles
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Tensor
from tflq.interpreter.kernels.aipu.imported import imported_numbers
from tflq.interpreter.kernels.aipu.scales import bits_of, code_limits, encode, offset_of, scale_of, type_limits

TABLE_BITS = 8


@dataclass(frozen=True, eq=False)
class Table:
    """A function of quantized values.

    Attributes:
        entries: int64[n], a power of two.
        lowest: the code of the first entry: the smallest value of the input's element type.
        shift: bits of the code below the index.
        minimum: smallest value of the entries' type.
        maximum: largest value.
    """

    entries: Integers
    lowest: int
    shift: int
    minimum: int
    maximum: int

    def lookup(self, codes: Array) -> Integers:
        """Y = t[i >> k] + (((t[(i >> k) + 1] - t[i >> k]) * (i & (2^k - 1))) >> k), i = code - lowest."""
        i = codes.astype(np.int64) - self.lowest
        if self.shift == 0:
            return self.entries[i]
        above = np.append(self.entries[1:], self.entries[-1])
        index, rest = i >> self.shift, i & ((1 << self.shift) - 1)
        base: Integers = self.entries[index]
        result: Integers = np.clip(base + (((above[index] - base) * rest) >> self.shift), self.minimum, self.maximum)
        return result


def table_shift(node: Node, table: Integers, bits: int) -> int:
    """Return the bits of a quantized value below the index of an imported table.

    Raises:
        UnsupportedError: the number of entries is not a power of two, or exceeds the number of codes.
    """
    entries = table.size.bit_length() - 1
    if table.size != 1 << entries or entries > bits:
        raise UnsupportedError(
            f"layer '{node.name}': a table of {table.size} entries; allowed is a power of two up to {1 << bits}"
        )
    return bits - entries


def table_bits(node: Node, x: Tensor) -> int:
    """Return log2 of the number of entries: the input's bits, at most the layer's lut_items_in_bits."""
    return min(bits_of(x), node.attributes.integer("lut_items_in_bits", TABLE_BITS))


def even_steps(low: float, high: float, count: int) -> Singles:
    """Return evenly spaced numbers, both ends included, as PyTorch has them in float32.

    The step is rounded; the first half is counted from the lowest, the second half from the highest, each rounded once.
    """
    low, high = float(np.float32(low)), float(np.float32(high))
    step = np.float64(np.float32(np.float32(high - low) / np.float32(count - 1)))
    i = np.arange(count)
    steps: Singles = np.where(i < count // 2, low + i * step, high - (count - 1 - i) * step).astype(np.float32)
    return steps


def code_grid(x: Tensor, bits: int, repeats: bool = True) -> Singles:
    """Return the quantized values at which a table of 2^bits entries is computed: evenly spaced, both ends included.

    A restricted range has one point less; its first entry is stored twice, unless the layer `repeats` none.
    """
    low, high = code_limits(x)
    is_short = x.affine.narrow_range and repeats
    grid = even_steps(low, high, (1 << bits) - is_short)
    return np.concatenate([grid[:1], grid]) if is_short else grid


def table_of(
    node: Node,
    x: Tensor,
    output: Tensor,
    function: Callable[[Singles], Array],
    key: str = "table",
    bits: int | None = None,
    repeats: bool = True,
    from_lowest: bool = False,
) -> Table:
    """Return the table clamp(RNE(s_y * f((q + zp_x) / s_x) - zp_y)) of a function.

    Dequantizing multiplies by the float32 reciprocal of s_x, as the Optimizer does.

    Args:
        node: lut_items_in_bits limits the number of entries.
        x: the type of the quantized values that the table is read with.
        output: the type of the entries.
        function: f of float32.
        key: Key of the table among the imported params.
        bits: log2 of the number of entries; without, `table_bits`.
        repeats: True if the first entry is repeated as in `code_grid`.
        from_lowest: whether the first entry is that of the lowest quantized value, not of the type's.
    """
    first = (code_limits if from_lowest else type_limits)(x)[0]
    low, high = type_limits(output)
    given = imported_numbers(node, key)
    if given is not None:
        return Table(given, first, table_shift(node, given, bits_of(x)), low, high)
    bits = table_bits(node, x) if bits is None else bits
    grid = code_grid(x, bits, repeats)
    inverse = np.float32(1) / scale_of(x)
    real = ((grid + np.float32(offset_of(x))) * inverse).astype(np.float32)
    with np.errstate(all="ignore"):
        value = function(real)
    return Table(encode(value, output.affine), first, bits_of(x) - bits, low, high)
