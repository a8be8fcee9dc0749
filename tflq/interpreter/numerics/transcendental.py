"""Real functions computed in float64 and rounded once to float32, for kernels and for quantised tables.

TFLite's are the host's float32 ones, which round correctly in nearly all cases; how far apart the two may be is stated
by each operator.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array
from tflq.interpreter.recording.primitive import primitive

Floats = NDArray[np.float32]
_Doubles = NDArray[np.float64]

SQRT_HALF = np.float32(math.sqrt(0.5))
SQRT_2_OVER_PI = np.float32(math.sqrt(2 / math.pi))


def rounded_once(function: Callable[[_Doubles], _Doubles]) -> Callable[[NDArray[np.floating]], Floats]:
    """Return a float32 function that is computed in float64."""
    name = getattr(function, "__name__", "function").strip("_")

    @primitive(name, f"float32({name}({{x}}))")
    def compute(x: NDArray[np.floating]) -> Floats:
        with np.errstate(all="ignore"):
            return np.asarray(function(x.astype(np.float64)).astype(np.float32))

    return compute


def _erfc(x: _Doubles) -> _Doubles:
    return np.fromiter(map(math.erfc, x.ravel().tolist()), np.float64, x.size).reshape(x.shape)


@primitive("erf", "erf({x})")
def erf(x: _Doubles) -> _Doubles:
    """The error function of float64, by the C library."""
    return np.fromiter(map(math.erf, x.ravel().tolist()), np.float64, x.size).reshape(x.shape)


exp = rounded_once(np.exp)
log = rounded_once(np.log)
expm1 = rounded_once(np.expm1)
tanh = rounded_once(np.tanh)
erfc = rounded_once(_erfc)
sin = rounded_once(np.sin)
cos = rounded_once(np.cos)


@primitive("power", "float32({x} ** {y})")
def power(x: Array, y: Array | np.float32) -> Floats:
    """x^y of float32, elementwise with broadcasting."""
    with np.errstate(all="ignore"):
        return np.asarray(np.power(x.astype(np.float64), y.astype(np.float64)).astype(np.float32))


def gelu(x: NDArray[np.floating], approximate: bool) -> Floats:
    """X Phi(x) of float32: f32(x/2) erfc(f32(-x sqrt(1/2))), or the approximation by tanh.

    Approximate: f32(x/2) (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); each operation in float32.
    """
    value = x.astype(np.float32)
    with np.errstate(all="ignore"):
        half = np.float32(0.5) * value
        if not approximate:
            return np.asarray(half * erfc(value * -SQRT_HALF))
        inner = value + np.float32(0.044715) * value * value * value
        return np.asarray(half * (np.float32(1) + tanh(SQRT_2_OVER_PI * inner)))
