"""Elementwise ADD, SUB and MUL of numbers that are not quantised: one operation in the tensor's own type, then a clamp.

Source: TFLite kernels/add.cc, sub.cc, mul.cc (EvalAdd, EvalSub, EvalMul) and kernel_util.h, CalculateActivationRange.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.numerics.fixed_point import activation_bounds
from tflq.interpreter.operands.checks import require_broadcast, require_same_type, require_type
from tflq.interpreter.recording.primitive import primitive
from tflq.interpreter.registry import Kernel
from tflq.interpreter.samples import align

FEW = 1 << 13
"""Numbers up to this many are clamped by two calls without a check of their arguments; more in one pass."""
_OPERATIONS: dict[str, Callable[[Array, Array], Array]] = {"add": np.add, "sub": np.subtract, "mul": np.multiply}


@dataclass(frozen=True)
class PlainBinary:
    """What an elementwise operation without quantisation needs.

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
        params: of `lower_plain`.
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
    """Clamp as `clamp_in_place`, numbers none of which is -0.0: sums that start at +0, where numpy's extremes agree."""
    if x.size > FEW:
        return np.clip(x, minimum, maximum, out=x)
    np.maximum(x, minimum, out=x)
    np.minimum(x, maximum, out=x)
    return x
