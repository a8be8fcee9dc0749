"""Multipliers M / 2^N of a ratio of scales, and the last step that stores the product.

Source: docs/rules/aipu/values.md#multipliers.

Multipliers M / 2^N of a ratio of scales.
Source: Compass Optimizer, utils/quant_tool_utils.py, get_linear_quant_params_from_tensor and unify_shifts_for_aiff.

The last step of nearly every layer: y = clamp(RNE(total * M * 2^-N) - zp_y).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tflq.arrays import Doubles, Integers, Singles
from tflq.errors import UnsupportedError
from tflq.graph import Array, Tensor
from tflq.interpreter.kernels.aipu.scales import code_limits, offset_of
from tflq.interpreter.recording.primitive import primitive

WIDEST = 15
LARGEST = (1 << WIDEST) - 1
USUAL_SHIFT = 31


_HALVES_TO_EVEN = """
    int64_t product = x * m;
    if (n <= 0) { return product * ((int64_t)1 << -n); }
    if (n > 60) { return 0; }
    int64_t whole = product >> n, rest = product - whole * ((int64_t)1 << n), half = (int64_t)1 << (n - 1);
    return whole + (rest > half || (rest == half && (whole & 1) == 1));
"""


@primitive("rounded", "RNE({x} * {m} * 2^-{n})", body=_HALVES_TO_EVEN)
def scaled(x: ArrayLike, m: ArrayLike, n: ArrayLike) -> Doubles:
    """Return RNE(x * M * 2^-N) in float64, ties to even; exact while |x * M| < 2^53. Operands broadcast."""
    product = np.asarray(x, np.float64) * np.asarray(m, np.float64)
    return np.rint(product * np.exp2(-np.asarray(n, np.float64)))


@dataclass(frozen=True, eq=False)
class Multiplier:
    """y = RNE(x * M * 2^-N).

    Attributes:
        m: int64[1] or int64[C].
        n: int64 of the same shape; below 0 for ratios above the widest M.
    """

    m: Integers
    n: Integers

    @property
    def first_m(self) -> int:
        """M of a ratio that is one number."""
        return int(self.m[0])

    @property
    def first_n(self) -> int:
        """N of a ratio that is one number."""
        return int(self.n[0])

    def split(self) -> tuple[Multiplier, ...]:
        """Return each M and N on its own."""
        return tuple(Multiplier(m, n) for m, n in zip(self.m[:, None], self.n[:, None], strict=True))

    def apply(self, x: Integers) -> Doubles:
        """Return RNE(x * M * 2^-N)."""
        return scaled(x, self.m, self.n)


def find_multiplier(ratio: np.float32 | float, bits: int, largest_shift: int = USUAL_SHIFT) -> Multiplier:
    """Return M / 2^N of one ratio.

    m = min(bits, 15); N = min(floor(log2((2^m - 1) / r)), largest_shift); M = floor(r * 2^N + 0.5); 1 / 1
    where M = 2^N.

    Raises:
        UnsupportedError: the ratio is no positive finite number.
    """
    return find_multipliers(np.atleast_1d(np.asarray(ratio, np.float32)), bits, largest_shift)


def find_multipliers(ratios: Singles, bits: int, largest_shift: int = USUAL_SHIFT) -> Multiplier:
    """Return M / 2^N of each of several ratios; as `find_multiplier`, 1 / 1 if all of them are 1."""
    if not np.all(np.isfinite(ratios) & (ratios > 0)):
        raise UnsupportedError(f"a ratio of scales is {ratios.min():g}: no multiplier stands for it; calibrate again")
    widest = np.float32((1 << min(bits, WIDEST)) - 1)
    n = np.floor(np.log2((widest / ratios).astype(np.float32)))
    n = np.minimum(n, largest_shift)
    m = np.floor(ratios.astype(np.float64) * np.exp2(n.astype(np.float64)) + 0.5)
    if np.array_equal(m, np.exp2(n.astype(np.float64))):
        m, n = np.ones_like(m), np.zeros_like(n)
    return Multiplier(m.astype(np.int64), n.astype(np.int64))


def unify_shifts(multipliers: Multiplier) -> Multiplier:
    """Return multipliers with one shift for all channels.

    S = max(0, max N); M <<= S - N; if the largest M exceeds 15 bits, a = ceil(log2(max M / 32767)), S -= a, M >>= a.
    """
    shift = max(0, int(multipliers.n.max()))
    m: Integers = np.left_shift(multipliers.m, shift - multipliers.n)
    largest = int(m.max())
    if largest > LARGEST:
        excess = int(np.ceil(np.log2(largest / LARGEST)))
        shift -= excess
        m = m >> excess
    return Multiplier(m, np.full(m.shape, shift, np.int64))


def type_of_multiplier(bits: int) -> str:
    """Return the type in which the IR stores multipliers of a width."""
    return "uint8" if bits <= 8 else "uint16"


@dataclass(frozen=True)
class OutputCodes:
    """Rule by which one output stores integers.

    Attributes:
        offset: zp_y.
        minimum: smallest quantized value.
        maximum: largest quantized value.
        dtype: Storage type of the quantized values.
    """

    offset: int
    minimum: int
    maximum: int
    dtype: np.dtype[np.generic]

    def requantize(self, total: Integers, rescale: Multiplier) -> Array:
        """Return clamp(RNE(total * M * 2^-N) - zp_y)."""
        return self.store(rescale.apply(total))

    def clamp(self, rounded: Doubles | Integers) -> Integers:
        """Subtract zp_y and clamp to the range of the output, int64."""
        values: Integers = np.clip(rounded - self.offset, self.minimum, self.maximum).astype(np.int64)
        return values

    def store(self, rounded: Doubles | Integers) -> Array:
        """Return clamp(rounded - zp_y) of numbers that are whole already."""
        codes: Array = np.clip(rounded - self.offset, self.minimum, self.maximum).astype(self.dtype)
        return codes


def codes_of(output: Tensor) -> OutputCodes:
    """Return the rule by which an output stores integers."""
    return OutputCodes(offset_of(output), *code_limits(output), output.dtype.storage)
