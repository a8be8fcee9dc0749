"""TRANSPOSE, REVERSE_V2, REVERSE_SEQUENCE and TOPK_V2: axes and elements in another order.

TRANSPOSE: input 1 names, for each axis of the output, the input's. REVERSE_V2: the input backwards along the axes that
input 1 lists, which must be neighbors.

REVERSE_SEQUENCE: TFLite compares the first length only with the size of the axis, and reads outside the tensor if
another one is too long: refused here.

TOPK_V2: Equal elements keep their order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError, InputError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import MAXIMUM_RANK, constant_integers, require_type, resolve_axis
from tflq.interpreter.operands.movable import INDEX_TYPES, constant_number, constant_vector, require_movable
from tflq.interpreter.registry import Kernel

_TRANSPOSED = tuple(dtype for dtype in DType if 0 < dtype.bits <= 64)


@dataclass(frozen=True)
class Transpose:
    """Output axis -> input axis, of the model's own axes."""

    permutation: tuple[int, ...]


def _lower_transpose(node: Node, operands: Operands) -> Transpose:
    """Decide the permutation.

    Raises:
        GraphError: no permutation of the input's axes, or one computed at run time.
        UnsupportedError: more than 8 axes, types that differ, or that TFLite does not transpose.
    """
    source = operands.input(0)
    rank = len(source.shape)
    require_movable(node, source, operands.output(), _TRANSPOSED)
    if rank > MAXIMUM_RANK:
        raise UnsupportedError(f"the input has {rank} axes; TFLite transposes up to {MAXIMUM_RANK}")
    given = tuple(int(axis) for axis in constant_integers(operands, 1).reshape(-1))
    permutation = tuple(resolve_axis(axis, rank) for axis in given)
    if sorted(permutation) != list(range(rank)):
        raise GraphError(f"{given} is no permutation of the input's {rank} axes")
    return Transpose(permutation)


def _run_transpose(params: Transpose, x: Array, *_permutation: Array) -> tuple[Array, ...]:
    """Run TRANSPOSE: T[S, *shape] -> T[S, *permuted shape]."""
    return (np.ascontiguousarray(x.transpose(0, *(axis + 1 for axis in params.permutation))),)


_REVERSED = (
    DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16, DType.FLOAT8_E4M3FN, DType.FLOAT8_E5M2, DType.UINT8, DType.INT8,
    DType.INT16, DType.INT32, DType.INT64, DType.BOOL,
)  # fmt: skip


@dataclass(frozen=True)
class ReverseV2:
    """The axes, counted from 0 in the model's own shape, ascending."""

    axes: tuple[int, ...]


def _lower_reverse(node: Node, operands: Operands) -> ReverseV2:
    """Decide the axes.

    Raises:
        GraphError: no axis, one out of range or named twice, or computed at run time.
        UnsupportedError: axes that are not neighbors, more than 8 axes, or a type that TFLite does not reverse.
    """
    source = operands.input(0)
    require_movable(node, source, operands.output(), _REVERSED)
    if len(source.shape) > MAXIMUM_RANK:
        raise UnsupportedError(f"the input has {len(source.shape)} axes; TFLite reverses up to {MAXIMUM_RANK}")
    given = constant_vector(operands, 1, (DType.INT32,))
    axes = tuple(sorted(resolve_axis(axis, len(source.shape)) for axis in given))
    if not axes or len(set(axes)) < len(axes):
        raise GraphError(f"the axes are {given}; each is named once, and there is one at least")
    if axes[-1] - axes[0] != len(axes) - 1:
        raise UnsupportedError(f"the axes {given} are not neighbors; TFLite reverses neighbors only")
    return ReverseV2(axes)


def _run_reverse(params: ReverseV2, x: Array, *_axes: Array) -> tuple[Array, ...]:
    """Run REVERSE_V2: T[S, *shape] -> T[S, *shape], a view of the input."""
    return (np.flip(x, tuple(axis + 1 for axis in params.axes)),)


_SEQUENCES = (DType.FLOAT32, DType.UINT8, DType.INT16, DType.INT32, DType.INT64)


