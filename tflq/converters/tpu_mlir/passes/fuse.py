"""Rectifiers go into the layer in front of them, and constant operands become depthwise convolutions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.converters.passes.fuse_activations import fusable_activation
from tflq.converters.passes.patterns import constant_operand
from tflq.converters.passes.rewrite import constant
from tflq.graph import Graph
from tflq.schemas.tpu_mlir import operators_of

RECTIFIERS = ("relu", "relu6")
FUSING = operators_of("fused_activations", "operators")


def rectified_by(graph: Graph, index: int) -> int | None:
    """Return the rectifier that can go into a node; None where there is none."""
    return fusable_activation(graph, index, FUSING, RECTIFIERS)


def constants_to_depthwise(graph: Graph) -> Graph:
    """Return the graph with x + c and x * c, c one number a channel, as 1x1 depthwise convolutions.

    x + c has weights of 1 and the bias c; x * c has the weights c and no bias.
    """
    result = graph.copy()
    for index, node in enumerate(graph.nodes):
        position = constant_operand(graph, node) if node.operator in ("add", "mul") else None
        if position is None:
            continue
        operand = graph.tensors[node.inputs[position]]
        assert operand.data is not None
        values = operand.data.astype(np.float32).reshape(-1)
        weights, bias = (np.ones_like(values), values) if node.operator == "add" else (values, np.zeros_like(values))
        inputs = (
            node.inputs[1 - position],
            result.add_tensor(constant(f"{operand.name}_weights", weights.reshape(1, 1, 1, -1))),
            result.add_tensor(constant(f"{operand.name}_bias", bias)),
        )
        attributes = node.attributes.updated(padding="valid", stride_h=1, stride_w=1, depth_multiplier=1)
        result.nodes[index] = replace(node, operator="depthwise_conv_2d", inputs=inputs, attributes=attributes)
    return result
