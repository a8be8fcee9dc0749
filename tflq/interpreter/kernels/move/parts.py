"""CONCATENATION, PACK and UNPACK, SPLIT and SPLIT_V: tensors joined along an axis, and cut along one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import constant_integers, require_result, require_same_type, resolve_axis
from tflq.interpreter.operands.movable import (
    constant_number,
    constant_vector,
    equal_samples,
    require_movable,
    require_same_quantization,
    require_tflite_type,
)
from tflq.interpreter.registry import Kernel

_JOINED = (
    DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16, DType.FLOAT8_E4M3FN, DType.FLOAT8_E5M2,
    DType.INT4, DType.UINT8, DType.INT8, DType.INT16, DType.INT32, DType.UINT32, DType.INT64, DType.BOOL,
)  # fmt: skip


@dataclass(frozen=True)
class Concatenation:
    """Where to join.

    Attributes:
        axis: counted from 0 in the model's own shape.
    """

    axis: int


def lower_concatenation(node: Node, operands: Operands) -> Concatenation:
    """Decide the axis.

    Raises:
        UnsupportedError: a fused activation, other types, or inputs quantized otherwise than the output.
        GraphError: shapes that do not fit.
    """
    inputs = [operands.input(i) for i in range(len(operands.inputs))]
    output = operands.output()
    params = check_shapes(node, operands)
    require_same_type(*inputs, output)
    for tensor in inputs:
        if tensor.quantization != output.quantization:
            raise UnsupportedError(f"input '{tensor.name}' is quantized otherwise than the output '{output.name}'")
    return params


def run_concatenation(params: Concatenation, *arrays: Array) -> tuple[Array, ...]:
    """Run CONCATENATION: T[S or 1, *shape_i] -> T[S, *shape]."""
    return (concatenate(params, arrays),)


def check_shapes(node: Node, operands: Operands) -> Concatenation:
    """Check that all inputs agree but along the axis.

    Raises:
        UnsupportedError: a fused activation, or a type that TFLite does not concatenate.
        GraphError: no inputs, scalars, other ranks or sizes, or an axis out of range.
    """
    activation = node.attributes.text("fused_activation_function", "none")
    if activation != "none":
        raise UnsupportedError(f"fused activation '{activation}'; concatenation takes none")
    require_tflite_type(node, operands.output(), _JOINED)
    shapes = [operands.input(i).shape for i in range(len(operands.inputs))]
    if not shapes or not shapes[0]:
        raise GraphError("concatenation needs one input or more, with one axis or more")
    rank = len(shapes[0])
    axis = resolve_axis(node.attributes.integer("axis", 0), rank)
    rest = [(*shape[:axis], *shape[axis + 1 :]) for shape in shapes]
    for shape, others in zip(shapes, rest, strict=True):
        if len(shape) != rank or others != rest[0]:
            raise GraphError(f"shapes {shapes[0]} and {shape} differ elsewhere than along axis {axis}")
    require_result((sum(shape[axis] for shape in shapes), *rest[0]), operands.output().dtype)
    return Concatenation(axis)


def concatenate(params: Concatenation, arrays: Sequence[Array]) -> Array:
    """Join along the axis; a shared array is repeated for each sample if another one is sampled."""
    samples = max(x.shape[0] for x in arrays)
    full = [x if x.shape[0] == samples else np.broadcast_to(x, (samples, *x.shape[1:])) for x in arrays]
    return np.concatenate(full, params.axis + 1)


_PACKED = (
    DType.FLOAT32, DType.UINT8, DType.UINT32, DType.INT8, DType.INT16, DType.INT32, DType.INT64,
    DType.FLOAT8_E4M3FN, DType.FLOAT8_E5M2,
)  # fmt: skip
_UNPACKED = (
    DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16, DType.UINT8, DType.INT8, DType.INT16, DType.INT32, DType.BOOL,
    DType.FLOAT8_E4M3FN, DType.FLOAT8_E5M2,
)  # fmt: skip
_SPLIT = (
    DType.FLOAT32, DType.UINT8, DType.INT16, DType.INT32, DType.INT64, DType.INT8,
    DType.FLOAT8_E4M3FN, DType.FLOAT8_E5M2,
)  # fmt: skip


@dataclass(frozen=True)
class Pack:
    """The new axis, counted from 0 in the model's own shape."""

    axis: int


def _lower_pack(node: Node, operands: Operands) -> Pack:
    """Decide the axis.

    Raises:
        GraphError: shapes that differ, values_count that is not the number of inputs, an axis out of range.
        UnsupportedError: types or quantizations that differ, or that TFLite does not pack.
    """
    inputs = [operands.input(i) for i in range(len(operands.inputs))]
    count = node.attributes.integer("values_count", len(inputs))
    if count != len(inputs) or not inputs:
        raise GraphError(f"values_count is {count} and there are {len(inputs)} inputs; they are equal, 1 or more")
    require_movable(node, inputs[0], operands.output(), _PACKED)
    require_same_type(*inputs)
    for tensor in inputs:
        if tensor.shape != inputs[0].shape:
            raise GraphError(f"inputs have shapes {inputs[0].shape} and {tensor.shape}; they must be equal")
        require_same_quantization(node, operands.output(), tensor)
    require_result((count, *inputs[0].shape), inputs[0].dtype)
    return Pack(resolve_axis(node.attributes.integer("axis", 0), len(inputs[0].shape) + 1))


def _run_pack(params: Pack, *arrays: Array) -> tuple[Array, ...]:
    """Run PACK: n of T[S or 1, *shape] -> T[S, *shape with an axis of n]."""
    return (np.stack(equal_samples(*arrays), params.axis + 1),)


