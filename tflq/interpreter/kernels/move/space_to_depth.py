"""SPACE_TO_DEPTH: square blocks of height and width become channels.

output[n, h, w, (y * block + x) * C + c] = input[n, h * block + y, w * block + x, c].

Source: TFLite kernels/space_to_depth.cc and internal/reference/space_to_depth.h.
"""

from __future__ import annotations

from dataclasses import dataclass

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.movable import require_movable

TYPES = (DType.FLOAT32, DType.UINT8, DType.INT8, DType.INT32, DType.INT64)


@dataclass(frozen=True)
class SpaceToDepth:
    """Length of a block."""

    block: int


def lower(node: Node, operands: Operands) -> SpaceToDepth:
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
    return SpaceToDepth(block)


def run(params: SpaceToDepth, x: Array) -> tuple[Array, ...]:
    """Run SPACE_TO_DEPTH: T[S, N, H, W, C] -> T[S, N, H / block, W / block, block * block * C]."""
    samples, n, h, w, c = x.shape
    block = params.block
    split = x.reshape(samples, n, h // block, block, w // block, block, c)
    return (split.transpose(0, 1, 2, 4, 3, 5, 6).reshape(samples, n, h // block, w // block, block * block * c),)
