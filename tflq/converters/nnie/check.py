"""Which operators compute on quantized values, and which Caffe 1.0 or the mapper cannot take.

All at once, with the way out.
"""

from __future__ import annotations

from tflq.converters.nnie.caffe.network import caffe_network
from tflq.converters.passes.patterns import computed_inputs, fused_activation
from tflq.converters.passes.requirements import float_network
from tflq.errors import GraphError
from tflq.graph import ABSENT, Graph, Node
from tflq.interpreter.operands.sound_scales import require_sound_scales
from tflq.schemas.nnie import limits

WEIGHTED = ("conv_2d", "depthwise_conv_2d", "fully_connected")
QUANTISING = (*WEIGHTED, "average_pool_2d", "mean", "add", "mul", "concatenation")
"""Operators whose inputs become quantized values, all with one z."""


def layer_inputs(graph: Graph, node: Node) -> tuple[int, ...]:
    """Return the computed inputs of a quantising layer, without weights, bias and axes."""
    if node.operator in (*WEIGHTED, "average_pool_2d", "mean"):
        return node.inputs[:1]
    return tuple(t for _, t in computed_inputs(graph, node))


_ACTIVATIONS = ("none", "relu", "relu6")


def problems_of(graph: Graph) -> tuple[str, ...]:
    """Return one line for each operator that cannot be mapped, in order of the file."""
    try:
        for index in range(len(graph.nodes)):
            require_sound_scales(graph.operands(index))
        view = float_network(graph)
    except GraphError as error:
        return (str(error),)
    reasons = dict(caffe_network(view).problems)
    readers = view.consumers()
    for index, node in enumerate(view.nodes):
        reasons.setdefault(index, _activation(view, node, readers) or _dimensions(view, node))
    numbers = {node.name: i for i, node in enumerate(graph.nodes)}
    return tuple(
        f"{graph.where(numbers[view.nodes[index].name])}: {reason}"
        for index, reason in sorted(reasons.items())
        if reason
    )


def _activation(graph: Graph, node: Node, readers: dict[int, list[int]]) -> str:
    fused = fused_activation(node)
    if fused not in _ACTIVATIONS:
        return f"fused activation {fused}; Caffe 1.0 has none like it: use none, relu or relu6"
    if fused != "relu6" and node.operator != "relu6":
        return ""
    t = node.outputs[0]
    found = graph.tensors[t].range
    if found is None:
        return ""  # quantise asks for ranges
    largest = float(found.maximum.max())
    saturating = t not in graph.outputs and all(
        graph.nodes[r].operator in (*WEIGHTED, "average_pool_2d", "mean") for r in readers.get(t, [])
    )
    if largest < 6 or (largest == 6 and saturating):
        return ""
    why = (
        f"its calibrated maximum is {largest:g}" if largest > 6 else "an operator that reads it does not saturate at 6"
    )
    return (
        f"relu6; Caffe 1.0 has no ReLU6 (ReLU6 and Clip are forks), and ReLU is not the same here: {why}; train with "
        f"relu, or give the tensor a range below 6"
    )


def _dimensions(graph: Graph, node: Node) -> str:
    largest = limits().dimension
    for t in (*node.inputs[: 1 if node.operator in QUANTISING else None], *node.outputs):
        shape = graph.tensors[t].shape if t != ABSENT else ()
        if shape and max(shape) > largest:
            return f"tensor '{graph.tensors[t].name}' has shape {shape}; NNIE takes axes up to {largest}: cut it up"
    return ""
