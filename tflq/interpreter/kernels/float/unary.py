"""Functions of one tensor of reals, element by element: T[S, *shape] -> T[S, *shape].

ABS: float32: |x|. Equal to TFLite bit for bit. Source: TFLite kernels/elementwise.cc.
ELU: float32: x where x >= 0, else e^x - 1; within 1 unit in the last place of TFLite's. Source: TFLite
kernels/internal/optimized/optimized_ops.h (Elu, on Eigen); there is no reference kernel.
EXP: float32: e^x, computed in float64 and rounded once; within 1 unit in the last place of TFLite's. Source: TFLite
kernels/exp.cc (the host's expf).
GELU: float32 and float16: x Phi(x), or its approximation by tanh; within 2 units in the last place of the input of
TFLite's. Source: TFLite kernels/internal/reference/gelu.h (on Eigen).
LOG: float32: ln(x), computed in float64 and rounded once; within 1 unit in the last place of TFLite's. Source: TFLite
kernels/elementwise.cc (the host's logf).
LOGISTIC: float32, float16, bfloat16: 1 where x > 16.619047, exp(x) where x < -9, else f32(1 / f32(1 + exp(-x))); within
3 units in the last place of TFLite's. float16 and bfloat16 are computed in float32 and rounded once. Source: TFLite
kernels/internal/reference/logistic.h.
RSQRT: float32: f32(1 / f32(sqrt(x))). Equal to TFLite bit for bit. Source: TFLite kernels/elementwise.cc.
SQRT: float32: sqrt(x), rounded correctly, NaN below 0. Equal to TFLite bit for bit. Source: TFLite
kernels/elementwise.cc.
TANH: TANH of float32, float16 and bfloat16, computed in float64 and rounded to float32, the latter two from there
again. TFLite's is the host's tanhf, for which glibc states two units in the last place (7 % of its results are off by
one): so far apart the two are at most. Source: TFLite kernels/activations.cc (TanhEval).
LEAKY_RELU: x where x > 0, else f32(x * alpha). Equal to TFLite bit for bit. Source: TFLite
kernels/internal/reference/leaky_relu.h.
QUANTIZE: in a model's float view: both sides are float32, and the values stay. Source: docs/calibration.md (the float
view).
DEQUANTIZE: float16 is widened to float32; in a model's float view both sides are float32. Source: TFLite
kernels/dequantize.h.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.binary import clamp_in_place
from tflq.interpreter.kernels.plain.elementwise import lower_unary, unary
from tflq.interpreter.numerics import transcendental
from tflq.interpreter.numerics.bfloat16 import from_float32, to_float32
from tflq.interpreter.operands.checks import require_same_type, require_type
from tflq.interpreter.registry import Kernel

UPPER = np.float32(16.619047164916992)
LOWER = np.float32(-9)
_FLOAT32 = (DType.FLOAT32,)
_REALS = (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16)


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
    """Return 1 where x > UPPER, exp(x) where x < LOWER, else f32(1 / f32(1 + exp(-x))).

    exp is computed in float64 and rounded once, TFLite's is the host's expf, off by one unit in the last place in about
    one of 1700 results. 1 + exp then differs by one unit at most, its reciprocal by two, and the last rounding adds
    one: three.
    """
    one, wide = np.float32(1), to_float32(dtype, x).astype(np.float64)
    rising = np.exp(wide).astype(np.float32)
    falling = np.exp(-wide).astype(np.float32)
    middle = one / (one + falling)
    result = np.where(np.greater(wide, UPPER), one, np.where(np.less(wide, LOWER), rising, middle))
    return from_float32(dtype, result)


@dataclass(frozen=True)
class Unary:
    """An operator without numbers of its own."""


@dataclass(frozen=True)
class LeakyRelu:
    """What LEAKY_RELU needs: alpha, as float32."""

    alpha: np.float32


def lower_float32(node: Node, operands: Operands) -> Unary:  # noqa: ARG001
    """Check the types.

    Raises:
        UnsupportedError: input or output is not float32.
    """
    require_type(operands.input(0), (DType.FLOAT32,))
    require_same_type(operands.input(0), operands.output())
    return Unary()


def _lower_leaky(node: Node, operands: Operands) -> LeakyRelu:
    lower_float32(node, operands)
    return LeakyRelu(np.float32(node.attributes.real("alpha", 0.0)))


def _run_leaky(params: LeakyRelu, x: Array) -> tuple[Array, ...]:
    with np.errstate(over="ignore", invalid="ignore"):
        return (np.where(np.greater(x, 0), x, np.asarray(x * params.alpha)),)


def _hard_swish(x: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        shifted = x + np.float32(3)
        bounded = np.where(np.greater(shifted, 0), np.where(np.less(shifted, 6), shifted, np.float32(6)), np.float32(0))
        return np.asarray(x * bounded / np.float32(6))


def _clamped(summary: str, source: str, function: Callable[[Array], Array]) -> Kernel:
    def run(params: Unary, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
        return (function(x),)

    return Kernel(lower_float32, run, f"{summary}. Equal to TFLite bit for bit", source)


def _clamp(summary: str, low: int, high: int, name: str) -> Kernel:
    bounds = np.float32(low), np.float32(high)
    source = f"TFLite kernels/internal/reference/reference_ops.h ({name})"
    return _clamped(summary, source, lambda x: clamp_in_place(x.copy(), *bounds))


def _lower_widened(node: Node, operands: Operands) -> Unary:  # noqa: ARG001
    require_type(operands.input(0), (DType.FLOAT16, DType.FLOAT32))
    require_type(operands.output(), (DType.FLOAT32,))
    return Unary()


def _run_widened(params: Unary, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
    return (x.astype(np.float32, copy=False),)


KERNELS = {
    "abs": unary(_FLOAT32, lambda _, x: np.asarray(np.abs(x))),
    "elu": unary(_FLOAT32, _elu),
    "exp": unary(_FLOAT32, lambda _, x: transcendental.exp(x.astype(np.float32))),
    "gelu": Kernel(_lower_gelu, _run_gelu),
    "log": unary(_FLOAT32, lambda _, x: transcendental.log(x.astype(np.float32))),
    "logistic": unary(_REALS, _logistic),
    "rsqrt": unary(_FLOAT32, lambda _, x: np.asarray(np.divide(np.float32(1), np.sqrt(x)))),
    "sqrt": unary(_FLOAT32, lambda _, x: np.asarray(np.sqrt(x))),
    "tanh": unary(_REALS, lambda dtype, x: from_float32(dtype, transcendental.tanh(to_float32(dtype, x)))),
    "relu": _clamped(
        "0 where x < 0, else x; -0.0 and NaN stay",
        "TFLite kernels/activations.cc (ReluEval)",
        lambda x: np.where(np.less(x, 0), np.float32(0), x),
    ),
    "relu6": _clamp("min(max(x, 0), 6); -0.0 and NaN stay", 0, 6, "Relu6"),
    "relu_0_to_1": _clamp("min(max(x, 0), 1); -0.0 and NaN stay", 0, 1, "Relu0To1"),
    "relu_n1_to_1": _clamp("min(max(x, -1), 1); NaN stays", -1, 1, "Relu1"),
    "hard_swish": _clamped(
        "f32(f32(x * min(6, max(0, f32(x + 3)))) / 6)", "TFLite kernels/internal/reference/hard_swish.h", _hard_swish
    ),
    "leaky_relu": Kernel(_lower_leaky, _run_leaky),
    "quantize": Kernel(lower_float32, _run_widened),
    "dequantize": Kernel(_lower_widened, _run_widened),
}
