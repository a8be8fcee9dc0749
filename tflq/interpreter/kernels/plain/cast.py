"""CAST and BITCAST: another type, of the same number or of the same bits.

CAST: Floats become integers toward zero, clamped to the type, NaN its largest number (so LiteRT; TensorFlow 2.21 leaves
values that do not fit to the processor). Integers wrap. float16 and bfloat16 are rounded from float32. A complex number
is replaced by its real part. Anything but 0 is true. int2, int4 and uint4 are converted from and to float32 only.

BITCAST: Elements of less than a byte become elements of the same width only: TFLite treats them as bytes in its shapes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.numerics.bfloat16 import narrow, numbers
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.registry import Kernel

_NARROW = (DType.INT2, DType.INT4, DType.UINT4)
_CAST = (
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


def _lower_cast(node: Node, operands: Operands) -> Cast:  # noqa: ARG001
    """Check the types.

    Raises:
        UnsupportedError: a pair that TFLite's kernel does not take.
    """
    source = require_type(operands.input(0), (*_CAST, *_NARROW))
    target = require_type(operands.output(), (*_CAST, *_NARROW))
    for first, second in ((source, target), (target, source)):
        if first in _NARROW and second is not DType.FLOAT32:
            raise UnsupportedError(f"{source.value} to {target.value}: {first.value} is cast from and to float32 only")
    return Cast(source, target)


def _run_cast(params: Cast, x: Array) -> tuple[Array, ...]:
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
            return (_saturate(value, target),)
        return (value.astype(target.storage),)


def _saturate(x: Array, target: DType) -> Array:
    whole = np.trunc(x.astype(np.float64))
    inside = (whole >= target.minimum) & (whole < float(target.maximum + 1))
    ends = np.where(whole < target.minimum, target.minimum, target.maximum).astype(target.storage)
    return np.where(inside, np.where(inside, whole, 0).astype(target.storage), ends)


@dataclass(frozen=True)
class Bitcast:
    """The type and the shape of the result, of the model's own axes."""

    output: DType
    shape: tuple[int, ...]


def _lower_bitcast(node: Node, operands: Operands) -> Bitcast:  # noqa: ARG001
    """Decide the shape.

    Raises:
        UnsupportedError: one type has elements of whole bytes and the other has not.
        GraphError: a last axis that does not make up one element.
    """
    source, output = operands.input(0), operands.output()
    if source.dtype.bits == output.dtype.bits > 0:
        return Bitcast(output.dtype, source.shape)
    old, new = _bytes_of(source), _bytes_of(output)
    if old > new:
        return Bitcast(output.dtype, (*source.shape, old // new))
    if not source.shape or source.shape[-1] != new // old:
        raise GraphError(
            f"the input {source.shape} of {source.dtype.value} must end with an axis of {new // old} to become "
            f"{output.dtype.value}"
        )
    return Bitcast(output.dtype, source.shape[:-1])


def _run_bitcast(params: Bitcast, x: Array) -> tuple[Array, ...]:
    """Run BITCAST: T[S, *shape] -> U[S, *shape], with or without a last axis."""
    output = params.output
    raw = x.reshape(x.shape[0], -1).copy().view(output.storage)
    if output.bits < 8:
        codes = raw.astype(np.int16) & ((1 << output.bits) - 1)
        raw = np.where(codes > output.maximum, codes - (1 << output.bits), codes).astype(output.storage)
    return (raw.reshape(x.shape[0], *params.shape),)


def _bytes_of(tensor: Tensor) -> int:
    if tensor.dtype.bits % 8 or tensor.dtype.bits == 0:
        raise UnsupportedError(f"tensor '{tensor.name}' is {tensor.dtype.value}; bitcast takes types of whole bytes")
    return tensor.dtype.bits // 8


KERNELS = {
    "cast": Kernel(_lower_cast, _run_cast,
        "the same number in another type; scales and zero points do not enter", "TFLite kernels/cast.cc"),
    "bitcast": Kernel(_lower_bitcast, _run_bitcast,
        "the same bits as another type. Wider elements fall into a new last axis, narrower ones take it up",
        "TFLite kernels/bitcast.cc"),
}  # fmt: skip
