"""Sign and base-2 logarithm in 8 or 16 bits (docs/rules/nnie.md, docs/differences/nnie.md).

S steps an octave, quantized values q of 0..M, and one number z for all values of a group: a quantized value denotes
+-2^((q + z) / S), or 0. All comparisons and logarithms are float64 of float32 values; results are stored as float32.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Singles
from tflq.errors import InputError, UnsupportedError
from tflq.interpreter.numerics.float_steps import FloatSteps, tabulate
from tflq.interpreter.recording.primitive import primitive

FORMULAS = ("library", "page", "mqbench")
SCHEMES = {8: (16, 127, 511), 16: (128, 1407, 4095)}
"""Width -> steps of an octave, largest quantized value, largest |z|."""
SMALLEST_MAXIMUM = np.float32(1e-6)
"""What the library takes for the maximum of all-zero data."""
TABULATED = 1 << 14
"""Values from which on a table pays."""
ZERO_CODE = 0x80
"""The 8-bit code of zero; 0x00 is +2^(z/16)."""


@dataclass(frozen=True)
class Scheme:
    """One width of the logarithmic code.

    Attributes:
        bits: 8 or 16.
        steps: S, quantized values of an octave: 16 or 128.
        largest: M, largest quantized value: 127 or 1407.
        largest_z: |z| is no larger: 511 or 4095.
    """

    bits: int
    steps: int
    largest: int
    largest_z: int


def scheme_of(bits: int) -> Scheme:
    """Return the scheme of a width.

    Raises:
        UnsupportedError: neither 8 nor 16.
    """
    if bits not in SCHEMES:
        raise UnsupportedError(f"logarithmic quantized values of {bits} bits; NNIE has 8 and 16")
    return Scheme(bits, *SCHEMES[bits])


def z_of(maximum: float | np.floating, scheme: Scheme, formula: str = "library") -> int:
    """Return z for a group with largest magnitude `maximum`, taken as float32.

    library: clamp(floor(S * log2 m) - M, -zmax, zmax), m = 1e-6 for all-zero data.
    page, mqbench: round(S * log2 m) - M, not clamped; ties up, or to even of a float32 logarithm.

    Raises:
        UnsupportedError: infinity or NaN; all-zero data if the formula has no value for them.
    """
    m = np.float32(abs(maximum))
    if not np.isfinite(m):
        raise UnsupportedError(f"the largest magnitude is {m}; a finite number is needed")
    if formula == "library":
        level = scheme.steps * math.log2(m or SMALLEST_MAXIMUM)
        return min(max(math.floor(level) - scheme.largest, -scheme.largest_z), scheme.largest_z)
    if m == 0:
        raise UnsupportedError(f"all values are zero, where formula '{formula}' has z = -infinity; choose 'library'")
    if formula == "mqbench":
        return int(np.rint(np.float32(scheme.steps) * np.log2(m))) - scheme.largest
    return math.floor(scheme.steps * math.log2(m) + 0.5) - scheme.largest


def clipping_of(z: int, scheme: Scheme) -> np.float32:
    """Return the clipping value of the grid, 2^((z + M) / S): the float32 above the one that is nearest.

    The library floors S * log2(c): the nearest float32 is one step low in half of all cases, this one in none.
    """
    nearest = np.float32(2.0 ** ((z + scheme.largest) / scheme.steps))
    above: np.float32 = np.nextafter(nearest, np.float32(np.inf))
    return above


def magnitudes(z: int, scheme: Scheme) -> Singles:
    """Return 2^((q + z) / S) for q = 0..M: float32[M + 1]."""
    return np.asarray(2.0 ** ((np.arange(scheme.largest + 1) + z) / scheme.steps), np.float32)


def quantize(
    x: Singles, z: int, scheme: Scheme, formula: str = "library"
) -> tuple[NDArray[np.int8], NDArray[np.int16]]:
    """Return sign (-1, 0, 1) and code q of each value, both [*shape]; q is 0 if the sign is.

    library: + if x > 2^(z/S - 1), q = clamp(floor(S * log2 x - z + 0.5), 0, M);
             - if -x > 2^((z+1)/S - 1), q = clamp(floor(S * log2(-x) - z + 0.5), 1, M); else 0, NaN too. page: + if x >=
    2^(z/S - 1).
    mqbench: as page, with a float32 logarithm and ties to even. In float64 no float32 is a tie, in float32 many are.

    Raises:
        InputError: infinity, which the library does not define.
    """
    if np.isinf(x).any():
        raise InputError("found infinity, which has no logarithmic code; every value must be finite or NaN")
    with np.errstate(divide="ignore", invalid="ignore"):
        wide = x.astype(np.float64)
        if formula == "mqbench":
            nearest = np.rint(np.float32(scheme.steps) * np.log2(np.abs(x))).astype(np.float64) - z
        else:
            nearest = np.floor(scheme.steps * np.log2(np.abs(wide)) - z + 0.5)
        least = 2.0 ** (z / scheme.steps - 1)
        positive = wide > least if formula == "library" else wide >= least
        negative = -wide > 2.0 ** ((z + 1) / scheme.steps - 1)
    sign = positive.astype(np.int8) - negative.astype(np.int8)
    codes = np.clip(nearest, negative, scheme.largest)
    return sign, np.where(sign != 0, codes, 0).astype(np.int16)


def dequantize(sign: NDArray[np.int8], codes: NDArray[np.int16], z: int, scheme: Scheme) -> Singles:
    """Return sign * 2^((q + z) / S) as float32[*shape]; zero is +0."""
    return np.asarray(np.where(sign == 0, np.float32(0), sign * magnitudes(z, scheme)[codes]), np.float32)


@primitive("on the grid", "{x} to its nearest logarithmic step, z = {z}")
def fake_quantize(x: Singles, z: int, scheme: Scheme, formula: str = "library") -> Singles:
    """Quantize and dequantize x; errors as `quantize`."""
    steps = _steps(z, scheme, formula) if x.size >= TABULATED and formula != "mqbench" else None
    if steps is None or np.isinf(x).any():
        return _on_grid(x, z, scheme, formula)
    return steps.apply(x)


def _on_grid(x: Singles, z: int, scheme: Scheme, formula: str) -> Singles:
    return dequantize(*quantize(x, z, scheme, formula), z, scheme)


@lru_cache(maxsize=64)
def _steps(z: int, scheme: Scheme, formula: str) -> FloatSteps | None:
    """Return the function of `fake_quantize` as a table; nondecreasing because float64 distinguishes float32 numbers.

    The float32 logarithm of formula mqbench promises no order among neighbors.
    """
    return tabulate(lambda x: _on_grid(x, z, scheme, formula))


def true_form(sign: NDArray[np.int8], codes: NDArray[np.int16]) -> NDArray[np.uint8]:
    """Return 8-bit quantized values: +q is 0x00..0x7F, -q is 0x81..0xFF, zero is 0x80."""
    return np.asarray(np.where(sign > 0, codes, ZERO_CODE | codes), np.uint8)
