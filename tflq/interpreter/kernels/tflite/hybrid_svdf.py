"""SVDF with float32 activations and state, and int8 or uint8 weights (docs/tflite.md).

The feature product is that of hybrid_product.py; time weights become f32(w * scale) and the rest is the float kernel.

Source: TFLite kernels/svdf.cc, internal/reference/svdf.h (EvalHybridSVDF).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.float.svdf import finish
from tflq.interpreter.kernels.float.vector_activation import require_activation
from tflq.interpreter.kernels.float.vector_sums import Floats
from tflq.interpreter.kernels.tflite.hybrid_input import quantize_rows
from tflq.interpreter.kernels.tflite.hybrid_product import (
    HybridProduct,
    hybrid_product,
    prepare_hybrid,
    signed_weights,
)
from tflq.interpreter.operands.checks import per_tensor, require_same_type, require_type
from tflq.interpreter.operands.svdf import SvdfShapes, svdf_shapes


@dataclass(frozen=True, eq=False)
class HybridSvdf:
    """What a hybrid SVDF needs.

    Attributes:
        shapes: rank, units, memory.
        activation: fused.
        asymmetric: whether inputs get a zero point.
        scale: of the feature weights.
        time: time weights as float32[F, M].
        product: feature weights made ready.
    """

    shapes: SvdfShapes
    activation: str
    asymmetric: bool
    scale: np.float32
    time: Floats
    product: HybridProduct


def lower_hybrid(node: Node, operands: Operands) -> HybridSvdf:
    """Check the operands and prepare the weights, which must be constants.

    Raises:
        UnsupportedError: other types, or an unknown activation.
        GraphError: shapes that contradict each other.
    """
    feature, time = operands.input(1), operands.input(2)
    for tensor in (operands.input(0), operands.optional(3), operands.input(4), operands.output()):
        if tensor is not None:
            require_type(tensor, (DType.FLOAT32,))
    require_type(feature, (DType.INT8, DType.UINT8))
    require_same_type(feature, time)
    scale, time_scale = per_tensor(feature)[0], per_tensor(time)[0]
    codes = signed_weights(operands.constant(2)).astype(np.float32)
    return HybridSvdf(
        svdf_shapes(node, operands),
        require_activation(node.attributes.text("fused_activation_function", "none")),
        node.attributes.boolean("asymmetric_quantize_inputs", False),
        scale,
        codes * time_scale,
        prepare_hybrid(signed_weights(operands.constant(1))),
    )


def run_hybrid(layer: HybridSvdf, x: Array, bias: Array | None, state: Array) -> tuple[Array, ...]:
    """Run it: float32[S, B, I], state [S, B, M * F] -> float32[S, B, U] and the new state."""
    rows = quantize_rows(cast(Floats, x), layer.asymmetric)
    newest = hybrid_product(layer.product, rows) * (rows.scale * layer.scale)[..., None] + np.float32(0)
    return finish(layer.shapes, layer.activation, newest, layer.time, cast(Floats | None, bias), state)
