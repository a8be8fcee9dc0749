"""FULLY_CONNECTED with float32 activations and int8, int4, int2 or uint8 weights (docs/tflite.md).

Each row of the input is quantised (hybrid.py); y = activation(bias + f32(f32(total) * f32(sw * scale of row))).
Weights of uint8 are read as if they were int8; zero points of weights are not looked at. Sparse weights, int8 in blocks
of 1 x 16, take the rows' zero point off in float32: y = activation((bias - f32(f32(sw scale) * zero point) * row sum) +
f32(f32(acc) * f32(sw * scale))), with scales per channel sw multiplied last.

Source: TFLite kernels/fully_connected.cc (EvalHybridDense).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from tflq.arrays import Singles
from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.float.vector_functions import activate, require_activation
from tflq.interpreter.kernels.tflite.hybrid import (
    HybridProduct,
    QuantisedRows,
    hybrid_product,
    prepare_hybrid,
    quantize_rows,
    signed_weights,
)
from tflq.interpreter.operands.checks import require_bias_size, require_type
from tflq.interpreter.operands.products import are_sparse, check_shapes, output_shape, require_default_layout

WEIGHTS = (DType.INT8, DType.INT4, DType.INT2, DType.UINT8)


@dataclass(frozen=True, eq=False)
class HybridFullyConnected:
    """What a hybrid FULLY_CONNECTED needs.

    Attributes:
        keep_dimensions: whether the output keeps the input's axes; else it is [rows, O].
        asymmetric: whether inputs get a zero point.
        activation: fused.
        scale: of the weights: float32[1] or float32[O].
        is_sparse: whether the weights are stored sparsely.
        product: weights packed; None where they are computed at run time.
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
        return (_multiply(layer, layer.product, rows, start).reshape(shape),)
    own = max(len(x), len(weights))
    prepared = [prepare_hybrid(signed_weights(w)) for w in weights]
    each = [_multiply(layer, prepared[s % len(weights)], rows[s % len(x)][None], start) for s in range(own)]
    return (np.concatenate(each).reshape(own, *shape[1:]),)


def _multiply(layer: HybridFullyConnected, product: HybridProduct, rows: Singles, bias: Singles | None) -> Singles:
    quantised = quantize_rows(rows, layer.asymmetric)
    with np.errstate(all="ignore"):
        start = np.float32(0) if bias is None else bias.reshape(bias.shape[0], 1, -1)
        shifted = start
        if layer.is_sparse and layer.asymmetric:
            shifted = start - _offsets(layer, quantised) * product.row_sums.astype(np.float32)
            quantised = replace(quantised, zero_point=np.zeros_like(quantised.zero_point))
        total = hybrid_product(product, quantised) * (quantised.scale[..., None] * layer.scale)
        result: Singles = shifted + total
        # TFLite skips the product where a whole input is zero: a bias of -0 stays
        result = np.where(rows.any(axis=(1, 2), keepdims=True), result, start)
        return activate(result, layer.activation)


def _offsets(layer: HybridFullyConnected, rows: QuantisedRows) -> Singles:
    """Return what a row sum of the weights is multiplied by: float32[..., 1 or O]."""
    zero_point = rows.zero_point[..., None].astype(np.float32)
    scale = rows.scale[..., None]
    offsets: Singles = scale * layer.scale * zero_point if layer.scale.size == 1 else scale * zero_point * layer.scale
    return offsets
