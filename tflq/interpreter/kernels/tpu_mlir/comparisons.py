"""EQUAL, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL and LOGICAL_AND: 0 or 1 in uint8, S = 1 (docs/tpu_mlir.md, 5).

Two activations have one range, and their raw quantized values are compared; a number c is compared as rha(c / S) + Z.

LOGICAL_AND: x and y. Source: docs/tpu_mlir.md, 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.plain.comparison import COMPARISONS
from tflq.interpreter.kernels.tpu_mlir.scalars import is_scalar
from tflq.interpreter.numerics.fixed_point import round_half_away
from tflq.interpreter.operands.checks import EIGHT_BITS, require_broadcast, require_type
from tflq.interpreter.registry import Kernel
from tflq.interpreter.samples import align

_SIGNS = {"equal": "=", "greater": ">", "greater_equal": ">=", "less": "<", "less_equal": "<="}


@dataclass(frozen=True)
class ComparisonParams:
    """The params of one comparison.

    Attributes:
        operator: as in the graph.
        number: that stands in quantized values in place of an operand; None where there are two activations.
        position: of the number.
    """

    operator: str
    number: float | None = None
    position: int = 1


def lower(operator: str, node: Node, operands: Operands) -> ComparisonParams:  # noqa: ARG001
    """Decide the number in quantized values.

    Raises:
        UnsupportedError: two activations of other scales, or types other than 8 bits.
        GraphError: shapes that do not broadcast.
    """
    require_type(operands.output(), EIGHT_BITS)
    if is_scalar(operands):
        position = int(operands.input(1).is_constant)
        x = operands.input(1 - position)
        require_type(x, EIGHT_BITS)
        number = float(operands.constant(position).reshape(-1)[0]) / float(x.affine.scale[0])
        return ComparisonParams(operator, float(round_half_away(number)) + int(x.affine.zero_point[0]), position)
    first, second = operands.input(0), operands.input(1)
    for tensor in (first, second):
        require_type(tensor, EIGHT_BITS)
    require_broadcast(first, second)
    if first.quantisation != second.quantisation and operator != "logical_and":
        raise UnsupportedError(f"'{first.name}' and '{second.name}' have different scales; raw values are compared")
    return ComparisonParams(operator)


def run(params: ComparisonParams, first: Array, second: Array) -> tuple[Array, ...]:
    """Compare: 8 bits [S or 1, *shape] twice, or one of them a number, shapes broadcast -> uint8[S, *shape]."""
    operands = [first, second]
    if params.number is not None:
        operands[params.position] = np.array([params.number])
    x, y = align(*operands) if params.number is None else operands
    found = np.logical_and(x, y) if params.operator == "logical_and" else COMPARISONS[params.operator](x, y)
    return (np.asarray(found, np.uint8),)


KERNELS = {
    **{
        name: Kernel(partial(lower, name), run, f"x {sign} y of raw quantized values", "docs/tpu_mlir.md, 5")
        for name, sign in _SIGNS.items()
    },
    "logical_and": Kernel(partial(lower, "logical_and"), run),
}
