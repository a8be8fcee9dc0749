"""CAST: the same number in another type; scales and zero points do not enter.

Floats become integers toward zero, clamped to the type, NaN its largest number (so LiteRT; TensorFlow 2.21 leaves what
does not fit to the processor). Integers wrap. float16 and bfloat16 are rounded from float32. A complex number gives its
real part. Anything but 0 is true. int2, int4 and uint4 stand opposite float32 only.

Source: TFLite kernels/cast.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.numerics.bfloat16 import narrow, numbers
from tflq.interpreter.operands.checks import require_type

NARROW = (DType.INT2, DType.INT4, DType.UINT4)
TYPES = (
    DType.INT8,
    DType.INT16,
    DType.INT32,
    DType.INT64,
    DType.UINT8,
    DType.UINT16,
    DType.UINT32,
    DType.FLOAT16,
    DType.BFLOAT16,
    DType.FLOAT32,
    DType.FLOAT64,
    DType.BOOL,
    DType.COMPLEX64,
)


@dataclass(frozen=True)
class Cast:
    """From which type to which."""

    source: DType
    target: DType


def lower(node: Node, operands: Operands) -> Cast:  # noqa: ARG001
    """Check the types.

    Raises:
        UnsupportedError: a pair that TFLite's kernel does not take.
    """
    source = require_type(operands.input(0), (*TYPES, *NARROW))
    target = require_type(operands.output(), (*TYPES, *NARROW))
    for first, second in ((source, target), (target, source)):
        if first in NARROW and second is not DType.FLOAT32:
            raise UnsupportedError(f"{source.value} to {target.value}: {first.value} is cast from and to float32 only")
    return Cast(source, target)


def run(params: Cast, x: Array) -> tuple[Array, ...]:
    """Run CAST: T[S, *shape] -> U[S, *shape]."""
    target, value = params.target, numbers(params.source, x)
    if target is params.source:
        return (x,)
    if value.dtype.kind == "c":
        value = np.ascontiguousarray(value.real)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if target is DType.BFLOAT16:
            return (narrow(value),)
        if target is DType.FLOAT16:
            return (value.astype(np.float32).astype(np.float16),)
        if target.is_integer and value.dtype.kind == "f":
            return (_saturated(value, target),)
        return (value.astype(target.storage),)


def _saturated(x: Array, target: DType) -> Array:
    whole = np.trunc(x.astype(np.float64))
    inside = (whole >= target.minimum) & (whole < float(target.maximum + 1))
    ends = np.where(whole < target.minimum, target.minimum, target.maximum).astype(target.storage)
    return np.where(inside, np.where(inside, whole, 0).astype(target.storage), ends)
