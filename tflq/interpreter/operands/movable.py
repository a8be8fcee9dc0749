"""Checks that operators that move data make: TFLite's lists of types, equal quantization, plain vectors.

Indices that are data: checks of their range, and how sampled indices meet shared data.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from tflq.arrays import Integers
from tflq.errors import GraphError, InputError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.operands.checks import is_quantized, require_result, require_same_type, require_type

INDEX_TYPES = (DType.INT32, DType.INT64)
"""Types of shapes, axes and indices that most operators take."""

FIXED_SIZE = tuple(dtype for dtype in DType if dtype.bits in (8, 16, 32, 64))
"""Types that TFLite moves by their size of 1, 2, 4 or 8 bytes."""

WHOLE_BYTES = tuple(dtype for dtype in DType if dtype.bits >= 8)
"""Types whose elements fill whole bytes: all but strings, int4 and int2."""

_TFLITE = (None, "tflite", "float")


def require_movable(node: Node, source: Tensor, output: Tensor, allowed: Collection[DType]) -> DType:
    """Check that source and output share a type, one that TFLite's kernel registers.

    The list binds TFLite's own arithmetic only: another target may move other integers.

    Raises:
        UnsupportedError: the types differ, or TFLite refuses the type.
    """
    require_same_type(source, output)
    require_tflite_type(node, source, allowed)
    return source.dtype


def require_tflite_type(node: Node, tensor: Tensor, allowed: Collection[DType]) -> None:
    """Check that a tensor has a type that TFLite's kernel registers; other arithmetics may move other integers.

    Raises:
        UnsupportedError: it has not.
    """
    if node.arithmetic in _TFLITE:
        require_type(tensor, allowed)


def require_same_quantization(node: Node, *tensors: Tensor) -> None:
    """Check that the integers of all tensors have the same scale and zero point, if TFLite checks it.

    Raises:
        UnsupportedError: scales or zero points differ.
    """
    first = tensors[0]
    for other in tensors[1:]:
        if node.arithmetic in _TFLITE and other.quantization != first.quantization:
            raise UnsupportedError(
                f"'{first.name}' and '{other.name}' differ in scale or zero point; they must be equal to move data"
            )


def require_symmetric_int16(node: Node, tensor: Tensor) -> None:
    """Check that a quantized int16 tensor has zero point 0, if TFLite checks it.

    Raises:
        UnsupportedError: it has another one.
    """
    checked = node.arithmetic in _TFLITE and tensor.dtype is DType.INT16 and is_quantized(tensor)
    if checked and tensor.affine.zero_point.any():
        raise UnsupportedError(f"tensor '{tensor.name}' (int16) has a zero point other than 0")


def constant_vector(operands: Operands, position: int, types: Collection[DType] = INDEX_TYPES) -> tuple[int, ...]:
    """Return the params of a constant operand that has one axis.

    Raises:
        UnsupportedError: another type.
        GraphError: another rank, or the value is computed at run time.
    """
    tensor = operands.input(position)
    require_type(tensor, types)
    if len(tensor.shape) != 1:
        raise GraphError(f"input {position} '{tensor.name}' has shape {tensor.shape}; a vector is needed")
    return tuple(int(number) for number in operands.constant(position))


def constant_number(operands: Operands, position: int, types: Collection[DType] = (DType.INT32,)) -> int:
    """Return the only element of a constant operand.

    Raises:
        UnsupportedError: another type.
        GraphError: another number of elements, or the value is computed at run time.
    """
    tensor = operands.input(position)
    require_type(tensor, types)
    if tensor.size != 1:
        raise GraphError(f"input {position} '{tensor.name}' has {tensor.size} elements; one is needed")
    return int(operands.constant(position).reshape(-1)[0])


def shape_of(sizes: tuple[int, ...], what: str) -> tuple[int, ...]:
    """Return sizes that are 0 or more.

    Raises:
        GraphError: one is negative.
    """
    if min(sizes, default=0) < 0:
        raise GraphError(f"{what} is {sizes}; sizes are 0 or more")
    return sizes


def resized_shape(operands: Operands) -> tuple[int, int]:
    """Return height and width of the output.

    Raises:
        GraphError: another rank than 4, a size below 1 or computed at run time.
        LimitError: the result is larger than the limits allow.
    """
    shape, sizes = operands.input(0).shape, constant_vector(operands, 1, (DType.INT32,))
    if len(shape) != 4 or len(sizes) != 2 or min(sizes) < 1 or 0 in shape[1:3]:
        raise GraphError(
            f"an input of shape {shape} is resized to {sizes}; 4 axes and two sizes of 1 or more are needed"
        )
    require_result((shape[0], *sizes, shape[3]), operands.output().dtype)
    return sizes[0], sizes[1]


def checked_indices(indices: Array, size: int, what: str) -> Integers:
    """Return indices as int64, all in 0..size-1.

    Args:
        indices: [S or 1, ...].
        size: number of places.
        what: the axis that they index, for the message.

    Raises:
        InputError: one is out of range; names sample, place and value.
    """
    checked = indices.astype(np.int64)
    wrong = (checked < 0) | (checked >= size)
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise InputError(
            f"sample {place[0]}: the index at {place[1:]} is {int(checked[place])}; {what} has 0..{size - 1}"
        )
    return checked


def sample_index(array: Array, rank: int) -> Integers:
    """Return which sample of `array` belongs to each sample: int64[S or 1, 1, ...] of that rank, to broadcast."""
    return np.arange(array.shape[0]).reshape(-1, *(1,) * (rank - 1))


def equal_samples(*arrays: Array) -> list[Array]:
    """Return views that all have the largest number of samples: shared ones are repeated."""
    samples = max(x.shape[0] for x in arrays)
    return [x if x.shape[0] == samples else np.broadcast_to(x, (samples, *x.shape[1:])) for x in arrays]
