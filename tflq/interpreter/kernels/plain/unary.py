"""Functions of one tensor of plain numbers, element by element: T[S, *shape] -> T[S, *shape].

COMPLEX_ABS, IMAG and REAL: complex[S, *shape] -> float[S, *shape], float32 of complex64, float64 of complex128.

Of reals:
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.binary import clamp_in_place
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_unary, unary
from tflq.interpreter.numerics import transcendental
from tflq.interpreter.numerics.bfloat16 import by_number, from_float32, narrow, numbers, to_float32
from tflq.interpreter.registry import Kernel

_FLOATS = (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16)

_INTEGERS = (DType.INT8, DType.INT16, DType.INT32, DType.INT64)


def _negative(dtype: DType, x: Array) -> Array:
    if dtype is DType.BFLOAT16:
        return np.asarray(np.bitwise_xor(x, np.uint16(0x8000)))
    return np.asarray(np.negative(x))


def _round(dtype: DType, x: Array) -> Array:
    value = numbers(dtype, x)
    rounded = np.asarray(np.rint(value))
    rounded[(rounded == 0) & np.less(value, 0)] = 0
    return narrow(rounded) if dtype is DType.BFLOAT16 else rounded


def _circular(function: Callable[[NDArray[np.float32]], Array], summary: str, source: str) -> Kernel:
    def cast(_: DType, x: Array) -> Array:
        return function(x.astype(np.float32)).astype(x.dtype)

    return unary((DType.FLOAT32, DType.FLOAT16), cast, summary, source)


def _part(function: Callable[[Array], Array], summary: str, source: str) -> Kernel:
    def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
        result = DType.FLOAT64 if operands.input(0).dtype is DType.COMPLEX128 else DType.FLOAT32
        return lower_unary(operands, (DType.COMPLEX64, DType.COMPLEX128), result)

    def run(params: Elementwise, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
        with np.errstate(all="ignore"):
            return (function(x),)

    return Kernel(lower, run, summary, source)


UPPER = np.float32(16.619047164916992)
LOWER = np.float32(-9)
_FLOAT32 = (DType.FLOAT32,)


@dataclass(frozen=True)
class Gelu:
    """Whether GELU is approximated by tanh."""

    approximate: bool


def _lower_gelu(node: Node, operands: Operands) -> Gelu:
    lower_unary(operands, (DType.FLOAT32, DType.FLOAT16))
    return Gelu(node.attributes.boolean("approximate", False))


def _run_gelu(params: Gelu, x: Array) -> tuple[Array, ...]:
    return (transcendental.gelu(x.astype("float32"), params.approximate).astype(x.dtype),)


def _elu(_: DType, x: Array) -> Array:
    value = x.astype(np.float32)
    return np.where(value < 0, transcendental.expm1(value), value)


def _logistic(dtype: DType, x: Array) -> Array:
    """Return 1 if x > UPPER, exp(x) if x < LOWER, else f32(1 / f32(1 + exp(-x))).

    exp is computed in float64 and rounded once, TFLite's is the host's expf, off by 1 ULP in about one of 1700 results.
    1 + exp then differs by one unit at most, its reciprocal by two, and the last rounding adds one: three.
    """
    one, wide = np.float32(1), to_float32(dtype, x).astype(np.float64)
    rising = np.exp(wide).astype(np.float32)
    falling = np.exp(-wide).astype(np.float32)
    middle = one / (one + falling)
    result = np.where(np.greater(wide, UPPER), one, np.where(np.less(wide, LOWER), rising, middle))
    return from_float32(dtype, result)


@dataclass(frozen=True)
class LeakyRelu:
    """The params of LEAKY_RELU: alpha, as float32."""

    alpha: np.float32


def _lower_leaky(node: Node, operands: Operands) -> LeakyRelu:
    lower_unary(operands, _FLOAT32)
    return LeakyRelu(np.float32(node.attributes.real("alpha", 0.0)))


def _run_leaky(params: LeakyRelu, x: Array) -> tuple[Array, ...]:
    with np.errstate(over="ignore", invalid="ignore"):
        return (np.where(np.greater(x, 0), x, np.asarray(x * params.alpha)),)


def _hard_swish(x: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        shifted = x + np.float32(3)
        bounded = np.where(np.greater(shifted, 0), np.where(np.less(shifted, 6), shifted, np.float32(6)), np.float32(0))
        return np.asarray(x * bounded / np.float32(6))


def _exact(summary: str, source: str, function: Callable[[Array], Array]) -> Kernel:
    return unary(_FLOAT32, lambda _, x: function(x), f"{summary}. Equal to TFLite bit for bit", source)


def _clamp(summary: str, low: int, high: int, name: str) -> Kernel:
    bounds = np.float32(low), np.float32(high)
    source = f"TFLite kernels/internal/reference/reference_ops.h ({name})"
    return _exact(summary, source, lambda x: clamp_in_place(x.copy(), *bounds))


def _lower_widened(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    return lower_unary(operands, (DType.FLOAT16, DType.FLOAT32), DType.FLOAT32)


def _run_widened(params: Elementwise, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
    return (x.astype(np.float32, copy=False),)


UNQUANTIZED = {
    "abs": unary(_FLOAT32, lambda _, x: np.asarray(np.abs(x)),
        "float32: |x|. Equal to TFLite bit for bit", "TFLite kernels/elementwise.cc"),
    "elu": unary(_FLOAT32, _elu,
        "float32: x where x >= 0, else e^x - 1; within 1 unit in the last place of TFLite's",
        "TFLite kernels/internal/optimized/optimized_ops.h (Elu, on Eigen); there is no reference kernel"),
    "exp": unary(_FLOAT32, lambda _, x: transcendental.exp(x.astype(np.float32)),
        "float32: e^x, computed in float64 and rounded once; within 1 unit in the last place of TFLite's",
        "TFLite kernels/exp.cc (the host's expf)"),
    "gelu": Kernel(_lower_gelu, _run_gelu,
        "float32 and float16: x Phi(x), or its approximation by tanh; within 2 units in the last place of the input "
        "of TFLite's", "TFLite kernels/internal/reference/gelu.h (on Eigen)"),
    "log": unary(_FLOAT32, lambda _, x: transcendental.log(x.astype(np.float32)),
        "float32: ln(x), computed in float64 and rounded once; within 1 unit in the last place of TFLite's",
        "TFLite kernels/elementwise.cc (the host's logf)"),
    "logistic": unary(_FLOATS, _logistic,
        "float32, float16, bfloat16: 1 where x > 16.619047, exp(x) where x < -9, else f32(1 / f32(1 + exp(-x))); "
        "within 3 units in the last place of TFLite's. float16 and bfloat16 are computed in float32 and rounded once",
        "TFLite kernels/internal/reference/logistic.h"),
    "rsqrt": unary(_FLOAT32, lambda _, x: np.asarray(np.divide(np.float32(1), np.sqrt(x))),
        "float32: f32(1 / f32(sqrt(x))). Equal to TFLite bit for bit", "TFLite kernels/elementwise.cc"),
    "sqrt": unary(_FLOAT32, lambda _, x: np.asarray(np.sqrt(x)),
        "float32: sqrt(x), rounded correctly, NaN below 0. Equal to TFLite bit for bit",
        "TFLite kernels/elementwise.cc"),
    "tanh": unary(_FLOATS, lambda dtype, x: from_float32(dtype, transcendental.tanh(to_float32(dtype, x))),
        "TANH of float32, float16 and bfloat16, computed in float64 and rounded to float32, the latter two from there "
        "again. TFLite's is the host's tanhf, for which glibc states two units in the last place (7 % of its results "
        "are off by one): so far apart the two are at most", "TFLite kernels/activations.cc (TanhEval)"),
    "relu": _exact(
        "0 where x < 0, else x; -0.0 and NaN stay", "TFLite kernels/activations.cc (ReluEval)",
        lambda x: np.where(np.less(x, 0), np.float32(0), x)),
    "relu6": _clamp("min(max(x, 0), 6); -0.0 and NaN stay", 0, 6, "Relu6"),
    "relu_0_to_1": _clamp("min(max(x, 0), 1); -0.0 and NaN stay", 0, 1, "Relu0To1"),
    "relu_n1_to_1": _clamp("min(max(x, -1), 1); NaN stays", -1, 1, "Relu1"),
    "hard_swish": _exact(
        "f32(f32(x * min(6, max(0, f32(x + 3)))) / 6)", "TFLite kernels/internal/reference/hard_swish.h", _hard_swish),
    "leaky_relu": Kernel(_lower_leaky, _run_leaky,
        "x where x > 0, else f32(x * alpha). Equal to TFLite bit for bit",
        "TFLite kernels/internal/reference/leaky_relu.h"),
    "quantize": unary(_FLOAT32, lambda _, x: x,
        "in a model's float view: both sides are float32, and the values stay",
            "docs/guides/calibration.md (the float view)"),
    "dequantize": Kernel(_lower_widened, _run_widened,
        "float16 is widened to float32; in a model's float view both sides are float32", "TFLite kernels/dequantize.h"),
}  # fmt: skip

KERNELS = {
    "ceil": unary((DType.FLOAT32,), lambda _, x: np.asarray(np.ceil(x)),
        "the smallest whole number that is not below x. Equal to TFLite bit for bit", "TFLite kernels/ceil.cc"),
    "complex_abs": _part(lambda x: np.hypot(x.real.astype(np.float64), x.imag.astype(np.float64)).astype(x.real.dtype),
        "the magnitude, computed in float64. Equal to TFLite bit for bit", "TFLite kernels/complex_support.cc"),
    "cos": _circular(transcendental.cos,
        "cos(x), computed in float64 and rounded once; within 1 unit in the last place of TFLite's (the host's cosf)",
        "TFLite kernels/elementwise.cc"),
    "floor": unary(_FLOATS, lambda dtype, x: by_number(dtype, x, np.floor),
        "the largest whole number that is not above x. Equal to TFLite bit for bit", "TFLite kernels/floor.cc"),
    "imag": _part(lambda x: np.ascontiguousarray(x.imag), "the imaginary part", "TFLite kernels/complex_support.cc"),
    "logical_not": unary((DType.BOOL,), lambda _, x: np.asarray(np.logical_not(x)),
        "not x", "TFLite kernels/elementwise.cc"),
    "neg": unary((*_FLOATS, *_INTEGERS), _negative,
        "-x. Quantized values are negated as they are, scales and zero points do not enter; the lowest integer stays",
        "TFLite kernels/neg.cc"),
    "real": _part(lambda x: np.ascontiguousarray(x.real), "the real part", "TFLite kernels/complex_support.cc"),
    "round": unary(_FLOATS, _round,
        "x rounded to a whole number, ties to even; what rounds up to 0 is +0. Equal to TFLite bit for bit",
        "TFLite kernels/round.cc, internal/reference/round.h; in TFLite's optimized set only"),
    "sign": unary((DType.FLOAT32, DType.FLOAT64, DType.INT32), lambda _, x: np.asarray(np.sign(x) + x.dtype.type(0)),
        "1 above 0, -1 below, 0 at 0 and -0; NaN stays", "TFLite kernels/sign.cc"),
    "sin": _circular(transcendental.sin,
        "sin(x), computed in float64 and rounded once; within 1 unit in the last place of TFLite's (the host's sinf)",
        "TFLite kernels/elementwise.cc"),
    "square": unary((DType.FLOAT32,), lambda _, x: np.asarray(np.multiply(x, x)),
        "f32(x * x). Equal to TFLite bit for bit", "TFLite kernels/elementwise.cc"),
    "zeros_like": unary((DType.FLOAT32, DType.INT32, DType.INT64), lambda _, x: np.zeros_like(x),
        "zeros in the shape of x", "TFLite kernels/zeros_like.cc"),
}  # fmt: skip
