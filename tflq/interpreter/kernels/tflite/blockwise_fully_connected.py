"""FULLY_CONNECTED with float32 activations and int4 weights that have a scale for each block of a row (docs/tflite.md).

Each row of the input is quantised with a zero point (hybrid.py). In float32, block by block: total = total +
f32(acc) * s, sums = sums + s * (sum of w); then y = (total - zero point * sums) * scale of the row + bias. TFLite's
optimised kernel computes it, for constant weights of 4 rows and 32 columns or more; its reference kernel takes 0 for
the scale of such weights, so that the bias is left, and tflq does not follow it.

Source: TFLite kernels/fully_connected.cc (EvalBlockwise4Bit).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from tflq.arrays import Singles
from tflq.errors import UnsupportedError
from tflq.graph import Array, Blockwise, DType, Node, Operands
from tflq.interpreter.accumulate import MatrixProduct, accumulate_product, prepare_product
from tflq.interpreter.kernels.tflite.hybrid import quantize_asymmetric
from tflq.interpreter.operands.block_scales import block_scales
from tflq.interpreter.operands.checks import require_bias_size, require_type
from tflq.interpreter.operands.products import check_shapes, output_shape, require_default_layout

_LARGEST_CODE = 128


@dataclass(frozen=True, eq=False)
class BlockwiseFullyConnected:
    """What FULLY_CONNECTED with weights in blocks needs.

    Attributes:
        keep_dimensions: whether the output keeps the input's axes; else it is [rows, O].
        size: elements of a block.
        scale: float32[O, blocks].
        sums: float32[O], the rows' sums of scale * weight.
        products: weights of each block packed.
    """

    keep_dimensions: bool
    size: int
    scale: Singles
    sums: Singles
    products: tuple[MatrixProduct, ...]


def is_blockwise(operands: Operands) -> bool:
    """Whether the weights are quantised in blocks."""
    return isinstance(operands.input(1).quantisation, Blockwise)


def lower_blockwise(node: Node, operands: Operands) -> BlockwiseFullyConnected:
    """Prepare the weights.

    Raises:
        UnsupportedError: other types, a fused activation (TFLite's kernel leaves it out), or shuffled weights.
        GraphError: shapes or blocks that do not fit.
        RuntimeOperandError: the weights are computed at run time.
    """
    x, weights, bias = operands.input(0), operands.input(1), operands.optional(2)
    for tensor in (x, operands.output(), *(() if bias is None else (bias,))):
        require_type(tensor, (DType.FLOAT32,))
    require_default_layout(node)
    activation = node.attributes.text("fused_activation_function", "none")
    if activation != "none":
        raise UnsupportedError(f"fused activation '{activation}' with weights in blocks; TFLite's kernel takes none")
    keep = check_shapes(node, x, weights)
    require_bias_size(bias, weights.shape[0])
    scale = block_scales(operands, 1, (DType.INT4,))
    blocks = np.split(operands.constant(1), scale.shape[1], axis=1)
    sums: Singles = np.zeros(len(scale), np.float32)
    for b, block in enumerate(blocks):
        sums = sums + scale[:, b] * block.sum(axis=1, dtype=np.int64).astype(np.float32)
    products = tuple(prepare_product(block, _LARGEST_CODE) for block in blocks)
    return BlockwiseFullyConnected(keep, blocks[0].shape[1], scale, sums, products)


def run_blockwise(layer: BlockwiseFullyConnected, x: Array, weights: Array, bias: Array | None) -> tuple[Array, ...]:
    """Run it: float32[S, ..., K], weights [O, K], bias [O] -> float32[S, rows, O], or [S, ..., O] with axes kept."""
    outputs, depth = weights.shape[1:]
    shape = output_shape(x.shape, (outputs, depth), layer.keep_dimensions)
    rows = quantize_asymmetric(cast(Singles, x).reshape(x.shape[0], -1, depth))
    total: Singles = np.zeros((*rows.scale.shape, outputs), np.float32)
    with np.errstate(all="ignore"):
        for b, product in enumerate(layer.products):
            codes = rows.codes[..., b * layer.size : (b + 1) * layer.size]
            total = total + accumulate_product(product, codes).astype(np.float32) * layer.scale[:, b]
        total = (total - rows.zero_point[..., None].astype(np.float32) * layer.sums) * rows.scale[..., None]
        if bias is not None:
            total = total + cast(Singles, bias).reshape(bias.shape[0], 1, -1)
    return (total.reshape(shape),)