@dataclass(frozen=True)
class ReverseSequence:
    """Axes of the model's own shape.

    Attributes:
        sequence: along which elements change places.
        batch: axis with one length for each index.
    """

    sequence: int
    batch: int


def lower_reverse_sequence(node: Node, operands: Operands) -> ReverseSequence:
    """Decide the axes.

    Raises:
        GraphError: axes out of range or equal, or another number of lengths than batches.
        UnsupportedError: a type that TFLite does not reverse.
    """
    source, lengths = operands.input(0), operands.input(1)
    require_movable(node, source, operands.output(), _SEQUENCES)
    require_type(lengths, INDEX_TYPES)
    sequence, batch = node.attributes.integer("seq_dim", 0), node.attributes.integer("batch_dim", 0)
    rank = len(source.shape)
    if sequence == batch or not 0 <= sequence < rank or not 0 <= batch < rank:
        raise GraphError(f"seq_dim {sequence} and batch_dim {batch} need to be two of the axes 0..{rank - 1}")
    if lengths.shape != (source.shape[batch],):
        raise GraphError(f"the lengths have shape {lengths.shape}; axis {batch} of {source.shape} needs one for each")
    return ReverseSequence(sequence, batch)


def run_reverse_sequence(params: ReverseSequence, x: Array, lengths: Array) -> tuple[Array, ...]:
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


_RANKED = (DType.FLOAT32, DType.UINT8, DType.INT8, DType.INT16, DType.INT32, DType.INT64)
INDICES = (DType.INT32, DType.INT16)


@dataclass(frozen=True)
class TopkV2:
    """How many.

    Attributes:
        k: number of elements.
        index_dtype: numpy's name of the type of the places.
    """

    k: int
    index_dtype: str


def _lower_topk_v2(node: Node, operands: Operands) -> TopkV2:
    """Decide k.

    Raises:
        GraphError: k above the length of a row or computed at run time, or a scalar input.
        UnsupportedError: types that TFLite does not take, or rows too long for the type of the places.
    """
    source, places = operands.input(0), operands.output(1)
    require_movable(node, source, operands.output(), _RANKED)
    require_type(places, INDICES)
    k = max(0, constant_number(operands, 1, INDICES))
    if not source.shape or k > source.shape[-1]:
        raise GraphError(f"k is {k}; the rows of an input of shape {source.shape} are shorter")
    if k and source.size and source.shape[-1] > places.dtype.maximum:
        raise UnsupportedError(f"rows have {source.shape[-1]} elements; {places.dtype.value} does not count so far")
    return TopkV2(k, places.dtype.value)


def _run_topk_v2(params: TopkV2, x: Array, *_k: Array) -> tuple[Array, ...]:
    """Run TOPK_V2: T[S, *rows, n] -> T[S, *rows, k], int[S, *rows, k].

    NaN counts as smaller than every number.
    """
    descending = np.negative(x) if x.dtype.kind == "f" else np.invert(x)  # -(-128) would overflow, ~(-128) does not
    places = np.argsort(descending, axis=-1, kind="stable")[..., : params.k]
    return np.take_along_axis(x, places, -1), places.astype(params.index_dtype)


KERNELS = {
    "transpose": Kernel(_lower_transpose, _run_transpose, "the axes in another order", "TFLite kernels/transpose.cc"),
    "reverse_v2": Kernel(_lower_reverse, _run_reverse,
        "the input backwards along some axes", "TFLite kernels/reverse.cc"),
    "reverse_sequence": Kernel(lower_reverse_sequence, run_reverse_sequence,
        "in each batch the first elements of a sequence backwards, as many as input 1 says; the rest stays",
        "TFLite kernels/reverse_sequence.cc and internal/reference/reference_ops.h (ReverseSequence)"),
    "topk_v2": Kernel(_lower_topk_v2, _run_topk_v2,
        "the k largest elements of each row (the last axis), largest first, and their places",
        "TFLite kernels/topk_v2.cc"),
}  # fmt: skip
