"""MIRROR_PAD: more elements before and after, along each axis, mirrored from the input.

Mode reflect mirrors about the outermost element, which is not repeated; symmetric about the edge, so that it is.

Source: TFLite kernels/mirror_pad.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import EIGHT_BITS, require_type
from tflq.interpreter.operands.movable import (
    FIXED_SIZE,
    INDEX_TYPES,
    require_movable,
    require_same_quantisation,
    require_symmetric_int16,
)
from tflq.interpreter.operands.result_size import require_result

_OFFSETS = {"reflect": 1, "symmetric": 0}
"""Mode -> whether the element at the border is left out of its mirror image."""


@dataclass(frozen=True)
class MirrorPad:
    """For each of the model's own axes, the input's index of every element of the output."""

    indices: tuple[tuple[int, ...], ...]


def lower(node: Node, operands: Operands) -> MirrorPad:
    """Decide where each element comes from.

    Raises:
        GraphError: amounts of another shape, negative, longer than the axis (less one in mode reflect), or computed at
            run time.
        UnsupportedError: types or quantisations that differ, or that TFLite does not pad.
    """
    source, output = operands.input(0), operands.output()
    dtype = require_movable(node, source, output, FIXED_SIZE)
    if dtype in (*EIGHT_BITS, DType.INT16):
        require_same_quantisation(node, source, output)
        require_symmetric_int16(node, source)
    require_type(operands.input(1), INDEX_TYPES)
    amounts = operands.constant(1)
    if amounts.shape != (len(source.shape), 2):
        raise GraphError(f"input 1 has shape {amounts.shape}; {source.shape} needs ({len(source.shape)}, 2)")
    mode = node.attributes.text("mode", "reflect")
    if mode not in _OFFSETS:
        raise UnsupportedError(f"mode {mode}; known are {', '.join(_OFFSETS)} (a file without options has none)")
    offset = _OFFSETS[mode]
    for (before, after), size in zip(amounts.tolist(), source.shape, strict=True):
        if min(before, after) < 0 or max(before, after) > size - offset:
            raise GraphError(f"an axis of {size} is padded by {before} and {after}; 0 to {size - offset} are allowed")
    require_result([n + sum(pair) for n, pair in zip(source.shape, amounts.tolist(), strict=True)], dtype)
    pairs = zip(amounts.tolist(), source.shape, strict=True)
    return MirrorPad(tuple(_mirrored(before, size, after, offset) for (before, after), size in pairs))


def run(params: MirrorPad, x: Array, *_amounts: Array) -> tuple[Array, ...]:
    """Run MIRROR_PAD: T[S, *shape] -> T[S, *padded shape]."""
    for axis, indices in enumerate(params.indices):
        if len(indices) != x.shape[axis + 1]:
            x = np.take(x, indices, axis + 1)
    return (x,)


def _mirrored(before: int, size: int, after: int, offset: int) -> tuple[int, ...]:
    left = range(before - 1 + offset, offset - 1, -1)
    right = range(size - 1 - offset, size - 1 - offset - after, -1)
    return (*left, *range(size), *right)
