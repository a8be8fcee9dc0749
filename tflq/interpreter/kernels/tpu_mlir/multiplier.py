"""Real scales as multiplier * 2^-shift: the search of TPU-MLIR, and the normalized form of its manual.

The roundings of BM1684X: of products by shifting, half up or half away from zero
(docs/rules/tpu_mlir.md#multipliers-and-conversions).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tflq.arrays import Integers, Reals
from tflq.errors import UnsupportedError
from tflq.graph import DType, Node
from tflq.interpreter.numerics.fixed_point import round_half_away
from tflq.interpreter.recording.primitive import primitive


@primitive("rounded", "{x} / 2^{shift}, half up")
def shift_half_up(x: ArrayLike, shift: ArrayLike) -> Integers:
    """Return x * 2^-shift, ties up: s > 0: (x + 2^(s-1)) >> s, arithmetic; s = 0: x; s < 0: x << -s.

    Args:
        x: integers; with a negative shift the result must stay below 2^63.
        shift: -32..62; operands broadcast.

    Returns:
        int64.
    """
    value, s = np.asarray(x, np.int64), np.asarray(shift, np.int64)
    right, left = np.maximum(s, 0), np.maximum(-s, 0)
    half = (np.int64(1) << right) >> 1
    return np.asarray(((value + half) >> right) << left, np.int64)


@primitive("rounded", "{x} / 2^{shift}, half away from 0")
def shift_half_away(x: ArrayLike, shift: ArrayLike) -> Integers:
    """As `shift_half_up`, ties away from zero: sign(x) * shift_half_up(|x|)."""
    value = np.asarray(x, np.int64)
    return np.asarray(np.sign(value) * shift_half_up(np.abs(value), shift), np.int64)


def saturate(x: ArrayLike, dtype: DType) -> NDArray[np.generic]:
    """Clip integers or rounded reals to the quantized values of a type, and store them in it. NaN becomes 0."""
    clipped = np.clip(np.nan_to_num(np.asarray(x), nan=0.0), dtype.minimum, dtype.maximum)
    return np.asarray(clipped.astype(dtype.storage))


LOWEST_SHIFT = -32
HIGHEST_SHIFT = 30
LARGEST_SCALE = 2.0**30
"""Below it a 32-bit accumulator times the scale stays in 64 bits."""
_LIMITS = {8: DType.INT8.maximum, 32: DType.INT32.maximum}
MANUAL = "manual"
"""Value of a node's attribute `formulas` where the manual's own formulas were asked for."""


@dataclass(frozen=True, eq=False)
class Multiplier:
    """scale ~ multiplier * 2^-shift.

    Attributes:
        multiplier: int64[1] or int64[C], not normalized: 0.5 is 1 >> 1.
        shift: int64[1] or int64[C]; negative ones shift to the left.
        scale: float64[1] or float64[C], the approximated scales.
    """

    multiplier: Integers
    shift: Integers
    scale: Reals


Search = Callable[[ArrayLike, int], Multiplier]


def find_multiplier(scale: ArrayLike, bits: int, lowest_shift: int = LOWEST_SHIFT) -> Multiplier:
    """Find the multiplier as TPU-MLIR does.

    The scale is cut to float32. Over n = lowest..30, m = round half away(scale * 2^n) while m is below the limit (127
    for 8 bits, 2^31 - 1 for 32); the smallest float32 |m / 2^n - scale| wins, the first n among equals.

    Args:
        scale: positive, one or one for each channel.
        bits: 8 or 32.
        lowest_shift: -32, or 0 if only right shifts are known.

    Raises:
        UnsupportedError: a scale that is not positive and finite, is 2^30 or more or too large for the smallest shift,
            or so small that its multiplier is 0.
    """
    scales = _check_scales(scale)
    limit = _LIMITS[bits]
    with np.errstate(over="ignore"):  # infinity has no multiplier
        pairs = np.array([_search(np.float32(s), limit, lowest_shift) for s in scales])
    return _sound(Multiplier(pairs[:, 0], pairs[:, 1], scales), bits)


def find_normalized_multiplier(scale: ArrayLike, bits: int) -> Multiplier:
    """Find the multiplier as the manual describes it: scale = 2^-n * M0 with M0 in [0.5, 1), m = M0 * 2^(bits-1).

    So 0.1234 with 32 bits is 2119995857 >> 34. Rounded half away from zero in float64; if m rounds up to 2^(bits-1),
    half of it and one bit of shift less are the same scale.

    Raises:
        UnsupportedError: as `find_multiplier`.
    """
    scales = _check_scales(scale)
    fraction, exponent = np.frexp(scales)
    multiplier = round_half_away(fraction * 2.0 ** (bits - 1)).astype(np.int64)
    shift = (bits - 1) - exponent.astype(np.int64)
    full = multiplier == 1 << (bits - 1)
    return _sound(Multiplier(np.where(full, multiplier >> 1, multiplier), shift - full, scales), bits)


def search_of(node: Node) -> Search:
    """Return the search that a node specifies: TPU-MLIR's, or the manual's."""
    return find_normalized_multiplier if is_manual(node) else find_multiplier


def is_manual(node: Node) -> bool:
    """Whether a node follows the manual's own formulas."""
    return node.attributes.text("formulas", "") == MANUAL


def _check_scales(scale: ArrayLike) -> Reals:
    scales = np.atleast_1d(np.asarray(scale, np.float64))
    bad = ~(np.isfinite(scales) & (scales > 0))
    if bad.any():
        raise UnsupportedError(
            f"channel {int(np.argmax(bad))}: the ratio of scales is {scales[bad][0]}; it must be positive and finite"
        )
    return scales


def _sound(multipliers: Multiplier, bits: int) -> Multiplier:
    wrong = (multipliers.multiplier == 0) | (multipliers.scale >= LARGEST_SCALE) | (multipliers.shift > 62)
    if wrong.any():
        channel = int(np.argmax(wrong))
        raise UnsupportedError(
            f"channel {channel}: the ratio of scales is {multipliers.scale[channel]:.6g}, which no multiplier of "
            f"{bits} bits and shift stand for; bring the ranges of input, weights and output closer together"
        )
    return multipliers


def _search(scale: np.float32, limit: int, lowest_shift: int) -> tuple[int, int]:
    best, least = (0, 0), np.float32(np.inf)
    for n in range(lowest_shift, HIGHEST_SHIFT + 1):
        m = float(round_half_away(np.float64(scale) * 2.0**n))
        if m >= limit:
            break
        error = np.abs(np.float32(m) / np.float32(2.0**n) - scale)
        if error < least:
            best, least = (int(m), n), error
    return best
