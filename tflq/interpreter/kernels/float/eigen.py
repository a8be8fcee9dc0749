"""tanh and the logistic function as the Eigen library approximates them in float32, every step rounded.

TFLite's recurrent operators use these, not the C library. Without fused multiply-add, as its wheels are built.

Source: Eigen Core/arch/Default/GenericPacketMathFunctions.h (ptanh_float) and Core/functors/UnaryFunctors.h
(scalar_logistic_op<float>).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tflq.interpreter.numerics.transcendental import exp
from tflq.interpreter.recording.primitive import primitive

Floats = NDArray[np.float32]

_LANES = 4
_TANH_REACH = np.float32(7.90738964080810547)
_TANH_NUMERATOR = (1.394553628e-8, 2.102733560e-5, 3.520756727e-3, 1.340216100e-1)
_TANH_DENOMINATOR = (8.015776984e-7, 3.326951409e-4, 2.597254514e-2, 4.673548340e-1, 1.0)
_LOGISTIC_HIGH = np.float32(16.6355324)
_LOGISTIC_LOW = np.float32(-104)
_LOG2_E = np.float32(1.44269504088896341)
_LN2_HIGH, _LN2_LOW = np.float32(-0.693359375), np.float32(2.12194440e-4)
_EVEN = (4.1898667812347412109375e-2, 0.49999141693115234375)
_ODD = (8.33471305668354034423828125e-3, 0.16666877269744873046875)


@primitive("tanh", "tanh({x}), as Eigen computes it in float32")
def tanh(x: Floats) -> Floats:
    """Return x * (1 + x^2 P(x^2)) / Q(x^2) with x cut to +-7.907, where it reaches 1."""
    with np.errstate(invalid="ignore"):
        cut = _clamped(x, -_TANH_REACH, _TANH_REACH)
        square: Floats = cut * cut
        cube: Floats = square * cut
        top: Floats = cube * _polynomial(square, _TANH_NUMERATOR) + cut
        return top / _polynomial(square, _TANH_DENOMINATOR)


@primitive("logistic", "1 / (1 + exp(-{x})), as Eigen computes it in float32")
def logistic(x: Floats, scalars: NDArray[np.bool_] | None = None) -> Floats:
    """Return e / (1 + e) with e = exp(x / 2)^2.

    Args:
        x: float32[..., n].
        scalars: bool[n], elements that do not fill a vector and take the C library's exp (`scalars_of`).
    """
    with np.errstate(all="ignore"):
        half: Floats = np.minimum(x, _LOGISTIC_HIGH) * np.float32(0.5)
        power: Floats = np.floor(half * _LOG2_E + np.float32(0.5))
        rest: Floats = power * _LN2_LOW + (power * _LN2_HIGH + half)
        square: Floats = rest * rest
        middle: Floats = rest * _polynomial(square, _ODD) + _polynomial(square, _EVEN)
        root: Floats = np.ldexp(square * middle + (rest + np.float32(1)), power.astype(np.int32))
        e: Floats = root * root
        result: Floats = np.where(x < _LOGISTIC_LOW, np.float32(0), e / (np.float32(1) + e))
        if scalars is not None and scalars.any():
            single = exp(np.minimum(x[..., scalars], _LOGISTIC_HIGH))
            result[..., scalars] = single / (np.float32(1) + single)
        return result


def scalars_of(size: int, offset: int = 0) -> NDArray[np.bool_]:
    """Return which elements of a vector do not fill registers of four: bool[size].

    Args:
        size: of the vector.
        offset: elements between a boundary of 16 bytes and the vector.
    """
    head = min(-offset % _LANES, size)
    tail = (size - head) % _LANES
    place = np.arange(size)
    return (place < head) | (place >= size - tail)


def _polynomial(x: Floats, coefficients: Sequence[float]) -> Floats:
    total: Floats = np.full_like(x, np.float32(coefficients[0]))
    for coefficient in coefficients[1:]:
        total = total * x + np.float32(coefficient)
    return total


def _clamped(x: Floats, low: np.float32, high: np.float32) -> Floats:
    return np.maximum(np.minimum(x, high), low)
