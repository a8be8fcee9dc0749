"""LRN: y = x / (bias + alpha * q / size)^beta, q the sum of squares over channels or pixels (docs/aipu.md, 5).

Q = sum of (x + zp_x)^2; a = clamp(RNE(Q * M_s * 2^-N_s)) in 16 bits without sign, r_s = s_q / (s_x^2 * size);
y = clamp(RNE((x + zp_x) * t(a) * M * 2^-N) - zp_y), r = s_y / (s_x * s_t); t is a table of uint16.

Source: Compass Optimizer, ops/LRN.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Integers, Singles
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Array, Node, Operands
from tflq.interpreter.kernels.aipu.imported import imported_multiplier, imported_numbers
from tflq.interpreter.kernels.aipu.multiplier import (
    Multiplier,
    OutputCodes,
    codes_of,
    find_multiplier,
)
from tflq.interpreter.kernels.aipu.scales import bits_of, offset_of, scale_of
from tflq.interpreter.kernels.aipu.tables import Table, even_steps, table_bits, table_shift

Number = TypeVar("Number", np.int64, np.float64)

ACROSS, WITHIN = "ACROSS_CHANNELS", "WITHIN_CHANNEL"
INDEX_BITS = 16
_LARGEST = (1 << INDEX_BITS) - 1


@dataclass(frozen=True, eq=False)
class LrnParams:
    """The params of one normalisation.

    Attributes:
        method: ACROSS_CHANNELS or WITHIN_CHANNEL.
        size: of the window.
        input_offset: zp_x.
        table: of the factor, by a.
        of_sum: M_s and N_s.
        rescale: M and N.
        codes: of the output.
    """

    method: str
    size: int
    input_offset: int
    table: Table
    of_sum: Multiplier
    rescale: Multiplier
    codes: OutputCodes


def lower(node: Node, operands: Operands) -> LrnParams:
    """Decide the table and both multipliers.

    Raises:
        UnsupportedError: another method, an even window within channels.
    """
    method, size = node.attributes.text("method"), node.attributes.integer("size")
    if method not in (ACROSS, WITHIN) or (method == WITHIN and size % 2 == 0):
        raise UnsupportedError(f"method={method}, size={size}; allowed are {ACROSS}, and {WITHIN} with an odd size")
    x, output = operands.input(0), operands.output()
    bits, s_q = bits_of(output), _scale_of_squares(operands)
    given = imported_numbers(node)
    entries, s_t = _table(node, operands, s_q) if given is None else (given, np.float32(1))
    ratio = s_q / np.float32(np.float32(scale_of(x) * scale_of(x)) * np.float32(size))
    of_sum = imported_multiplier(node, "of_sum") or find_multiplier(ratio, bits)
    found = imported_multiplier(node) or find_multiplier(np.float32(scale_of(output) / scale_of(x)) / s_t, bits)
    table = Table(entries, 0, table_shift(node, entries, INDEX_BITS), 0, _LARGEST)
    return LrnParams(method, size, offset_of(x), table, of_sum, found, codes_of(output))


def run(params: LrnParams, x: Array) -> tuple[Array, ...]:
    """Run LRN: quantized [S, N, H, W, C] -> quantized [S, N, H, W, C]."""
    v = x.astype(np.int64) + params.input_offset
    total = window_sums_of(params.method, params.size, np.square(v))
    index = np.clip(params.of_sum.apply(total), 0, _LARGEST).astype(np.int64)
    return (params.codes.requantise(v * params.table.lookup(index), params.rescale),)


def window_sums_of(method: str, size: int, squares: NDArray[Number]) -> NDArray[Number]:
    """Return the sums over the channels or pixels around each place, [S, N, H, W, C]."""
    if method == ACROSS:
        return _window_sums(squares, -1, size // 2, (size - 1) // 2)
    half = (size - 1) // 2
    return _window_sums(_window_sums(squares, 2, half, half), 3, half, half)


def _window_sums(values: NDArray[Number], axis: int, before: int, behind: int) -> NDArray[Number]:
    """Return the sums over positions p - before .. p + behind of an axis, nothing outside."""
    running: NDArray[Number] = np.cumsum(np.moveaxis(values, axis, -1), axis=-1)
    running = np.concatenate([np.zeros_like(running[..., :1]), running], axis=-1)
    places = np.arange(values.shape[axis])
    last = np.minimum(places + behind + 1, places.size)
    return np.moveaxis(running[..., last] - running[..., np.maximum(places - before, 0)], -1, axis)


def _scale_of_squares(operands: Operands) -> np.float32:
    """Return s_q: that of the intermediate; 1 for WITHIN_CHANNEL, of which the Optimizer keeps no statistic."""
    internal = operands.intermediates[0] if operands.intermediates else None
    return scale_of(internal) if internal is not None and isinstance(internal.quantisation, Affine) else np.float32(1)


def _table(node: Node, operands: Operands, s_q: np.float32) -> tuple[Integers, np.float32]:
    """Return clamp(RNE(s_t * g(u))), g(u) = (bias + alpha * u / s_q)^-beta, at even u in 0..65535, and s_t."""
    bias, alpha, beta = (np.float32(node.attributes.real(key)) for key in ("bias", "alpha", "beta"))
    count = 1 << table_bits(node, operands.input(0))
    u: Singles = (even_steps(0, _LARGEST, count) / s_q).astype(np.float32)
    base: Singles = bias + alpha * u
    power: Singles = (base.astype(np.float64) ** np.float64(beta)).astype(np.float32)
    g: Singles = np.float32(1) / power
    s_t = np.float32(np.float32(_LARGEST) / g.max())
    return np.clip(np.rint(g * s_t), 0, _LARGEST).astype(np.int64), s_t
