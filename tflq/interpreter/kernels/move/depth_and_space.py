"""DEPTH_TO_SPACE: channels become square blocks of height and width; SPACE_TO_DEPTH: the way back.

DEPTH_TO_SPACE: output[n, h * block + y, w * block + x, c] = input[n, h, w, (y * block + x) * C + c] with C channels of
output. SPACE_TO_DEPTH: output[n, h, w, (y * block + x) * C + c] = input[n, h * block + y, w * block + x, c].

DEPTH_TO_SPACE: channels become square blocks of height and width. Source: TFLite kernels/depth_to_space.cc,
internal/reference/depth_to_space.h.
SPACE_TO_DEPTH: square blocks of height and width become channels. Source: TFLite kernels/space_to_depth.cc,
internal/reference/space_to_depth.h.
"""

from __future__ import annotations

from dataclasses import dataclass

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.movable import require_movable
from tflq.interpreter.registry import Kernel

TYPES = (DType.FLOAT32, DType.UINT8, DType.INT8, DType.INT32, DType.INT64)


@dataclass(frozen=True)
class BlockSize:
    """Length of a block."""

    block: int


def _lower_depth(node: Node, operands: Operands) -> BlockSize:
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


def _run_depth(params: BlockSize, x: Array) -> tuple[Array, ...]:
    """Run DEPTH_TO_SPACE: T[S, N, H, W, C * block * block] -> T[S, N, H * block, W * block, C]."""
    samples, n, h, w, c = x.shape
    block = params.block
    split = x.reshape(samples, n, h, w, block, block, c // (block * block))
    shape = (samples, n, h * block, w * block, c // (block * block))
    return (split.transpose(0, 1, 2, 4, 3, 5, 6).reshape(shape),)


def _lower_space(node: Node, operands: Operands) -> BlockSize:
    """Decide the block.

    Raises:
        GraphError: another rank than 4, or a height or width that no whole number of blocks fills.
        UnsupportedError: a type that TFLite does not rearrange.
    """
    source = operands.input(0)
    require_movable(node, source, operands.output(), TYPES)
    block = node.attributes.integer("block_size", 0)
    if len(source.shape) != 4 or block < 1 or source.shape[1] % block or source.shape[2] % block:
        raise GraphError(f"an input of shape {source.shape} does not divide into blocks of {block}")
    return BlockSize(block)


def _run_space(params: BlockSize, x: Array) -> tuple[Array, ...]:
    """Run SPACE_TO_DEPTH: T[S, N, H, W, C] -> T[S, N, H / block, W / block, block * block * C]."""
    samples, n, h, w, c = x.shape
    block = params.block
    split = x.reshape(samples, n, h // block, block, w // block, block, c)
    return (split.transpose(0, 1, 2, 4, 3, 5, 6).reshape(samples, n, h // block, w // block, block * block * c),)


KERNELS = {
    "depth_to_space": Kernel(_lower_depth, _run_depth),
    "space_to_depth": Kernel(_lower_space, _run_space),
}
