"""A float TFLite graph -> the graph of Compass's layers, as the Compass Parser maps them (docs/aipu.md, 6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tflq.converters.aipu.fusions import BATCH_NORM, CLIP, MOMENTS, RECTIFIED, SOFTPLUS, Fusion, find_fusions, sides
from tflq.converters.aipu.origin import Origin
from tflq.converters.aipu.translate_moves import MOVES
from tflq.converters.aipu.translate_others import OTHERS, Rule, clip, softplus
from tflq.converters.aipu.translate_reductions import REDUCTIONS, moments
from tflq.converters.aipu.translation import FUSED, RESERVED, Translation
from tflq.graph import ABSENT, Array, Attributes, Graph, Node, validate
from tflq.graph.attributes import Attribute
from tflq.interpreter.accumulate import window_of


def translate(source: Graph, name: str) -> Graph:
    """Return the graph of Compass's layers; ranges come along.

    Args:
        source: float, with the operators that `TRANSLATED` names, and nothing that `check` refuses.
        name: of the model.
    """
    work = Translation(source, Graph([], [], (), (), name))
    layers = {f"{layer}_0": layer for layer in (work.input(t) for t in source.inputs)}
    work.graph.inputs = tuple(work.places[t] for t in source.inputs)
    fusions = find_fusions(source)
    for index, node in enumerate(source.nodes):
        fusion = fusions.get(index)
        if fusion is None:
            RULES[node.operator](work, node)
        elif fusion.place == index:
            FUSED_RULES[fusion.kind](work, fusion)
    work.graph.outputs = tuple(work.operand(t) for t in source.outputs)
    order = (*layers.values(), *(node.name for node in work.graph.nodes))
    work.graph.extra = Origin(name.translate(RESERVED), layers, order, work.sources(), work.settings)
    validate(work.graph, "Compass layers")
    return work.graph


def _filter(work: Translation, node: Node) -> None:
    weights, biases = _weights(work.source, node)
    is_depthwise = node.operator == "depthwise_conv_2d"
    if is_depthwise:
        weights = weights.transpose(3, 1, 2, 0)
    channels = work.source.tensors[node.inputs[0]].shape[3]
    multiplier = weights.shape[0] // channels if is_depthwise else 1
    group = channels if is_depthwise else channels // weights.shape[3]
    operator = "depthwise_conv" if is_depthwise and multiplier == 1 else "convolution"
    extra: dict[str, Attribute] = {"multiplier": 1} if operator == "depthwise_conv" else {}
    window = _window(work.source, node, (weights.shape[1], weights.shape[2]))
    constants = {"weights": weights, "biases": biases}
    attributes: dict[str, Attribute] = {"num_output": weights.shape[0], **window, "group": group}
    attributes["with_activation"] = _fused(node)
    work.append(node, operator, constants, Attributes({**attributes, **extra}))


def _fully_connected(work: Translation, node: Node) -> None:
    weights, biases = _weights(work.source, node)
    constants = {"weights": weights, "biases": biases}
    keys = Attributes({"num_output": weights.shape[0], "with_activation": _fused(node)})
    work.append(node, "fully_connected", constants, keys)


def _pool(work: Translation, node: Node) -> None:
    kernel = (node.attributes.integer("filter_height"), node.attributes.integer("filter_width"))
    is_average = node.operator == "average_pool_2d"
    keys: dict[str, Attribute] = {"method": "AVG" if is_average else "MAX", "ceil_mode": False}
    if is_average:
        keys["count_include_pad"] = False
    work.append(node, "pooling", {}, Attributes({**_window(work.source, node, kernel), **keys}))


def _softmax(work: Translation, node: Node) -> None:
    work.append(node, "softmax", {}, Attributes({"axis": len(work.source.tensors[node.inputs[0]].shape) - 1}))


def _fused(node: Node) -> str:
    return FUSED[node.attributes.text("fused_activation_function", "none")]


def _weights(graph: Graph, node: Node) -> tuple[Array, Array]:
    """Return weights, and biases, zeros where the node has none."""
    weights = graph.tensors[node.inputs[1]].data
    assert weights is not None
    outputs = weights.shape[3 if node.operator == "depthwise_conv_2d" else 0]
    place = node.inputs[2] if len(node.inputs) > 2 else ABSENT
    biases = None if place == ABSENT else graph.tensors[place].data
    return weights, np.zeros(outputs, np.float32) if biases is None else biases


def _window(graph: Graph, node: Node, kernel: tuple[int, int]) -> dict[str, Attribute]:
    x = graph.tensors[node.inputs[0]]
    found = window_of(node.attributes, (x.shape[1], x.shape[2]), kernel)
    return {
        "kernel_x": kernel[1],
        "kernel_y": kernel[0],
        "stride_x": found.stride[1],
        "stride_y": found.stride[0],
        "pad_left": found.left,
        "pad_right": found.right,
        "pad_top": found.top,
        "pad_bottom": found.bottom,
        "dilation_x": found.dilation[1],
        "dilation_y": found.dilation[0],
    }


def _transpose_conv(work: Translation, node: Node) -> None:
    """Inputs: shape of the output, weights [O, KH, KW, C], data, bias."""
    own = replace(node, inputs=(node.inputs[2], node.inputs[1], *node.inputs[3:]))
    weights, biases = _weights(work.source, own)
    kernel = (weights.shape[1], weights.shape[2])
    keys: dict[str, Attribute] = {"num_output": weights.shape[0]}
    keys.update(_window(work.source, replace(own, inputs=own.outputs), kernel))
    keys.update(group=1, with_activation=_fused(node), output_padding_x=0, output_padding_y=0)
    x = (work.operand(own.inputs[0]),)
    work.add(node, "conv_transpose", x, node.outputs, keys, {"weights": weights, "biases": biases})


def _batch_norm(work: Translation, fusion: Fusion) -> None:
    first, last = (work.source.nodes[n] for n in fusion.nodes)
    constants = {
        key: np.asarray(work.source.tensors[sides(work.source, node)[1]].data).reshape(-1)
        for key, node in (("weights", first), ("biases", last))
    }
    x = sides(work.source, first)[0]
    keys: dict[str, Attribute] = {"axis": len(work.shape(x)) - 1, "epsilon": 0.0}
    if _fused(last) != "NONE":
        keys["with_activation"] = _fused(last)
    work.rename(last.outputs[0], first.outputs[0])
    work.add(last, "batch_norm", (work.operand(x),), last.outputs, keys, constants)


def _rectified(work: Translation, fusion: Fusion) -> None:
    """Add the layer of the first node with the second, a rectifier, fused."""
    first, last = (work.source.nodes[n] for n in fusion.nodes)
    work.rename(last.outputs[0], first.outputs[0])
    attributes = first.attributes.updated(fused_activation_function=last.operator)
    RULES[first.operator](work, replace(first, outputs=last.outputs, attributes=attributes))


RULES: dict[str, Rule] = {
    **OTHERS,
    **MOVES,
    **REDUCTIONS,
    "average_pool_2d": _pool,
    "conv_2d": _filter,
    "depthwise_conv_2d": _filter,
    "fully_connected": _fully_connected,
    "max_pool_2d": _pool,
    "softmax": _softmax,
    "transpose_conv": _transpose_conv,
}
FUSED_RULES: dict[str, Callable[[Translation, Fusion], None]] = {
    BATCH_NORM: _batch_norm,
    CLIP: clip,
    MOMENTS: moments,
    RECTIFIED: _rectified,
    SOFTPLUS: softplus,
}
