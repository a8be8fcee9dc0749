"""REVERSE_SEQUENCE: in each batch the first elements of a sequence backwards, as many as input 1 says; the rest stays.

Source: TFLite kernels/reverse_sequence.cc and internal/reference/reference_ops.h (ReverseSequence). TFLite compares the
first length only with the size of the axis, and reads outside the tensor where another one is too long: refused here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError, InputError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.operands.movable import INDEX_TYPES, require_movable

TYPES = (DType.FLOAT32, DType.UINT8, DType.INT16, DType.INT32, DType.INT64)


@dataclass(frozen=True)
class ReverseSequence:
    """Axes of the model's own shape.

    Attributes:
        sequence: along which elements change places.
        batch: whose every index has its own length.
    """

    sequence: int
    batch: int


def lower(node: Node, operands: Operands) -> ReverseSequence:
    """Decide the axes.

    Raises:
        GraphError: axes out of range or equal, or another number of lengths than batches.
        UnsupportedError: a type that TFLite does not reverse.
    """
    source, lengths = operands.input(0), operands.input(1)
    require_movable(node, source, operands.output(), TYPES)
    require_type(lengths, INDEX_TYPES)
    sequence, batch = node.attributes.integer("seq_dim", 0), node.attributes.integer("batch_dim", 0)
    rank = len(source.shape)
    if sequence == batch or not 0 <= sequence < rank or not 0 <= batch < rank:
        raise GraphError(f"seq_dim {sequence} and batch_dim {batch} need to be two of the axes 0..{rank - 1}")
    if lengths.shape != (source.shape[batch],):
        raise GraphError(f"the lengths have shape {lengths.shape}; axis {batch} of {source.shape} needs one for each")
    return ReverseSequence(sequence, batch)


def run(params: ReverseSequence, x: Array, lengths: Array) -> tuple[Array, ...]:
    """Run REVERSE_SEQUENCE: T[S or 1, *shape], [S or 1, batches] -> T[S, *shape].

    Raises:
        InputError: a length above the size of the axis.
    """
    sequence, batch = params.sequence + 1, params.batch + 1
    size = x.shape[sequence]
    if lengths.size and lengths.max() > size:
        raise InputError(f"a sequence has length {lengths.max()}; axis {params.sequence} of the input has {size}")
    places = np.arange(size)
    ends = lengths.astype(np.int64)[:, :, None]
    indices = np.where(places < ends, ends - 1 - places, places)  # [S or 1, batches, size]
    if batch > sequence:
        indices = indices.swapaxes(1, 2)
    shape = [1] * x.ndim
    shape[0], shape[sequence], shape[batch] = indices.shape[0], size, x.shape[batch]
    return (np.take_along_axis(x, indices.reshape(shape), sequence),)
