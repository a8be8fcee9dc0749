"""SLICE: a box of the input, from `begin` on, `size` long; a size of -1 reaches to the end.

Source: TFLite kernels/slice.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_same_type
from tflq.interpreter.operands.movable import FIXED_SIZE, constant_vector, require_movable


@dataclass(frozen=True)
class Slice:
    """The box, in the model's own axes.

    Attributes:
        begin: first index along each axis.
        size: length along each axis.
    """

    begin: tuple[int, ...]
    size: tuple[int, ...]


def lower(node: Node, operands: Operands) -> Slice:
    """Decide the box.

    Raises:
        GraphError: a box that is not inside the input, or computed at run time.
        UnsupportedError: a type that TFLite does not slice, or begin and size of two types, which it would misread.
    """
    source = operands.input(0)
    require_movable(node, source, operands.output(), (*FIXED_SIZE, DType.STRING, DType.INT4))
    require_same_type(operands.input(1), operands.input(2))
    begin, size = constant_vector(operands, 1), constant_vector(operands, 2)
    if not len(begin) == len(size) == len(source.shape):
        raise GraphError(f"begin {begin} and size {size} need one number for each axis of {source.shape}")
    lengths = tuple(n - b if s == -1 else s for b, s, n in zip(begin, size, source.shape, strict=True))
    for b, length, n in zip(begin, lengths, source.shape, strict=True):
        if b < 0 or length < 0 or b + length > n:
            raise GraphError(f"begin {begin} and size {size} leave the input's shape {source.shape}")
    return Slice(begin, lengths)


def run(params: Slice, x: Array, *_box: Array) -> tuple[Array, ...]:
    """Run SLICE: T[S, *shape] -> T[S, *size], a view of the input."""
    box = (slice(b, b + size) for b, size in zip(params.begin, params.size, strict=True))
    where = (slice(None), *box)
    return (x[where],)
