"""Rectifiers go into the layer in front of them, and constant operands become depthwise convolutions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.graph import Array, DType, Graph, Node, Tensor
from tflq.schemas.tpu_mlir import operators_of

RECTIFIERS = ("relu", "relu6")
FUSING = operators_of("fused_activations", "operators")


def rectified_by(graph: Graph, index: int) -> int | None:
    """Return the rectifier that alone reads what a node writes and can go into it; None where there is none."""
    node = graph.nodes[index]
    if node.operator not in FUSING or node.attributes.text("fused_activation_function", "none") != "none":
        return None
    t = node.outputs[0]
    readers = graph.consumers().get(t, [])
    if len(readers) != 1 or t in graph.outputs or graph.nodes[readers[0]].operator not in RECTIFIERS:
        return None
    return readers[0]


def fuse_rectifiers(graph: Graph) -> Graph:
    """Return the graph with each rectifier behind a convolution, product or sum fused into it.

    The layer then writes the rectifier's tensor; its own tensor is written by nobody.
    """
    result = graph.copy()
    gone = set()
    for index, node in enumerate(graph.nodes):
        reader = rectified_by(graph, index)
        if reader is not None:
            rectifier = graph.nodes[reader]
            attributes = node.attributes.updated(fused_activation_function=rectifier.operator)
            result.nodes[index] = replace(node, outputs=rectifier.outputs, attributes=attributes)
            gone.add(reader)
    result.nodes = [node for index, node in enumerate(result.nodes) if index not in gone]
    return result


def constant_operand(graph: Graph, node: Node) -> int | None:
    """Return the position of the constant among two operands; None where both are computed."""
    positions = [p for p, t in enumerate(node.inputs) if graph.tensors[t].is_constant]
    return positions[0] if positions else None


def constants_to_depthwise(graph: Graph) -> Graph:
    """Return the graph with x + c and x * c, c one number a channel, as 1x1 depthwise convolutions.

    x + c has weights of 1 and the bias c; x * c has the weights c and no bias.
    """
    result = graph.copy()
    for index, node in enumerate(graph.nodes):
        position = constant_operand(graph, node) if node.operator in ("add", "mul") else None
        if position is None:
            continue
        constant = graph.tensors[node.inputs[position]]
        assert constant.data is not None
        values = constant.data.astype(np.float32).reshape(-1)
        weights, bias = (np.ones_like(values), values) if node.operator == "add" else (values, np.zeros_like(values))
        inputs = (
            node.inputs[1 - position],
            _add(result, f"{constant.name}_weights", weights.reshape(1, 1, 1, -1)),
            _add(result, f"{constant.name}_bias", bias),
        )
        attributes = node.attributes.updated(padding="valid", stride_h=1, stride_w=1, depth_multiplier=1)
        result.nodes[index] = replace(node, operator="depthwise_conv_2d", inputs=inputs, attributes=attributes)
    return result


def _add(graph: Graph, name: str, data: Array) -> int:
    data.setflags(write=False)
    return graph.add_tensor(Tensor(name, data.shape, DType.FLOAT32, data=data))
