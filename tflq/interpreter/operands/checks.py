"""Checks that kernels make before they lower: types, scales and shapes, each with one clear refusal."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tflq import limits
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Affine, Array, Blockwise, DType, Node, Operands, Tensor


def block_scales(operands: Operands, position: int, allowed: Collection[DType]) -> NDArray[np.float32]:
    """Return the scales of a matrix that is quantized in blocks: float32[rows, blocks].

    Args:
        operands: Operands of the node.
        position: Position of the matrix among the inputs; `operands.block_scales` has a tensor of float16 for it.
        allowed: types of the matrix.

    Raises:
        GraphError: blocks that do not fill the rows or whole bytes, no constant of as many scales, or a
            scale that is negative, infinite or NaN. float16 rounds the scale of a block of tiny numbers to 0.
            UnsupportedError: another type.
    """
    matrix, scales = operands.input(position), operands.block_scales[position] if operands.block_scales else None
    size = matrix.quantization.block_size if isinstance(matrix.quantization, Blockwise) else 0
    require_type(matrix, allowed)
    if len(matrix.shape) != 2 or size < 1 or matrix.shape[1] % size or size % (8 // matrix.dtype.bits):
        raise GraphError(f"blocks of {size} do not fill the rows of '{matrix.name}' {matrix.shape}, or whole bytes")
    if scales is None or scales.data is None or scales.size != matrix.size // size:
        raise GraphError(f"'{matrix.name}' needs a constant of {matrix.size // size} scales for its blocks")
    require_type(scales, (DType.FLOAT16,))
    found = scales.data.astype(np.float32).reshape(matrix.shape[0], -1)
    sound = np.isfinite(found) & (found >= 0)
    if not sound.all():
        raise GraphError(
            f"the scales '{scales.name}' of '{matrix.name}' hold {found[~sound][0]}; scales are finite, and 0 or more"
        )
    return found


_WIDEST_BITS = 16
"""Zero points of wider types (biases) are read by no kernel."""


def require_sound_scales(operands: Operands) -> None:
    """Check the affine quantization of every integer operand.

    TFLite does not look: a scale of 0, below 0, infinite or NaN, or a zero point outside the type, leads to meaningless
    results. A scale of 0 is valid in a constant with elements that all equal its zero point: TFLiteConverter writes the
    first state of unrolled LSTMs so (16x8).

    Raises:
        GraphError: a scale is not a positive finite number, or a zero point is no value of the type.
    """
    for tensor in (*operands.inputs, *operands.outputs):
        if tensor is not None:
            require_sound_tensor(tensor)


def require_sound_tensor(tensor: Tensor) -> None:
    """Check the affine quantization of one tensor, if it has one and contains integers.

    Raises:
        GraphError: as `require_sound_scales`.
    """
    affine = tensor.quantization
    if not isinstance(affine, Affine) or not tensor.dtype.is_integer:
        return
    bad = ~(np.isfinite(affine.scale) & (affine.scale > 0))
    if tensor.data is not None and not affine.is_per_axis and affine.scale[0] == 0:
        bad = np.array([bool((tensor.data != affine.zero_point[0]).any())])  # all zeros: every product vanishes
    if bad.any():
        raise GraphError(
            f"tensor '{tensor.name}' has scale {affine.scale[bad][0]}{_channel(affine, bad)}; "
            f"scales are positive and finite"
        )
    low, high = tensor.dtype.minimum, tensor.dtype.maximum
    outside = (affine.zero_point < low) | (affine.zero_point > high)
    if outside.any() and tensor.dtype.bits <= _WIDEST_BITS:
        raise GraphError(
            f"tensor '{tensor.name}' has zero point {affine.zero_point[outside][0]}{_channel(affine, outside)}; "
            f"those of {tensor.dtype.value} are {low}..{high}"
        )


def _channel(affine: Affine, marked: np.ndarray) -> str:
    return f" in channel {int(np.argmax(marked))}" if affine.is_per_axis else ""


MAXIMUM_RANK = 8
"""Largest rank that TFLite broadcasts (kernels/internal/reference/broadcast_loop.h)."""

EIGHT_BITS = (DType.INT8, DType.UINT8)


def require_type(tensor: Tensor, allowed: Collection[DType]) -> DType:
    """Return the tensor's type.

    Raises:
        UnsupportedError: it is not among the allowed ones.
    """
    if tensor.dtype not in allowed:
        names = ", ".join(t.value for t in allowed)
        raise UnsupportedError(f"tensor '{tensor.name}' is {tensor.dtype.value}; the kernel takes {names}")
    return tensor.dtype


def require_same_type(*tensors: Tensor) -> None:
    """Check that all tensors have the type of the first.

    Raises:
        UnsupportedError: one differs.
    """
    first = tensors[0]
    for other in tensors[1:]:
        if other.dtype is not first.dtype:
            raise UnsupportedError(
                f"tensor '{first.name}' is {first.dtype.value} and '{other.name}' is {other.dtype.value}; "
                f"the kernel takes equal types"
            )


def require_choice(node: Node, key: str, allowed: Collection[str], default: str | None = None) -> str:
    """Return an attribute that chooses one way of several.

    Raises:
        UnsupportedError: another choice.
    """
    found = node.attributes.text(key, default)
    if found not in allowed:
        raise UnsupportedError(f"{key}={found}; allowed is {', '.join(allowed)}")
    return found


def per_tensor(tensor: Tensor) -> tuple[np.float32, int]:
    """Return scale (as float32, as the file has it) and zero point of a tensor that has one of each.

    Raises:
        GraphError: the tensor has no scale and zero point, or they are not valid. UnsupportedError: it is quantized per
        channel.
    """
    affine = tensor.affine
    if affine.is_per_axis:
        raise UnsupportedError(
            f"tensor '{tensor.name}' is quantized per channel ({affine.scale.size} scales); "
            f"the kernel takes one scale for the whole tensor"
        )
    scale = np.float32(affine.scale[0])
    require_sound_tensor(tensor)
    return scale, int(affine.zero_point[0])


def is_quantized(tensor: Tensor) -> bool:
    """Whether integers of the tensor are quantized values."""
    return isinstance(tensor.quantization, Affine)


def require_symmetric(*tensors: Tensor) -> None:
    """Check that int16 tensors are symmetric.

    Raises:
        UnsupportedError: a zero point is not 0.
    """
    for tensor in tensors:
        _, zero_point = per_tensor(tensor)
        if zero_point:
            raise UnsupportedError(
                f"tensor '{tensor.name}' ({tensor.dtype.value}) has zero point {zero_point}; the kernel takes 0 only"
            )


class Ends(NamedTuple):
    """Type, scales (float32) and zero points of an input and an output that are quantized alike."""

    dtype: DType
    input_scale: np.float32
    input_zero_point: int
    output_scale: np.float32
    output_zero_point: int


def quantized_ends(operands: Operands, allowed: Collection[DType]) -> Ends:
    """Return the quantization of input 0 and the output.

    Raises:
        UnsupportedError: a type that is not allowed, or another one of the output, or int16 with a zero point.
        GraphError: a tensor without scale.
    """
    source, output = operands.input(0), operands.output()
    dtype = require_type(source, allowed)
    require_same_type(source, output)
    if dtype is DType.INT16:
        require_symmetric(source, output)
    return Ends(dtype, *per_tensor(source), *per_tensor(output))


def meets_integer_weights(operands: Operands, position: int = 1) -> bool:
    """Whether a float32 input 0 meets integer weights, in input `position`: a hybrid layer."""
    return operands.input(0).dtype is DType.FLOAT32 and operands.input(position).dtype.is_integer


def require_broadcast(first: Tensor, second: Tensor) -> None:
    """Check that two shapes broadcast.

    Raises:
        GraphError: they do not.
        UnsupportedError: they do, but over more axes than TFLite's loop has.
    """
    try:
        shape = np.broadcast_shapes(first.shape, second.shape)
    except ValueError:
        raise GraphError(f"shapes {first.shape} and {second.shape} do not broadcast") from None
    if first.shape != second.shape and max(len(first.shape), len(second.shape)) > MAXIMUM_RANK:
        raise UnsupportedError(
            f"shapes {first.shape} and {second.shape} broadcast over more than {MAXIMUM_RANK} axes; "
            f"TFLite aborts the process there"
        )
    require_result(shape, first.dtype)


def require_alpha_fits(operands: Operands) -> None:
    """Check that PRELU's alpha (input 1) broadcasts to the shape of input 0, and not beyond it.

    Raises:
        GraphError: it does not.
        UnsupportedError: more axes than TFLite's loop has.

    Source: TFLite kernels/activations.cc (PreluPrepare).
    """
    source, alpha = operands.input(0), operands.input(1)
    require_broadcast(source, alpha)
    if np.broadcast_shapes(source.shape, alpha.shape) != source.shape:
        raise GraphError(f"alpha {alpha.shape} is larger than the input {source.shape}; it must broadcast to it")


def constant_integers(operands: Operands, position: int) -> Array:
    """Return the value of a constant operand of axes, sizes or amounts.

    Raises:
        UnsupportedError: it is not of an integer type.
        GraphError: it is missing, or its value is computed at run time.
    """
    tensor = operands.input(position)
    if not tensor.dtype.is_integer:
        raise UnsupportedError(f"input {position} '{tensor.name}' is {tensor.dtype.value}; the kernel takes integers")
    return operands.constant(position)


def require_bias_size(bias: Tensor | None, outputs: int) -> None:
    """Check that a bias has one element for each output channel.

    Raises:
        GraphError: it has not.
    """
    if bias is not None and bias.size != outputs:
        raise GraphError(f"the bias has {bias.size} elements, the weights have {outputs} output channels")


def resolve_axis(axis: int, rank: int) -> int:
    """Return an axis counted from the front; negative ones count from the back.

    Raises:
        GraphError: it is out of range.
    """
    if not -rank <= axis < rank:
        raise GraphError(f"axis {axis} is out of range; the tensor has {rank} axes: {-rank}..{rank - 1}")
    return axis % rank


def size_in_bytes(shape: Sequence[int], dtype: DType) -> int:
    """Return the size of a tensor in memory, in bytes; a string counts as the reference to it."""
    return prod(shape) * max(1, dtype.storage.itemsize)


def require_result(shape: Sequence[int], dtype: DType, what: str = "a result") -> None:
    """Check the size of a result, or of an intermediate array of a kernel.

    Args:
        shape: Shape in the model's own axes.
        dtype: Type of its elements.
        what: names it in messages.

    Raises:
        LimitError: it is larger than `max_bytes`, or than the remainder of `max_memory` after all live tensors.
    """
    limits.require_room(size_in_bytes(shape, dtype), f"{what} of shape {tuple(shape)}")


@dataclass(frozen=True)
class Reduction:
    """Which axes go.

    Attributes:
        axes: sorted, counted from 0 in the model's own shape.
        count: number of elements that become one.
        keep_dims: whether the axes stay, with length 1.
    """

    axes: tuple[int, ...]
    count: int
    keep_dims: bool


def lower_reduction(node: Node, operands: Operands) -> Reduction:
    """Read the axes from input 1; negative ones count from the back, doubles count once.

    Raises:
        GraphError: an axis out of range, or computed at run time.
    """
    shape = operands.input(0).shape
    axes = constant_integers(operands, 1).reshape(-1)
    resolved = sorted({resolve_axis(int(axis), len(shape)) for axis in axes}) if shape else []
    count = int(np.prod([shape[axis] for axis in resolved], dtype=np.int64))
    return Reduction(tuple(resolved), count, node.attributes.boolean("keep_dims", False))


def shape_of_result(reduction: Reduction, x: Array) -> tuple[int, ...]:
    """Return the shape of the result for x[S, *shape], sample axis included."""
    return (x.shape[0], *reduced_shape(reduction, x.shape[1:]))


def reduced_shape(reduction: Reduction, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the result for an input of this shape, both without the sample axis."""
    if reduction.keep_dims:
        return tuple(1 if i in reduction.axes else size for i, size in enumerate(shape))
    return tuple(size for i, size in enumerate(shape) if i not in reduction.axes)
