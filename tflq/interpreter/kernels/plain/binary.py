"""ADD, SUB, MUL and POW of plain numbers, elementwise with broadcasting.

MUL of complex64: the product of two complex numbers, part by part in float32, without an activation.

real = a_r b_r - a_i b_i, imag = a_r b_i + a_i b_r, each operation rounded to float32. If both parts are NaN the C++
library looks for infinities among the factors; tflq does not, so infinite factors may result in NaN here.

ADD, SUB and MUL of numbers that are not quantized: one operation in the tensor's own type, then a clamp.

POW: float32: computed in float64 and rounded once; within 1 ULP of TFLite's (powf of the host). int32: computed in
float64 and cut, a result that does not fit becomes -2^31; negative exponents are refused at run time. One exponent for
a larger base, whole and at least 1 (nearer than 1e-5), is multiplied out instead: p(1) = x, p(n) = p(n // 2)^2, times x
if n is odd; floats are clamped to the finite numbers after each step, int32 wraps.

Source: TFLite kernels/mul.cc and the complex multiplication of C (ISO C, Annex G); TFLite kernels/add.cc, sub.cc,
mul.cc (EvalAdd, EvalSub, EvalMul) and kernel_util.h, CalculateActivationRange.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_binary
from tflq.interpreter.numerics.fixed_point import activation_bounds, float_to_int32, round_half_away
from tflq.interpreter.numerics.transcendental import power
from tflq.interpreter.operands.checks import require_broadcast, require_same_type, require_type
from tflq.interpreter.recording.primitive import primitive
from tflq.interpreter.registry import Kernel
from tflq.interpreter.samples import align


@dataclass(frozen=True)
class ComplexProduct:
    """Empty params of the complex product."""


def lower_complex(node: Node, operands: Operands) -> ComplexProduct:
    """Check the operands.

    Raises:
        UnsupportedError: types that differ, or a fused activation.
        GraphError: shapes that do not broadcast.
    """
    first, second = operands.input(0), operands.input(1)
    require_same_type(first, second, operands.output())
    require_broadcast(first, second)
    activation = node.attributes.text("fused_activation_function", "none")
    if activation != "none":
        raise UnsupportedError(f"fused activation '{activation}'; complex64 takes none")
    return ComplexProduct()


def run_complex(first: Array, second: Array) -> tuple[Array, ...]:
    """Multiply: complex64[S or 1, *shape] twice, shapes broadcast -> complex64[S, *shape]."""
    x, y = (v.astype(np.complex64, copy=False) for v in align(first, second))
    with np.errstate(over="ignore", invalid="ignore"):
        real = np.asarray(x.real * y.real) - np.asarray(x.imag * y.imag)
        imag = np.asarray(x.real * y.imag) + np.asarray(x.imag * y.real)
    product = np.empty(real.shape, np.complex64)
    product.real, product.imag = real, imag
    return (product,)


FEW = 1 << 13
"""Numbers up to this many are clamped by two calls without a check of their arguments; more in one pass."""
_OPERATIONS: dict[str, Callable[[Array, Array], Array]] = {"add": np.add, "sub": np.subtract, "mul": np.multiply}


@dataclass(frozen=True)
class PlainBinary:
    """The params of an elementwise operation without quantization.

    Attributes:
        operation: "add", "sub" or "mul".
        minimum: lower bound of the fused activation, in the tensor's type.
        maximum: upper bound.
    """

    operation: str
    minimum: np.generic
    maximum: np.generic


def lower_plain(operation: str, node: Node, operands: Operands, allowed: Collection[DType]) -> PlainBinary:
    """Check the operands and decide the bounds.

    Without an activation the bounds are the smallest and largest finite value, so that an infinite sum of floats
    becomes the largest finite number, as in TFLite.

    Raises:
        UnsupportedError: a type or activation that is not allowed.
        GraphError: shapes that do not broadcast.
    """
    first, second = operands.input(0), operands.input(1)
    dtype = require_type(first, allowed)
    require_same_type(first, second, operands.output())
    require_broadcast(first, second)
    low, high = activation_bounds(node.attributes.text("fused_activation_function", "none"))
    kind = dtype.storage.type
    if dtype.is_floating:
        minimum, maximum = float(np.finfo(kind).min), float(np.finfo(kind).max)  # type: ignore[type-var]
        return PlainBinary(operation, kind(minimum if low is None else low), kind(maximum if high is None else high))
    bounds = np.iinfo(kind)  # type: ignore[type-var]
    minimum_value = bounds.min if low is None else int(low)
    if minimum_value < bounds.min:
        minimum_value = int(np.array([minimum_value]).astype(kind)[0])  # C converts -1 to an unsigned type
    return PlainBinary(operation, kind(minimum_value), kind(bounds.max if high is None else int(high)))


def run_plain(params: PlainBinary, first: Array, second: Array) -> tuple[Array, ...]:
    """Compute min(max(first op second, minimum), maximum) elementwise; integers wrap, NaN stays, -0.0 stays.

    Args:
        params: Result of `lower_plain`.
        first: T[S or 1, *shape].
        second: T[S or 1, *shape].
    """
    with np.errstate(over="ignore", invalid="ignore"):
        result = np.asarray(_OPERATIONS[params.operation](*align(first, second)))
    return (clamp_in_place(result, params.minimum, params.maximum),)


def plain_pair(operation: str, summary: str, allowed: Collection[DType]) -> Kernel:
    """Return the row of an operation of `lower_plain`: T[S or 1, *shape] twice, shapes broadcast -> T[S, *shape]."""
    lower = partial(lower_plain, operation, allowed=allowed)
    return Kernel(lower, run_plain, summary, f"TFLite kernels/{operation}.cc")


@primitive("clamp", "clamp({x}, {minimum}, {maximum})")
def clamp_in_place(x: Array, minimum: np.generic, maximum: np.generic) -> Array:
    """Clamp as C's std::min and std::max do: a comparison with NaN is false, and -0.0 is not below 0.0."""
    np.copyto(x, minimum, where=np.less(x, minimum))
    np.copyto(x, maximum, where=np.greater(x, maximum))
    return x


