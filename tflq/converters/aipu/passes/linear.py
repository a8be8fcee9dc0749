"""What goes into the weights of the layer in front: constants, paddings; products with constants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.arrays import Singles
from tflq.converters.aipu.passes.activations import RECTIFIERS
from tflq.converters.aipu.passes.layers import Layers
from tflq.graph import Node
from tflq.graph.operators import Trait, with_traits

_LINEAR = ("convolution", "convolution_3d", "depthwise_conv", "conv_transpose", "fully_connected")


def _host(layers: Layers, node: Node) -> tuple[int, Node, Node] | None:
    """Return what a layer reads that is no constant, its writer, and the linear layer that alone it stands behind."""
    x = next((t for t in layers.operands(node) if layers.constant(t) is None), None)
    before = None if x is None else layers.writer(x)
    if x is None or before is None or layers.uses(x) != 1:
        return None
    host = before
    if layers.writer_of(x, "reshape") and layers.shape(x)[-1:] == layers.shape(before.inputs[0])[-1:]:
        inner = layers.writer_of(before.inputs[0], "fully_connected")
        if inner is None or layers.uses(before.inputs[0]) != 1:
            return None
        host = inner
    return (x, before, host) if host.operator in _LINEAR else None


def _into_weights(layers: Layers, node: Node, is_bias: bool) -> None:
    found = _host(layers, node)
    factors = None if found is None else _factors(layers, node, found[0], is_bias)
    if found is None or factors is None:
        return
    x, before, host = found
    if host is not before and node.operator == "sub" and node.inputs[0] != x:
        return  # a number minus what a Reshape gives stays behind it
    weights, biases = (np.asarray(layers.own(host, key), np.float32) for key in ("weights", "biases"))
    scale, shift = (None if f is None else np.broadcast_to(f.reshape(-1), biases.shape) for f in factors)
    if scale is not None:
        weights = scale.reshape(-1, *(1,) * (weights.ndim - 1)) * weights
        biases = biases * scale + np.float32(0)  # the tool adds a shift of 0, which leaves no -0
    if shift is not None:
        biases = biases + shift
    layers.remove(node)
    constants = {"weights": weights, "biases": biases}
    outputs = node.outputs if host is before else host.outputs
    layers.become(host, host.operator, layers.operands(host), host.attributes, constants, outputs)
    if host is not before:
        layers.change(before, outputs=node.outputs)


def fold_arithmetic(layers: Layers) -> None:
    """A product, sum or BatchNorm with constants behind a linear layer, through a Reshape too, goes into its weights.

    Of a linear layer that nothing else reads; w * scale and (b * scale) + shift are float32, as the Parser has them.
    First a sum with one number a channel that stands next to it, then one layer more; what stands further behind stays.
    Source: Compass Parser, middle_passes.py, fuse_bias, rename_single_mul_or_add_or_sub, fuse_linear_bn.
    """
    for is_bias in (True, False):
        next_ones = [n.name for n in layers.nodes_of(*with_traits(Trait.AFFINE), "batch_norm") if _host(layers, n)]
        for name in next_ones:
            _into_weights(layers, layers.node(name), is_bias)
    layers.remove_dead()


def _factors(layers: Layers, node: Node, x: int, is_bias: bool) -> tuple[Singles | None, Singles | None] | None:
    """Return scale and shift of a layer that has constants of one number or one a channel; None for others.

    As a bias a sum with one number a channel; else constants of one axis at most, and not in front of a rectifier.
    """
    if is_bias and node.operator != "add":
        return None
    if node.operator == "batch_norm":
        return np.asarray(layers.own(node, "weights"), np.float32), np.asarray(layers.own(node, "biases"), np.float32)
    data = next((layers.constant(t) for t in node.inputs if t != x), None)
    channels = layers.shape(x)[-1] if layers.shape(x) else 0
    if data is None or data.size not in (1, channels):
        return None
    constant = np.asarray(data, np.float32)
    if is_bias:
        return (None, constant) if constant.size == channels else None
    reader = layers.only_reader(node.outputs[0])
    if constant.ndim > 1 or (reader is not None and reader.attributes.get("method") in RECTIFIERS):
        return None
    if node.operator == "mul":
        return constant, None
    if node.operator == "add":
        return None, constant
    return (None, -constant) if node.inputs[0] == x else (-np.ones(channels, np.float32), constant)


def connect_constants(layers: Layers) -> None:
    """MatMul by a constant of two axes is FullyConnected, of more axes between two Reshapes."""
    for node in layers.nodes_of("mat_mul"):
        data = layers.constant(node.inputs[1])
        if data is None or data.ndim != 2 or layers.constant(node.inputs[0]) is not None:
            continue
        if node.attributes.boolean("trans_a"):
            continue
        weights = np.ascontiguousarray(data if node.attributes.boolean("trans_b") else data.T)
        node = layers.become(
            node,
            "fully_connected",
            node.inputs[:1],
            {"num_output": weights.shape[0], "with_activation": "NONE"},
            {"weights": weights, "biases": np.zeros(weights.shape[0], np.float32)},
        )
        between_reshapes(layers, node)
    layers.remove_dead()


def between_reshapes(layers: Layers, node: Node) -> None:
    """Let a FullyConnected of more than two axes read and write two."""
    shape, wanted = layers.shape(node.inputs[0]), layers.shape(node.outputs[0])
    features = layers.own(node, "weights").shape
    rows = int(np.prod(shape)) // features[1]
    if len(shape) > 2:
        flat = (rows, features[1])
        node = layers.insert_layer_before(node, 0, "reshape", "_post_reshape", flat, shape=flat)
    if len(wanted) > 2:
        layers.insert_layer_after(node, "reshape", "_post_reshape", (rows, features[0]), shape=wanted)


def dilate_convolutions(layers: Layers) -> None:
    """A convolution of the pixels that lie a block apart, between SpaceToBatch and BatchToSpace, is a dilated one.

    Its padding is its own and SpaceToBatch's, without what BatchToSpace crops.
    """
    for node in layers.nodes_of("convolution", "depthwise_conv"):
        apart, back = layers.writer_of(node.inputs[0], "space_to_batch"), layers.only_reader(node.outputs[0])
        if apart is None or back is None or back.operator != "batch_to_space":
            continue
        block, *others = (n.attributes.integer(f"block_size_{axis}") for n in (apart, back) for axis in "xy")
        if others != [block] * 3:
            continue
        keys = {f"dilation_{axis}": node.attributes.integer(f"dilation_{axis}") * block for axis in "xy"}
        for side in ("left", "right", "top", "bottom"):
            added = apart.attributes.integer(f"pad_{side}") - back.attributes.integer(f"crop_{side}")
            keys[f"pad_{side}"] = node.attributes.integer(f"pad_{side}") + added
        inputs = (apart.inputs[0], *node.inputs[1:])
        layers.remove(back)
        layers.replace(
            node, replace(node, inputs=inputs, outputs=back.outputs, attributes=node.attributes.updated(**keys))
        )
    layers.remove_dead()


def fold_pads(layers: Layers) -> None:
    """Zeros around height and width go into the convolution that alone reads them."""
    for node in layers.nodes_of("convolution", "depthwise_conv"):
        before = layers.writer_of(node.inputs[0], "pad")
        if before is None or layers.uses(before.outputs[0]) != 1:
            continue
        pads = np.asarray(before.attributes["pads"])
        if before.attributes["mode"] != "CONSTANT" or before.attributes.real("constant_value") != 0:
            continue
        if pads.shape != (4, 2) or pads[0].any() or pads[3].any() or (pads < 0).any():
            continue
        sides = {"pad_left": pads[2, 0], "pad_right": pads[2, 1], "pad_top": pads[1, 0], "pad_bottom": pads[1, 1]}
        sums = {key: node.attributes.integer(key) + int(value) for key, value in sides.items()}
        layers.replace(node, replace(node, attributes=node.attributes.updated(**sums)))
        layers.set_input(node, 0, before.inputs[0])
    layers.remove_dead()
