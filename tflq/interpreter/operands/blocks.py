"""Blocks of the axes between the first and the last: what SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND share.

Source: TFLite kernels/space_to_batch_nd.cc and batch_to_space_nd.cc (Prepare).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import EIGHT_BITS, require_type
from tflq.interpreter.operands.movable import (
    FIXED_SIZE,
    constant_vector,
    require_movable,
    require_same_quantisation,
    require_symmetric_int16,
)


@dataclass(frozen=True)
class Blocks:
    """Blocks along the axes between the first and the last.

    Attributes:
        lengths: of a block, along each axis.
        amounts: (before, after) along each axis: paddings or crops.
    """

    lengths: tuple[int, ...]
    amounts: tuple[tuple[int, int], ...]


def lower_blocks(node: Node, operands: Operands) -> Blocks:
    """Read blocks and amounts.

    Raises:
        GraphError: vectors that do not fit the axes, blocks below 1, or operands computed at run time.
        UnsupportedError: another rank than 3 or 4, types or quantisations that differ, or a zero point of int16.
    """
    source, output = operands.input(0), operands.output()
    dtype = require_movable(node, source, output, FIXED_SIZE)
    if len(source.shape) not in (3, 4):
        raise UnsupportedError(f"the input has shape {source.shape}; TFLite takes 3 or 4 axes")
    if dtype in (*EIGHT_BITS, DType.INT16):
        require_same_quantisation(node, source, output)
        require_symmetric_int16(node, source)
    lengths = constant_vector(operands, 1, (DType.INT32,))
    require_type(operands.input(2), (DType.INT32,))
    amounts = operands.constant(2)
    spatial = len(source.shape) - 2
    if len(lengths) != spatial or amounts.shape != (spatial, 2):
        raise GraphError(f"blocks {lengths} and amounts of shape {amounts.shape} do not fit {spatial} axes")
    if min(lengths) < 1:
        raise GraphError(f"blocks are {lengths}; they are 1 or more")
    return Blocks(lengths, tuple((int(before), int(after)) for before, after in amounts))


def pad_or_crop(x: Array, amounts: Sequence[tuple[int, int]], value: Array) -> Array:
    """Pad every axis behind the sample axis by (before, after); negative amounts crop.

    Args:
        x: T[S, *shape].
        amounts: one pair for each axis of shape; size + before + after is 0 or more.
        value: T[S or 1]: what to pad with.

    Returns:
        T[S, *padded shape].
    """
    if not any(amount for pair in amounts for amount in pair):
        return x
    sizes = [size + before + after for size, (before, after) in zip(x.shape[1:], amounts, strict=True)]
    samples = max(x.shape[0], value.shape[0])
    result = np.empty((samples, *sizes), x.dtype)
    result[...] = value.reshape(-1, *(1,) * len(sizes))
    source, target = [slice(None)], [slice(None)]
    for size, total, (before, _) in zip(x.shape[1:], sizes, amounts, strict=True):
        first, last = max(0, -before), min(size, total - before)
        if last <= first:
            return result
        source.append(slice(first, last))
        target.append(slice(first + before, last + before))
    result[tuple(target)] = x[tuple(source)]
    return result
