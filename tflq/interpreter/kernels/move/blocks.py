"""Blocks of height and width become batches (SPACE_TO_BATCH_ND) or channels (SPACE_TO_DEPTH), and places again.

SPACE_TO_BATCH_ND: output[place * N + n, h', w', c] =
padded[n, h' * block_h + place // block_w, w' * block_w + place % block_w, c]. The padding is the output's zero point
for quantized integers of 8 or 16 bits, else 0.

BATCH_TO_SPACE_ND: uncropped[n, h * block_h + place // block_w, w * block_w + place % block_w, c] =
input[place * N + n, h, w, c] with N batches of output, then a crop.

DEPTH_TO_SPACE: output[n, h * block + y, w * block + x, c] = input[n, h, w, (y * block + x) * C + c] with C channels of
output. SPACE_TO_DEPTH: output[n, h, w, (y * block + x) * C + c] = input[n, h * block + y, w * block + x, c].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import EIGHT_BITS, is_quantized, per_tensor, require_result, require_type
from tflq.interpreter.operands.movable import (
    FIXED_SIZE,
    constant_vector,
    require_movable,
    require_same_quantization,
    require_symmetric_int16,
)
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True)
class Blocks:
    """Blocks along the axes between the first and the last.

    Attributes:
        lengths: Lengths of a block, along each axis.
        amounts: (before, after) along each axis: paddings or crops.
    """

    lengths: tuple[int, ...]
    amounts: tuple[tuple[int, int], ...]


def lower_blocks(node: Node, operands: Operands) -> Blocks:
    """Read blocks and amounts.

    Raises:
        GraphError: vectors that do not fit the axes, blocks below 1, or operands computed at run time.
        UnsupportedError: another rank than 3 or 4, types or quantizations that differ, or a zero point of int16.
    """
    source, output = operands.input(0), operands.output()
    dtype = require_movable(node, source, output, FIXED_SIZE)
    if len(source.shape) not in (3, 4):
        raise UnsupportedError(f"the input has shape {source.shape}; TFLite takes 3 or 4 axes")
    if dtype in (*EIGHT_BITS, DType.INT16):
        require_same_quantization(node, source, output)
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
    """Pad every axis after the sample axis by (before, after); negative amounts crop.

    Args:
        x: T[S, *shape].
        amounts: one pair for each axis of shape; size + before + after is 0 or more.
        value: T[S or 1]: the padding value.

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


@dataclass(frozen=True, eq=False)
class SpaceToBatchNd:
    """The blocks and padding along the axes between the first and the last.

    Attributes:
        blocks: lengths of a block, and elements before and after each axis.
        value: T[1]: the padding value.
    """

    blocks: Blocks
    value: Array


def _lower_space_to_batch(node: Node, operands: Operands) -> SpaceToBatchNd:
    """Decide blocks and paddings.

    Raises:
        GraphError: vectors that do not fit the axes, blocks that do not fit the padded axes, computed operands.
        UnsupportedError: another rank than 3 or 4, types or quantizations that differ, or a zero point of int16.
    """
    blocks, output = lower_blocks(node, operands), operands.output()
    for size, block, (before, after) in zip(operands.input(0).shape[1:-1], blocks.lengths, blocks.amounts, strict=True):
        if size + before + after < 0 or (size + before + after) % block:
            raise GraphError(
                f"an axis of {size}, padded by {before} and {after}, has no whole number of blocks {block}"
            )
    padded = [n + sum(pair) for n, pair in zip(operands.input(0).shape[1:-1], blocks.amounts, strict=True)]
    require_result((operands.input(0).shape[0], *padded, operands.input(0).shape[-1]), output.dtype)
    zero = per_tensor(output)[1] if is_quantized(output) and output.dtype in (*EIGHT_BITS, DType.INT16) else 0
    return SpaceToBatchNd(blocks, np.array([zero]).astype(output.dtype.storage))


def _run_space_to_batch(params: SpaceToBatchNd, x: Array, *_operands: Array) -> tuple[Array, ...]:
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


