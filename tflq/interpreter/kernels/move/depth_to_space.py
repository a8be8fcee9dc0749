"""DEPTH_TO_SPACE: channels become square blocks of height and width.

output[n, h * block + y, w * block + x, c] = input[n, h, w, (y * block + x) * C + c] with C channels of output.

Source: TFLite kernels/depth_to_space.cc and internal/reference/depth_to_space.h.
"""

from __future__ import annotations

from dataclasses import dataclass

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.movable import require_movable

TYPES = (DType.FLOAT32, DType.UINT8, DType.INT8, DType.INT32, DType.INT64)


@dataclass(frozen=True)
class DepthToSpace:
    """Length of a block."""

    block: int


def lower(node: Node, operands: Operands) -> DepthToSpace:
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
    return DepthToSpace(block)


def run(params: DepthToSpace, x: Array) -> tuple[Array, ...]:
    """Run DEPTH_TO_SPACE: T[S, N, H, W, C * block * block] -> T[S, N, H * block, W * block, C]."""
    samples, n, h, w, c = x.shape
    block = params.block
    split = x.reshape(samples, n, h, w, block, block, c // (block * block))
    shape = (samples, n, h * block, w * block, c // (block * block))
    return (split.transpose(0, 1, 2, 4, 3, 5, 6).reshape(shape),)
