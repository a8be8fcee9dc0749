"""SPACE_TO_BATCH_ND: places within blocks of the axes between first and last get batches; BATCH_TO_SPACE_ND: back.

SPACE_TO_BATCH_ND: output[place * N + n, h', w', c] =
padded[n, h' * block_h + place // block_w, w' * block_w + place % block_w, c]. The padding is the output's zero point
where integers of 8 or 16 bits stand for real numbers, else 0.

BATCH_TO_SPACE_ND: uncropped[n, h * block_h + place // block_w, w * block_w + place % block_w, c] =
input[place * N + n, h, w, c] with N batches of output, then a crop.

SPACE_TO_BATCH_ND: each place within blocks of the axes between the first and the last gets its own batch. Source:
TFLite kernels/space_to_batch_nd.cc, internal/reference/space_to_batch_nd.h.
BATCH_TO_SPACE_ND: batches become the places within blocks of the axes between the first and the last, then a crop.
Source: TFLite kernels/batch_to_space_nd.cc, internal/reference/batch_to_space_nd.h.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.blocks import Blocks, lower_blocks, pad_or_crop
from tflq.interpreter.operands.checks import EIGHT_BITS, is_quantised, per_tensor
from tflq.interpreter.operands.result_size import require_result
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True, eq=False)
class SpaceToBatchNd:
    """What is done to the axes between the first and the last.

    Attributes:
        blocks: lengths of a block, and elements before and after each axis.
        value: T[1]: what to pad with.
    """

    blocks: Blocks
    value: Array


def _lower_space(node: Node, operands: Operands) -> SpaceToBatchNd:
    """Decide blocks and paddings.

    Raises:
        GraphError: vectors that do not fit the axes, blocks that do not fit the padded axes, computed operands.
        UnsupportedError: another rank than 3 or 4, types or quantisations that differ, or a zero point of int16.
    """
    blocks, output = lower_blocks(node, operands), operands.output()
    for size, block, (before, after) in zip(operands.input(0).shape[1:-1], blocks.lengths, blocks.amounts, strict=True):
        if size + before + after < 0 or (size + before + after) % block:
            raise GraphError(
                f"an axis of {size}, padded by {before} and {after}, has no whole number of blocks {block}"
            )
    padded = [n + sum(pair) for n, pair in zip(operands.input(0).shape[1:-1], blocks.amounts, strict=True)]
    require_result((operands.input(0).shape[0], *padded, operands.input(0).shape[-1]), output.dtype)
    zero = per_tensor(output)[1] if is_quantised(output) and output.dtype in (*EIGHT_BITS, DType.INT16) else 0
    return SpaceToBatchNd(blocks, np.array([zero]).astype(output.dtype.storage))


def _run_space(params: SpaceToBatchNd, x: Array, *_operands: Array) -> tuple[Array, ...]:
    """Run SPACE_TO_BATCH_ND: T[S, N, *spatial, C] -> T[S, N * blocks, *spatial / block, C]."""
    lengths = params.blocks.lengths
    padded = pad_or_crop(x, ((0, 0), *params.blocks.amounts, (0, 0)), params.value)
    samples, batches, *spatial, channels = padded.shape
    cells = [size // block for size, block in zip(spatial, lengths, strict=True)]
    split = padded.reshape(samples, batches, *(n for pair in zip(cells, lengths, strict=True) for n in pair), channels)
    rank = len(lengths)
    order = (0, *(3 + 2 * i for i in range(rank)), 1, *(2 + 2 * i for i in range(rank)), split.ndim - 1)
    return (split.transpose(order).reshape(samples, -1, *cells, channels) if x.size else _empty(x, lengths, cells),)


def _empty(x: Array, lengths: tuple[int, ...], cells: list[int]) -> Array:
    return np.zeros((x.shape[0], x.shape[1] * int(np.prod(lengths)), *cells, x.shape[-1]), x.dtype)


def _lower_batch(node: Node, operands: Operands) -> Blocks:
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


def _run_batch(params: Blocks, x: Array, *_operands: Array) -> tuple[Array, ...]:
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


KERNELS = {
    "space_to_batch_nd": Kernel(_lower_space, _run_space),
    "batch_to_space_nd": Kernel(_lower_batch, _run_batch),
}
