"""SQUEEZE: without axes of length 1: those that squeeze_dims names, or all.

Source: TFLite kernels/squeeze.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

from tflq.errors import GraphError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.operands.checks import require_same_type, resolve_axis


@dataclass(frozen=True)
class Squeeze:
    """The new shape, of the model's own axes."""

    shape: tuple[int, ...]


def lower(node: Node, operands: Operands) -> Squeeze:
    """Decide the shape.

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
    return Squeeze(tuple(size for axis, size in enumerate(source.shape) if axis not in axes))


def run(params: Squeeze, x: Array) -> tuple[Array, ...]:
    """Run SQUEEZE: T[S, *shape] -> T[S, *shape without the axes]."""
    return (x.reshape(x.shape[0], *params.shape),)
