"""STABLEHLO_PAD: the value in input 1 between the elements along each axis, then before and after; negative edges crop.

Where one axis of the result is not longer than 0, TFLite makes all of them 0: kept.

Source: TFLite kernels/stablehlo_pad.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.move.dilate import dilated
from tflq.interpreter.operands.blocks import pad_or_crop
from tflq.interpreter.operands.checks import MAXIMUM_RANK, require_same_type
from tflq.interpreter.operands.movable import require_movable
from tflq.interpreter.operands.result_size import require_result

TYPES = tuple(dtype for dtype in DType if dtype.bits >= 8)


@dataclass(frozen=True)
class StablehloPad:
    """Amounts, along each of the model's own axes.

    Attributes:
        steps: distance of neighbours.
        edges: elements before and after.
        shape: of the result.
    """

    steps: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]
    shape: tuple[int, ...]


def lower(node: Node, operands: Operands) -> StablehloPad:
    """Decide the amounts.

    Raises:
        GraphError: another number of amounts than axes, a negative distance, or a value that is no single element.
        UnsupportedError: types that differ, or that TFLite does not pad.
    """
    source, value = operands.input(0), operands.input(1)
    require_movable(node, source, operands.output(), TYPES)
    require_same_type(source, value)
    names = ("interior_padding", "edge_padding_low", "edge_padding_high")
    interior, low, high = (node.attributes.integers(name, ()) for name in names)
    rank = len(source.shape)
    if not 1 <= rank <= MAXIMUM_RANK or not len(interior) == len(low) == len(high) == rank:
        raise GraphError(
            f"{interior}, {low} and {high} need one number for each axis of {source.shape}, 1 to 8 of them"
        )
    if min(interior) < 0 or value.size != 1:
        raise GraphError(f"interior padding is {interior}, with {value.size} elements; 0 or more, with one, is needed")
    sizes = [
        n + max(0, n - 1) * gap + before + after
        for n, gap, before, after in zip(source.shape, interior, low, high, strict=True)
    ]
    require_result([max(0, size) for size in sizes], source.dtype)
    shape = tuple(sizes) if min(sizes) > 0 else (0,) * rank
    return StablehloPad(tuple(gap + 1 for gap in interior), tuple(zip(low, high, strict=True)), shape)


def run(params: StablehloPad, x: Array, value: Array) -> tuple[Array, ...]:
    """Run STABLEHLO_PAD: T[S or 1, *shape], T[S or 1] -> T[S, *padded shape]."""
    fill = value.reshape(value.shape[0])
    if 0 in params.shape:
        return (np.empty((max(x.shape[0], fill.shape[0]), *params.shape), x.dtype),)
    return (pad_or_crop(dilated(x, params.steps, fill), params.edges, fill),)
