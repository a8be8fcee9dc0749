"""FULLY_CONNECTED with float32 activations and weights of int8, int4, int2 or uint8 (docs/rules/tflite/index.md).

int4 with a scale for each block of a row: each row of the input is quantized with a zero point (hybrid.py). In float32,
block by block: total = total + f32(acc) * s, sums = sums + s * (sum of w); then y = (total - zero point * sums) * scale
of the row + bias. TFLite's optimized kernel computes it, for constant weights of 4 rows and 32 columns or more; its
reference kernel reads the scale of such weights as 0, so that the bias is left, and tflq does not follow it.

Other weights: each row of the input is quantized (hybrid.py); y = activation(bias + f32(f32(total) * f32(sw * scale of
row))). Weights of uint8 are read as if they were int8; zero points of weights are not looked at. Sparse weights, int8
in blocks of 1 x 16, take the rows' zero point off in float32: y = activation((bias - f32(f32(sw scale) * zero point) *
row sum) + f32(f32(acc) * f32(sw * scale))), with scales per channel sw multiplied last.

Source: TFLite kernels/fully_connected.cc (EvalBlockwise4Bit); TFLite kernels/fully_connected.cc (EvalHybridDense).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from tflq.arrays import Singles
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, Blockwise, DType, Node, Operands
from tflq.interpreter.accumulate import MatrixProduct, accumulate_product, prepare_product
from tflq.interpreter.kernels.float.vector_functions import activate, require_activation
from tflq.interpreter.kernels.tflite.hybrid import (
    LARGEST_CODE,
    HybridProduct,
    QuantizedRows,
    hybrid_product,
    prepare_hybrid,
    quantize_asymmetric,
    quantize_rows,
    signed_weights,
)
from tflq.interpreter.operands.checks import block_scales, require_bias_size, require_type
from tflq.interpreter.operands.products import are_sparse, check_shapes, output_shape, require_default_layout
from tflq.interpreter.samples import each_sample


@dataclass(frozen=True, eq=False)
class BlockwiseFullyConnected:
    """The params of FULLY_CONNECTED with weights in blocks.

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
    """Whether the weights are quantized in blocks."""
    return isinstance(operands.input(1).quantization, Blockwise)


def lower_blockwise(node: Node, operands: Operands) -> BlockwiseFullyConnected:
    """Prepare the weights.

    Raises:
        UnsupportedError: other types, a fused activation (TFLite's kernel leaves it out), or shuffled weights.
        GraphError: shapes or blocks that do not fit.
        RuntimeOperandError: the weights are computed at run time.
    """
    x, weights, bias = operands.input(0), operands.input(1), operands.optional(2)
    for tensor in (x, operands.output(), bias):
        if tensor is not None:
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
    products = tuple(prepare_product(block, LARGEST_CODE) for block in blocks)
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
    return (total.reshape(len(total), *shape[1:]),)


WEIGHTS = (DType.INT8, DType.INT4, DType.INT2, DType.UINT8)


@dataclass(frozen=True, eq=False)
class HybridFullyConnected:
    """The params of a hybrid FULLY_CONNECTED.

    Attributes:
        keep_dimensions: whether the output keeps the input's axes; else it is [rows, O].
        asymmetric: whether inputs get a zero point.
        activation: fused.
        scale: Scale of the weights: float32[1] or float32[O].
        is_sparse: whether the weights are stored sparsely.
        product: weights packed; None if they are computed at run time.
    """

    keep_dimensions: bool
    asymmetric: bool
    activation: str
    scale: Singles
    is_sparse: bool
    product: HybridProduct | None


def lower_hybrid(node: Node, operands: Operands) -> HybridFullyConnected:
    """Check the operands and prepare constant weights.

    Raises:
        UnsupportedError: other types, an unknown activation, weights that are shuffled or sparse in other blocks.
        GraphError: shapes that contradict each other.
    """
    x, weights, bias, output = operands.input(0), operands.input(1), operands.optional(2), operands.output()
    for tensor in (x, output, *(() if bias is None else (bias,))):
        require_type(tensor, (DType.FLOAT32,))
    require_type(weights, WEIGHTS)
    require_default_layout(node)
    keep = check_shapes(node, x, weights)
    outputs = weights.shape[0]
    require_bias_size(bias, outputs)
    scale = weights.affine.scale.astype(np.float32)
    if scale.size not in (1, outputs):
        raise GraphError(f"weights '{weights.name}' have {scale.size} scales; allowed are 1 or {outputs}")
    return HybridFullyConnected(
        keep,
        node.attributes.boolean("asymmetric_quantize_inputs", False),
        require_activation(node.attributes.text("fused_activation_function", "none")),
        scale,
        are_sparse(weights),
        None if weights.data is None else prepare_hybrid(signed_weights(weights.data)),
    )


def run_hybrid(layer: HybridFullyConnected, x: Array, weights: Array, bias: Array | None) -> tuple[Array, ...]:
    """Run it: float32[S, ..., K], weights [O, K], bias [O] -> float32[S, rows, O], or [S, ..., O] with axes kept."""
    outputs, depth = weights.shape[1:]
    shape = output_shape(x.shape, (outputs, depth), layer.keep_dimensions)
    rows, start = cast(Singles, x).reshape(x.shape[0], -1, depth), cast(Singles | None, bias)
    if layer.product is not None:
        result = _multiply(layer, layer.product, rows, start)
    else:
        made = [prepare_hybrid(signed_weights(w)) for w in weights]
        each = [
            _multiply(layer, made[s % len(made)], cast(Singles, row), cast(Singles | None, added))
            for s, (row, _, added) in enumerate(each_sample(rows, weights, start))
        ]
        result = np.concatenate(each)
    return (result.reshape(len(result), *shape[1:]),)


def _multiply(layer: HybridFullyConnected, product: HybridProduct, rows: Singles, bias: Singles | None) -> Singles:
    quantized = quantize_rows(rows, layer.asymmetric)
    with np.errstate(all="ignore"):
        start = np.float32(0) if bias is None else bias.reshape(bias.shape[0], 1, -1)
        shifted = start
        if layer.is_sparse and layer.asymmetric:
            shifted = start - _offsets(layer, quantized) * product.row_sums.astype(np.float32)
            quantized = replace(quantized, zero_point=np.zeros_like(quantized.zero_point))
        total = hybrid_product(product, quantized) * (quantized.scale[..., None] * layer.scale)
        result: Singles = shifted + total
        # TFLite skips the product if a whole input is zero: a bias of -0 stays
        result = np.where(rows.any(axis=(1, 2), keepdims=True), result, start)
        return activate(result, layer.activation)


def _offsets(layer: HybridFullyConnected, rows: QuantizedRows) -> Singles:
    """Return the factors of the weights' row sums: float32[..., 1 or O]."""
    zero_point = rows.zero_point[..., None].astype(np.float32)
    scale = rows.scale[..., None]
    offsets: Singles = scale * layer.scale * zero_point if layer.scale.size == 1 else scale * zero_point * layer.scale
    return offsets
