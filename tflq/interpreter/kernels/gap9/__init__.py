"""Arithmetic `gap9`."""

from __future__ import annotations

from tflq.interpreter.kernels.move import MOVERS
from tflq.interpreter.registry import Arithmetic, places

_OWN = places(
    __name__,
    "softmax unidirectional_sequence_lstm",
    activations="hard_sigmoid hard_swish leaky_relu logistic quantize relu relu6 tanh",
    elementwise="add mul sub",
    **{"expressions.kernel": "expression"},
    linear="conv_2d depthwise_conv_2d fully_connected",
    moves="concatenation resize_bilinear resize_nearest_neighbor tile",
    pooling="average_pool_2d max_pool_2d mean sum reduce_max",
)
ARITHMETIC = Arithmetic("gap9", {**MOVERS, **_OWN})
