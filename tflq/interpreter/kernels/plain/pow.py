"""POW: x^y, elementwise with broadcasting.

float32: computed in float64 and rounded once; within 1 unit in the last place of TFLite's (powf of the host).
int32: computed in float64 and cut, what does not fit becomes -2^31; negative exponents are refused at run time.
One exponent for a larger base, whole and at least 1 (nearer than 1e-5), is multiplied out instead: p(1) = x,
p(n) = p(n // 2)^2, times x where n is odd; floats are clamped to the finite numbers after each step, int32 wraps.

Source: TFLite kernels/pow.cc, internal/optimized/optimized_ops.h (BroadcastPow4D, IntegerExponentPow).
"""

from __future__ import annotations

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.binary import clamp_in_place
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_binary
from tflq.interpreter.numerics.fixed_point import float_to_int32, round_half_away
from tflq.interpreter.numerics.transcendental import power
from tflq.interpreter.samples import align

LARGEST = np.finfo(np.float32).max
EPSILON = np.float32(1e-5)


def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the operands; errors as `lower_binary`."""
    return lower_binary(operands, (DType.FLOAT32, DType.INT32))


def run(params: Elementwise, first: Array, second: Array) -> tuple[Array, ...]:
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
    result = _clamped(np.multiply(root, root))
    return _clamped(np.multiply(base, result)) if exponent % 2 else result


def _clamped(x: Array) -> Array:
    return clamp_in_place(x, -LARGEST, LARGEST) if x.dtype == np.float32 else x


def _power(dtype: DType, x: Array, y: Array) -> Array:
    if dtype is DType.FLOAT32:
        return power(x, y)
    with np.errstate(all="ignore"):
        return float_to_int32(np.power(x.astype(np.float64), y.astype(np.float64))).astype(np.int32)
