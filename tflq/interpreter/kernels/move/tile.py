"""TILE: the input repeated along each axis, as often as input 1 says.

Source: TFLite kernels/tile.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.movable import FIXED_SIZE, constant_vector, require_movable
from tflq.interpreter.operands.result_size import require_result


@dataclass(frozen=True)
class Tile:
    """How often, along each of the model's own axes."""

    multiples: tuple[int, ...]


def lower(node: Node, operands: Operands) -> Tile:
    """Decide the repetitions.

    Raises:
        GraphError: another number of them than axes, a negative one, or computed at run time.
        UnsupportedError: a type that TFLite does not tile.
    """
    source = operands.input(0)
    require_movable(node, source, operands.output(), (*FIXED_SIZE, DType.STRING))
    multiples = constant_vector(operands, 1)
    if len(multiples) != len(source.shape) or min(multiples, default=0) < 0:
        raise GraphError(f"multiples are {multiples}; {source.shape} needs one for each axis, 0 or more")
    require_result([size * times for size, times in zip(source.shape, multiples, strict=True)], source.dtype)
    return Tile(multiples)


def run(params: Tile, x: Array, *_multiples: Array) -> tuple[Array, ...]:
    """Run TILE: T[S, *shape] -> T[S, *shape * multiples]."""
    return (np.tile(x, (1, *params.multiples)),)