@primitive("clamp", "clamp({x}, {minimum}, {maximum})")
def clamp_sums_in_place(x: Array, minimum: np.generic, maximum: np.generic) -> Array:
    """Clamp as `clamp_in_place`, numbers none of which is -0.0: sums that start at +0 (numpy's extremes agree)."""
    if x.size > FEW:
        return np.clip(x, minimum, maximum, out=x)
    np.maximum(x, minimum, out=x)
    np.minimum(x, maximum, out=x)
    return x


LARGEST = np.finfo(np.float32).max
EPSILON = np.float32(1e-5)


def _lower_pow(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the operands; errors as `lower_binary`."""
    return lower_binary(operands, (DType.FLOAT32, DType.INT32))


def _run_pow(params: Elementwise, first: Array, second: Array) -> tuple[Array, ...]:
    """Run POW: T[S or 1, *shape] twice, shapes broadcast -> T[S, *shape].

    Raises:
        UnsupportedError: an integer exponent is negative.
    """
    if params.dtype is DType.INT32 and np.any(np.less(second, 0)):
        raise UnsupportedError("pow: an integer exponent is negative; TFLite refuses it")
    broadcast = first.shape[1:] != second.shape[1:]
    if not broadcast or second[0].size != 1:
        return (_power(params.dtype, *align(first, second)),)
    samples = max(first.shape[0], second.shape[0]) if second.shape[0] > 1 else 1
    results = []
    for s in range(samples):
        base = first if samples == 1 else first[s % len(first)][None]
        results.append(_one_exponent(params.dtype, base, second[s]))
    return (np.concatenate(results),)


def _one_exponent(dtype: DType, base: Array, exponent: Array) -> Array:
    value = exponent.reshape(-1)[0]
    whole = int(float_to_int32(round_half_away(exponent.reshape(-1)[:1]))[0])
    if whole >= 1 and abs(np.float32(value) - np.float32(whole)) < EPSILON:
        with np.errstate(all="ignore"):
            product = _multiplied_out(base, whole)
        rank = max(base.ndim, exponent.ndim + 1)
        return product.reshape(product.shape[:1] + (1,) * (rank - base.ndim) + product.shape[1:])
    return _power(dtype, *align(base, exponent[None]))


def _multiplied_out(base: Array, exponent: int) -> Array:
    if exponent == 1:
        return base
    root = _multiplied_out(base, exponent // 2)
    result = _clamp_floats(np.multiply(root, root))
    return _clamp_floats(np.multiply(base, result)) if exponent % 2 else result


def _clamp_floats(x: Array) -> Array:
    return clamp_in_place(x, -LARGEST, LARGEST) if x.dtype == np.float32 else x


def _power(dtype: DType, x: Array, y: Array) -> Array:
    if dtype is DType.FLOAT32:
        return power(x, y)
    with np.errstate(all="ignore"):
        return float_to_int32(np.power(x.astype(np.float64), y.astype(np.float64))).astype(np.int32)


KERNELS = {
    "pow": Kernel(_lower_pow, _run_pow,
        "x^y, elementwise with broadcasting",
        "TFLite kernels/pow.cc, internal/optimized/optimized_ops.h (BroadcastPow4D, IntegerExponentPow)"),
}  # fmt: skip
