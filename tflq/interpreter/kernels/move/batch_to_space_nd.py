"""BATCH_TO_SPACE_ND: batches become the places within blocks of the axes between the first and the last, then a crop.

uncropped[n, h * block_h + place // block_w, w * block_w + place % block_w, c] = input[place * N + n, h, w, c] with N
batches of output.

Source: TFLite kernels/batch_to_space_nd.cc and internal/reference/batch_to_space_nd.h.
"""

from __future__ import annotations

from math import prod

from tflq.errors import GraphError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.operands.blocks import Blocks, lower_blocks


def lower(node: Node, operands: Operands) -> Blocks:
    """Decide blocks and crops.

    Raises:
        GraphError: vectors that do not fit the axes, batches that no whole number of blocks fills, crops that are
            negative or longer than the axis, operands computed at run time.
        UnsupportedError: another rank than 3 or 4, types or quantisations that differ, or a zero point of int16.
    """
    blocks, shape = lower_blocks(node, operands), operands.input(0).shape
    if shape[0] % prod(blocks.lengths):
        raise GraphError(f"{shape[0]} batches do not divide by blocks of {blocks.lengths}")
    for size, block, (before, after) in zip(shape[1:-1], blocks.lengths, blocks.amounts, strict=True):
        if min(before, after) < 0 or size * block - before - after < 0:
            raise GraphError(f"crops {before} and {after} of an axis of {size * block}; 0 or more, and not all of it")
    return blocks


def run(params: Blocks, x: Array, *_operands: Array) -> tuple[Array, ...]:
    """Run BATCH_TO_SPACE_ND: T[S, N * blocks, *spatial, C] -> T[S, N, *spatial * block less crops, C]."""
    samples, batches, *spatial, channels = x.shape
    lengths, rank = params.lengths, len(params.lengths)
    split = x.reshape(samples, *lengths, batches // prod(lengths), *spatial, channels)
    order = [0, rank + 1, *(axis for i in range(rank) for axis in (rank + 2 + i, 1 + i)), split.ndim - 1]
    sizes = [size * block for size, block in zip(spatial, lengths, strict=True)]
    whole = split.transpose(order).reshape(samples, batches // prod(lengths), *sizes, channels)
    kept = [slice(before, size - after) for size, (before, after) in zip(sizes, params.amounts, strict=True)]
    where = (slice(None), slice(None), *kept)
    return (whole[where],)
