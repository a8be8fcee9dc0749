"""RESHAPE: the same elements in another shape.

The shape comes from input 1 where that is a vector of int32, else from the option new_shape ([0] there means a scalar);
one -1 takes what is left.

Source: TFLite kernels/reshape.cc and internal/reshape_utils.h.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_same_type


@dataclass(frozen=True)
class Reshape:
    """The new shape, of the model's own axes."""

    shape: tuple[int, ...]


def lower(node: Node, operands: Operands) -> Reshape:
    """Decide the shape.

    Raises:
        GraphError: another number of elements, two -1, a negative size, or a shape computed at run time.
        UnsupportedError: input and output differ in type.
    """
    source = operands.input(0)
    require_same_type(source, operands.output())
    wanted = _wanted(node, operands)
    if wanted.count(-1) > 1 or min(wanted, default=0) < -1:
        raise GraphError(f"the new shape is {wanted}; sizes are 0 or more, and one of them may be -1")
    return Reshape(_resolve(wanted, source.shape))


def run(params: Reshape, x: Array, *_shape: Array) -> tuple[Array, ...]:
    """Run RESHAPE: T[S, *old] -> T[S, *new]."""
    return (x.reshape(x.shape[0], *params.shape),)


def _wanted(node: Node, operands: Operands) -> tuple[int, ...]:
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