@dataclass(frozen=True)
class Unpack:
    """The removed axis, counted from 0 in the model's own shape."""

    axis: int


def _lower_unpack(node: Node, operands: Operands) -> Unpack:
    """Decide the axis.

    Raises:
        GraphError: an axis out of range, or another number of outputs than its length.
        UnsupportedError: types or quantizations that differ, or that TFLite does not unpack.
    """
    source = operands.input(0)
    for output in operands.outputs:
        require_movable(node, source, output, _UNPACKED)
        require_same_quantization(node, source, output)
    axis = resolve_axis(node.attributes.integer("axis", 0), len(source.shape))
    count = node.attributes.integer("num", len(operands.outputs))
    if not count == len(operands.outputs) == source.shape[axis] or not source.size:
        raise GraphError(
            f"num is {count}, there are {len(operands.outputs)} outputs, and axis {axis} of {source.shape} has length "
            f"{source.shape[axis]}; all three are equal, and no axis has length 0"
        )
    return Unpack(axis)


def _run_unpack(params: Unpack, x: Array) -> tuple[Array, ...]:
    """Run UNPACK: T[S, *shape] -> one T[S, *shape without the axis] for each index, views of the input."""
    return tuple(np.moveaxis(x, params.axis + 1, 0))


@dataclass(frozen=True)
class Split:
    """Where to cut.

    Attributes:
        axis: counted from 0 in the model's own shape.
        parts: number of outputs.
    """

    axis: int
    parts: int


def _lower_split(node: Node, operands: Operands) -> Split:
    """Decide axis and parts.

    Raises:
        GraphError: parts that are not equal, another number of outputs, an axis out of range or computed at run time.
        UnsupportedError: input and outputs differ in type, or TFLite does not split it.
    """
    source = operands.input(1)
    for output in operands.outputs:
        require_movable(node, source, output, _SPLIT)
    parts = node.attributes.integer("num_splits", 0)
    given = constant_integers(operands, 0).reshape(-1)
    if given.size != 1:
        raise GraphError(f"input 0 names {given.size} axes; split takes one")
    axis = resolve_axis(int(given[0]), len(source.shape))
    if parts < 1 or parts != len(operands.outputs):
        raise GraphError(f"num_splits is {parts} and there are {len(operands.outputs)} outputs; they must be equal")
    if source.shape[axis] % parts:
        raise GraphError(f"axis {axis} of {source.shape} does not split into {parts} equal parts")
    return Split(axis, parts)


def _run_split(params: Split, _axis: Array, x: Array) -> tuple[Array, ...]:
    """Run SPLIT: T[S, *shape] -> that many T[S, *part], views of the input."""
    return tuple(np.split(x, params.parts, params.axis + 1))


@dataclass(frozen=True)
class SplitV:
    """Where to cut.

    Attributes:
        axis: counted from 0 in the model's own shape.
        cuts: Start of each part except the first.
    """

    axis: int
    cuts: tuple[int, ...]


def _lower_split_v(node: Node, operands: Operands) -> SplitV:
    """Decide axis and cuts.

    Raises:
        GraphError: lengths that do not sum to the axis, another number of outputs, operands computed at run time.
        UnsupportedError: a type that TFLite does not split.
    """
    source = operands.input(0)
    for output in operands.outputs:
        require_movable(node, source, output, _SPLIT)
    sizes = constant_vector(operands, 1)
    axis = resolve_axis(constant_number(operands, 2), len(source.shape))
    parts = node.attributes.integer("num_splits", len(operands.outputs))
    if not len(sizes) == len(operands.outputs) == parts:
        raise GraphError(
            f"the sizes are {sizes}, num_splits is {parts} and there are {len(operands.outputs)} outputs; they differ"
        )
    length, given = source.shape[axis], sum(size for size in sizes if size != -1)
    if sizes.count(-1) == 1:
        sizes = tuple(length - given if size == -1 else size for size in sizes)
    if min(sizes, default=0) < 0 or sum(sizes) != length:
        raise GraphError(f"the sizes are {sizes}; they are 0 or more, one may be -1, and their sum is {length}")
    return SplitV(axis, tuple(int(cut) for cut in np.cumsum(sizes)[:-1]))


def _run_split_v(params: SplitV, x: Array, *_sizes: Array) -> tuple[Array, ...]:
    """Run SPLIT_V: T[S, *shape] -> one T[S, *part] for each length, views of the input."""
    return tuple(np.split(x, params.cuts, params.axis + 1))


KERNELS = {
    "pack": Kernel(_lower_pack, _run_pack,
        "tensors of one shape become one, side by side along a new axis", "TFLite kernels/pack.cc"),
    "unpack": Kernel(_lower_unpack, _run_unpack,
        "one output for each index of an axis, which goes", "TFLite kernels/unpack.cc"),
    "split": Kernel(_lower_split, _run_split,
        "equal parts along the axis that input 0 names; input 1 is the tensor", "TFLite kernels/split.cc"),
    "split_v": Kernel(_lower_split_v, _run_split_v,
        "parts of the lengths that input 1 lists, along the axis that input 2 names; one -1 takes what is left",
        "TFLite kernels/split_v.cc"),
    "concatenation": Kernel(lower_concatenation, run_concatenation,
        "CONCATENATION of tensors that share type and quantization: data is moved, no value changes",
        "TFLite kernels/concatenation.cc and internal/reference/concatenation.h (Concatenation)"),
}  # fmt: skip