def _lower_batch_to_space(node: Node, operands: Operands) -> Blocks:
    """Decide blocks and crops.

    Raises:
        GraphError: vectors that do not fit the axes, a number of batches that is no multiple of the block size, crops
            that are negative or longer than the axis, operands computed at run time.
        UnsupportedError: another rank than 3 or 4, types or quantizations that differ, or a zero point of int16.
    """
    blocks, shape = lower_blocks(node, operands), operands.input(0).shape
    if shape[0] % prod(blocks.lengths):
        raise GraphError(f"{shape[0]} batches do not divide by blocks of {blocks.lengths}")
    for size, block, (before, after) in zip(shape[1:-1], blocks.lengths, blocks.amounts, strict=True):
        if min(before, after) < 0 or size * block - before - after < 0:
            raise GraphError(f"crops {before} and {after} of an axis of {size * block}; 0 or more, and not all of it")
    return blocks


def _run_batch_to_space(params: Blocks, x: Array, *_operands: Array) -> tuple[Array, ...]:
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


TYPES = (DType.FLOAT32, DType.UINT8, DType.INT8, DType.INT32, DType.INT64)


@dataclass(frozen=True)
class BlockSize:
    """Length of a block."""

    block: int


def lower_depth_to_space(node: Node, operands: Operands) -> BlockSize:
    """Decide the block.

    Raises:
        GraphError: another rank than 4, or channels that do not divide into blocks.
        UnsupportedError: a type that TFLite does not rearrange.
    """
    source = operands.input(0)
    require_movable(node, source, operands.output(), TYPES)
    block = node.attributes.integer("block_size", 0)
    if len(source.shape) != 4 or block < 1 or source.shape[3] % (block * block):
        raise GraphError(f"the channels of {source.shape} do not divide into blocks of {block} x {block}")
    return BlockSize(block)


def _run_depth_to_space(params: BlockSize, x: Array) -> tuple[Array, ...]:
    """Run DEPTH_TO_SPACE: T[S, N, H, W, C * block * block] -> T[S, N, H * block, W * block, C]."""
    samples, n, h, w, c = x.shape
    block = params.block
    split = x.reshape(samples, n, h, w, block, block, c // (block * block))
    shape = (samples, n, h * block, w * block, c // (block * block))
    return (split.transpose(0, 1, 2, 4, 3, 5, 6).reshape(shape),)


def lower_space_to_depth(node: Node, operands: Operands) -> BlockSize:
    """Decide the block.

    Raises:
        GraphError: another rank than 4, or a height or width that is no multiple of the block. UnsupportedError: a type
        that TFLite does not rearrange.
    """
    source = operands.input(0)
    require_movable(node, source, operands.output(), TYPES)
    block = node.attributes.integer("block_size", 0)
    if len(source.shape) != 4 or block < 1 or source.shape[1] % block or source.shape[2] % block:
        raise GraphError(f"an input of shape {source.shape} does not divide into blocks of {block}")
    return BlockSize(block)


def _run_space_to_depth(params: BlockSize, x: Array) -> tuple[Array, ...]:
    """Run SPACE_TO_DEPTH: T[S, N, H, W, C] -> T[S, N, H / block, W / block, block * block * C]."""
    samples, n, h, w, c = x.shape
    block = params.block
    split = x.reshape(samples, n, h // block, block, w // block, block, c)
    return (split.transpose(0, 1, 2, 4, 3, 5, 6).reshape(samples, n, h // block, w // block, block * block * c),)


KERNELS = {
    "space_to_batch_nd": Kernel(_lower_space_to_batch, _run_space_to_batch,
        "each place within blocks of the axes between the first and the last gets its own batch",
        "TFLite kernels/space_to_batch_nd.cc, internal/reference/space_to_batch_nd.h"),
    "batch_to_space_nd": Kernel(_lower_batch_to_space, _run_batch_to_space,
        "batches become the places within blocks of the axes between the first and the last, then a crop",
        "TFLite kernels/batch_to_space_nd.cc, internal/reference/batch_to_space_nd.h"),
    "depth_to_space": Kernel(lower_depth_to_space, _run_depth_to_space,
        "channels become square blocks of height and width",
        "TFLite kernels/depth_to_space.cc, internal/reference/depth_to_space.h"),
    "space_to_depth": Kernel(lower_space_to_depth, _run_space_to_depth,
        "square blocks of height and width become channels",
        "TFLite kernels/space_to_depth.cc, internal/reference/space_to_depth.h"),
}  # fmt: skip
