"""RESHAPE, SQUEEZE, EXPAND_DIMS and DENSIFY: the same elements in another shape or form.

RESHAPE's is input 1 if that is a vector of int32, else the option new_shape ([0] there means a scalar); one -1 is
computed from the number of elements. EXPAND_DIMS adds one, before the axis that input 1 names.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import constant_integers, require_same_type, resolve_axis
from tflq.interpreter.operands.movable import require_movable
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True)
class Reshape:
    """The new shape, of the model's own axes."""

    shape: tuple[int, ...]


def _lower_reshape(node: Node, operands: Operands) -> Reshape:
    """Decide the shape of RESHAPE.

    Raises:
        GraphError: another number of elements, two -1, a negative size, or a shape computed at run time.
        UnsupportedError: input and output differ in type.
    """
    source = operands.input(0)
    require_same_type(source, operands.output())
    wanted = _wanted_shape(node, operands)
    if wanted.count(-1) > 1 or min(wanted, default=0) < -1:
        raise GraphError(f"the new shape is {wanted}; sizes are 0 or more, and one of them may be -1")
    return Reshape(_resolve(wanted, source.shape))


def _run(params: Reshape, x: Array, *_operands: Array) -> tuple[Array, ...]:
    """Run RESHAPE or SQUEEZE: T[S, *old] -> T[S, *new]."""
    return (x.reshape(x.shape[0], *params.shape),)


def _wanted_shape(node: Node, operands: Operands) -> tuple[int, ...]:
    tensor = operands.optional(1)
    if tensor is not None and len(tensor.shape) == 1 and tensor.dtype is DType.INT32:
        return tuple(int(size) for size in operands.constant(1))
    wanted = node.attributes.integers("new_shape", ())
    return () if wanted == (0,) else wanted


def _resolve(wanted: tuple[int, ...], old: tuple[int, ...]) -> tuple[int, ...]:
    shape = list(wanted)
    if -1 in wanted:
        known = prod(size for size in wanted if size > 0)
        if prod(old) == 0 and 0 not in wanted:
            shape[wanted.index(-1)] = 0
        else:
            shape[wanted.index(-1)] = prod(size for size in old if size) // known
    if prod(shape) != prod(old):
        raise GraphError(f"the input has shape {old} ({prod(old)} elements), the new shape {wanted} does not fit them")
    return tuple(shape)


def _lower_squeeze(node: Node, operands: Operands) -> Reshape:
    """Decide the shape of SQUEEZE.

    Raises:
        GraphError: an axis out of range or longer than 1.
        UnsupportedError: input and output differ in type.
    """
    source = operands.input(0)
    require_same_type(source, operands.output())
    named = node.attributes.integers("squeeze_dims", ())
    axes = {resolve_axis(axis, len(source.shape)) for axis in named}
    for axis in axes:
        if source.shape[axis] != 1:
            raise GraphError(f"axis {axis} of {source.shape} has length {source.shape[axis]}; only 1 can be squeezed")
    if not named:
        axes = {axis for axis, size in enumerate(source.shape) if size == 1}
    return Reshape(tuple(size for axis, size in enumerate(source.shape) if axis not in axes))


@dataclass(frozen=True)
class ExpandDims:
    """Position of the new axis among the model's own axes of the output."""

    axis: int


def _lower_expand(node: Node, operands: Operands) -> ExpandDims:  # noqa: ARG001
    """Decide the axis.

    Raises:
        GraphError: an axis out of range, more than one, or computed at run time.
        UnsupportedError: input and output differ in type.
    """
    source = operands.input(0)
    require_same_type(source, operands.output())
    given = constant_integers(operands, 1).reshape(-1)
    if given.size != 1:
        raise GraphError(f"input 1 names {given.size} axes; expand_dims takes one")
    return ExpandDims(resolve_axis(int(given[0]), len(source.shape) + 1))


def _run_expand(params: ExpandDims, x: Array, *_axis: Array) -> tuple[Array, ...]:
    """Run EXPAND_DIMS: T[S, *shape] -> T[S, *shape with a 1]."""
    return (np.expand_dims(x, params.axis + 1),)


_DENSIFIED = (DType.FLOAT32, DType.FLOAT16, DType.INT8)


@dataclass(frozen=True)
class Densify:
    """Empty params of DENSIFY."""


def _lower_densify(node: Node, operands: Operands) -> Densify:
    """Check the type.

    Raises:
        GraphError: the input is computed at run time.
        UnsupportedError: a type that TFLite does not densify.
    """
    require_movable(node, operands.input(0), operands.output(), _DENSIFIED)
    operands.constant(0)
    return Densify()


def _run_densify(params: Densify, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Run DENSIFY: T[1, *shape] -> T[1, *shape]."""
    return (x,)


KERNELS = {
    "reshape": Kernel(_lower_reshape, _run,
        "the same elements in another shape", "TFLite kernels/reshape.cc, internal/reshape_utils.h"),
    "squeeze": Kernel(_lower_squeeze, _run,
        "without axes of length 1: those that squeeze_dims names, or all", "TFLite kernels/squeeze.cc"),
    "expand_dims": Kernel(_lower_expand, _run_expand,
        "one more axis of length 1, before the axis that input 1 names", "TFLite kernels/expand_dims.cc"),
    "densify": Kernel(_lower_densify, _run_densify,
        "a constant that the file holds sparse, as it is dense; the reader of files has unfolded it already",
        "TFLite kernels/densify.cc"),
}  # fmt: skip
