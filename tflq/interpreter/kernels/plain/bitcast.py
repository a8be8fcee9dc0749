"""BITCAST: the same bits as another type. Wider elements fall into a new last axis, narrower ones take it up.

Elements of less than a byte become others of the same width only: TFLite takes them for bytes in its shapes.

Source: TFLite kernels/bitcast.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands, Tensor


@dataclass(frozen=True)
class Bitcast:
    """The type and the shape of the result, of the model's own axes."""

    output: DType
    shape: tuple[int, ...]


def lower(node: Node, operands: Operands) -> Bitcast:  # noqa: ARG001
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


def run(params: Bitcast, x: Array) -> tuple[Array, ...]:
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
