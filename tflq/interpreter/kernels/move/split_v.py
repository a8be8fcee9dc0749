"""SPLIT_V: parts of the lengths that input 1 lists, along the axis that input 2 names; one -1 takes what is left.

Source: TFLite kernels/split_v.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import resolve_axis
from tflq.interpreter.operands.movable import constant_number, constant_vector, require_movable

TYPES = (
    DType.FLOAT32, DType.UINT8, DType.INT16, DType.INT32, DType.INT64, DType.INT8,
    DType.FLOAT8_E4M3FN, DType.FLOAT8_E5M2,
)  # fmt: skip


@dataclass(frozen=True)
class SplitV:
    """Where to cut.

    Attributes:
        axis: counted from 0 in the model's own shape.
        cuts: where each part but the first begins.
    """

    axis: int
    cuts: tuple[int, ...]


def lower(node: Node, operands: Operands) -> SplitV:
    """Decide axis and cuts.

    Raises:
        GraphError: lengths that do not sum to the axis, another number of outputs, operands computed at run time.
        UnsupportedError: a type that TFLite does not split.
    """
    source = operands.input(0)
    for output in operands.outputs:
        require_movable(node, source, output, TYPES)
    sizes = constant_vector(operands, 1)
    axis = resolve_axis(constant_number(operands, 2), len(source.shape))
    if len(sizes) != len(operands.outputs):
        raise GraphError(f"the sizes are {sizes} and there are {len(operands.outputs)} outputs; the numbers differ")
    length, given = source.shape[axis], sum(size for size in sizes if size != -1)
    if sizes.count(-1) == 1:
        sizes = tuple(length - given if size == -1 else size for size in sizes)
    if min(sizes, default=0) < 0 or sum(sizes) != length:
        raise GraphError(f"the sizes are {sizes}; they are 0 or more, one may be -1, and their sum is {length}")
    return SplitV(axis, tuple(int(cut) for cut in np.cumsum(sizes)[:-1]))


def run(params: SplitV, x: Array, *_sizes: Array) -> tuple[Array, ...]:
    """Run SPLIT_V: T[S, *shape] -> one T[S, *part] for each length, views of the input."""
    return tuple(np.split(x, params.cuts, params.axis + 1))
