"""Reshape: the same codes in another shape; passes the input's type."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.errors import GraphError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.written import NOTHING, Written


@dataclass(frozen=True, eq=False)
class Reshaped:
    """The new shape, batch included."""

    shape: tuple[int, ...]
    written: Written = NOTHING


def lower(_node: Node, operands: Operands) -> Reshaped:
    """Take the shape of the output.

    Raises:
        GraphError: another number of elements.
    """
    x, output = operands.input(0), operands.output()
    if x.size != output.size:
        raise GraphError(f"{x.shape} cannot become {output.shape}: another number of elements")
    return Reshaped(output.shape)


def run(params: Reshaped, x: Array) -> tuple[Array, ...]:
    """Run Reshape: codes [S, *old] -> codes [S, *new]."""
    return (x.reshape(x.shape[0], *params.shape),)
