"""Reshape, Transpose and what becomes of them; means that are pools; slices."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tflq.converters.aipu.passes.layers import Layers
from tflq.converters.aipu.passes.transposes import perm_of
from tflq.converters.aipu.stated_ranges import is_stated
from tflq.graph import Node
from tflq.graph.attributes import Attribute
from tflq.graph.operators import Trait, has_trait, with_traits
from tflq.graph.rewriting import Value, find_matches, op

X = Value("x")
_SAME_SHAPE = with_traits(Trait.UNARY) | {"cast", "eltwise", "logical"}
"""Layers with the shape of their operands."""

_OF_ONE = ("SUM", "MEAN", "MIN", "MAX", "PROD")
"""Methods that leave one number what it is."""


def recognize_channel_shuffles(layers: Layers) -> None:
    """Reshape to groups, Transpose of the last two axes, Reshape back: ChannelShuffle, named as the last."""
    pattern = op("reshape", op("transpose", op("reshape", X, name="apart"), name="turn"))
    for place in find_matches(layers, pattern):
        node, x = place.root, place.values["x"]
        shape, apart = layers.shape(x), layers.shape(place.nodes["apart"].outputs[0])
        perm, rank = perm_of(place.nodes["turn"]), len(apart)
        turned = (*range(rank - 2), rank - 1, rank - 2)
        is_alike = layers.shape(node.outputs[0]) == shape and len(shape) in (rank, rank - 1)
        if rank > 2 and perm == turned and is_alike and apart[-1] * apart[-2] == shape[-1]:
            layers.become(node, "channel_shuffle", (x,), {"group": apart[-2], "splits": 1})
    layers.remove_dead()


def slice_single_indices(layers: Layers) -> None:
    """Gather of one index is Slice; where the axis goes, a Reshape follows."""
    for node in layers.nodes_of("gather"):
        index = layers.constant(node.inputs[1])
        if index is None or index.ndim > 1 or index.size != 1 or layers.constant(node.inputs[0]) is not None:
            continue
        shape, axis = layers.shape(node.inputs[0]), node.attributes.integer("axis")
        place = int(index.item()) % shape[axis]
        begin = tuple(place if a == axis else 0 for a in range(len(shape)))
        end = tuple(place + 1 if a == axis else n for a, n in enumerate(shape))
        if index.ndim == 0:
            single = tuple(1 if a == axis else n for a, n in enumerate(shape))
            node = layers.insert_layer_after(
                node, "reshape", "_post_reshape", single, shape=layers.shape(node.outputs[0])
            )
        keys: dict[str, Attribute] = {"begin": begin, "end": end, "strides": (1,) * len(shape)}
        layers.become(node, "slice", node.inputs[:1], keys)
    layers.remove_dead()


def lift_arithmetic(layers: Layers) -> None:
    """Sums and products with constants go in front of a Reshape or Transpose that nothing else reads."""
    while sum(_lifted(layers, node) for node in layers.nodes if node in layers):
        layers.remove_dead()


def _lifted(layers: Layers, name_of: Node) -> bool:
    node = layers.node(name_of.name)
    if not has_trait(node, Trait.ARITHMETIC):
        return False
    for place in (0, 1):
        constant = layers.constant(node.inputs[1 - place])
        before = layers.writer_of(node.inputs[place], "reshape", "transpose")
        if constant is None or before is None:
            continue
        if layers.uses(before.outputs[0]) != 1 or (place == 1 and not has_trait(node, Trait.COMMUTATIVE)):
            continue
        source, shape = before.inputs[0], layers.shape(before.inputs[0])
        wide = layers.shape(before.outputs[0])
        if layers.constant(source) is not None or layers.shape(node.outputs[0]) != wide:
            continue
        whole = np.broadcast_to(constant, wide)
        moved = whole.reshape(shape) if before.operator == "reshape" else whole.transpose(np.argsort(perm_of(before)))
        keeps = _spreads(constant.shape, shape) and np.array_equal(np.broadcast_to(constant, shape), moved)
        new = constant if keeps else moved
        is_uniform = new.size > 1 and bool(np.all(new == new.reshape(-1)[0]))
        if is_uniform:
            new = new.reshape(-1)[0].reshape(())
        inputs = list(node.inputs)
        inputs[place] = source
        if not keeps or is_uniform:
            writer = layers.writer(node.inputs[1 - place])
            assert writer is not None
            inputs[1 - place] = layers.add_constant_layer(f"{writer.name}_new_const", np.asarray(new))
        top = layers.reshaped(node.outputs[0], shape)
        layers.take_range(top, source)  # the Parser copies the edge before the Reshape
        _exchange(layers, before, node, inputs, top)
        return True
    return False


def _spreads(small: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether values of a shape can be repeated to another one."""
    pairs = zip(small[::-1], shape[::-1], strict=False)
    return len(small) <= len(shape) and all(one in (1, many) for one, many in pairs)


def lift_rectifiers(layers: Layers) -> None:
    """RELU and LEAKYRELU behind the Reshape of a linear layer go in front of it."""
    linear = ("fully_connected", "convolution", "depthwise_conv", "conv_transpose")
    for node in layers.nodes_of("activation"):
        before = layers.writer_of(node.inputs[0], "reshape")
        if before is None or node.attributes["method"] not in ("RELU", "LEAKYRELU"):
            continue
        if layers.writer_of(before.inputs[0], *linear) is not None and layers.uses(before.outputs[0]) == 1:
            _swap(layers, before, node)


def _swap(layers: Layers, before: Node, node: Node) -> None:
    """Let a layer of one input, which keeps its shape, stand in front of the Reshape that it stood behind."""
    source = before.inputs[0]
    top = layers.reshaped(node.outputs[0], layers.shape(source))
    _exchange(layers, before, node, (source, *node.inputs[1:]), top)


def _exchange(layers: Layers, before: Node, node: Node, inputs: Iterable[int], top: int) -> None:
    """Let a layer read other tensors and write `top`, and the layer before it write the layer's result."""
    layers.change(node, inputs=inputs, outputs=(top,))
    layers.change(before, inputs=(top,), outputs=node.outputs)


def sink_reshapes(layers: Layers) -> None:
    """A Reshape in front of an elementwise layer that is no output goes behind it, of several layers behind the first.

    Of two operands both must be such Reshapes of one shape, or one a constant. Slopes and limits are operands to the
    Parser's pass, which leaves those layers where they are (back_passes.py, sink_single_reshape).
    """
    next_ones = [node for node in layers.nodes if any(layers.writer_of(t, "reshape") for t in layers.operands(node))]
    for node in next_ones:
        if node not in layers or node.operator not in _SAME_SHAPE or layers.is_output(node.outputs[0]):
            continue
        node = layers.node(node.name)
        method = node.attributes.get("method")
        if method == "PRELU" or (method in ("RELU6", "CLIP") and node.name not in layers.limits_of_pairs):
            continue
        operands = [t for t in layers.operands(node) if t is not None]
        for place, t in enumerate(operands):
            before = layers.writer_of(t, "reshape")
            if before is not None and layers.uses(t) == 1 and before.name not in layers.shapeless:
                if len(operands) == 1:
                    _swap(layers, before, node)
                elif node.operator == "eltwise":
                    _sink_pair(layers, node, place, before)
                break
    layers.remove_dead()


def _sink_pair(layers: Layers, node: Node, place: int, before: Node) -> None:
    other, shape = node.inputs[1 - place], layers.shape(before.inputs[0])
    partner, constant = layers.writer(other), layers.constant(other)
    if constant is not None:
        if partner is not None and partner.name.startswith(f"{node.name}_pre_tile"):
            return  # still a Tile to the Parser's pass
        source = layers.add_constant_layer(f"{node.name}_new_const", constant.reshape(shape))
    elif partner is not None and partner is layers.writer_of(other, "reshape") and layers.uses(other) == 1:
        if layers.shape(partner.inputs[0]) != shape or partner.name in layers.shapeless:
            return
        source = partner.inputs[0]
    else:
        return
    inputs = (before.inputs[0], source) if place == 0 else (source, before.inputs[0])
    top = layers.reshaped(node.outputs[0], shape)
    _exchange(layers, before, node, inputs, top)


def remove_dequantize(layers: Layers) -> None:
    """Remove DEQUANTIZE: the numbers are real already."""
    for node in layers.nodes_of("dequantize"):
        layers.bypass(node)


def remove_quantize(layers: Layers) -> None:
    """Remove QUANTIZE, an Identity; its operand takes its range."""
    for node in layers.nodes_of("quantize"):
        layers.bypass(node)


def remove_identities(layers: Layers) -> None:
    """Layers that change nothing go."""
    for node in layers.nodes:
        if len(layers.operands(node)) != 1 or len(node.outputs) != 1 or not _changes_nothing(layers, node):
            continue
        if node.name in layers.shapeless:
            continue
        if layers.writer(node.inputs[0]) is not None:
            layers.bypass(node)
    layers.remove_dead()


def _changes_nothing(layers: Layers, node: Node) -> bool:
    old, new = layers.shape(node.inputs[0]), layers.shape(node.outputs[0])
    if node.operator in ("reshape", "tile", "concat", "resize", "split"):
        return old == new
    if node.operator == "transpose":
        return all(old[a] == 1 for a, moved in enumerate(perm_of(node)) if moved != a) or set(old) == {1}
    if node.operator == "pad":
        return not np.any(np.asarray(node.attributes["pads"]))
    if node.operator == "slice":
        return old == new and all(s == 1 for s in np.asarray(node.attributes["strides"]).reshape(-1))
    if node.operator == "cast":
        return layers.tensors[node.inputs[0]].dtype == layers.tensors[node.outputs[0]].dtype
    if node.operator == "pooling":
        value = node.attributes.integer
        return old == new and value("kernel_x") == value("kernel_y") == value("stride_x") == value("stride_y") == 1
    return False


def remove_single_reductions(layers: Layers) -> None:
    """A Reduce that is no output goes where all its axes have one element; of whatever method has no other result."""
    for node in layers.nodes_of("reduce"):
        if node.attributes["method"] not in _OF_ONE or layers.is_output(node.outputs[0]):
            continue
        shape, axes = layers.shape(node.inputs[0]), np.asarray(node.attributes["axis"]).reshape(-1)
        if layers.writer(node.inputs[0]) is not None and all(shape[int(a)] == 1 for a in axes):
            layers.bypass(node)
    layers.remove_dead()


def merge_reshapes(layers: Layers) -> None:
    """Of two Reshapes, the first read by the second alone, the first goes; both where the shape comes back."""
    changed = True
    while changed:
        changed = False
        for node in layers.nodes_of("reshape"):
            before = layers.writer_of(node.inputs[0], "reshape") if node in layers else None
            if before is None or layers.uses(before.outputs[0]) != 1:
                continue
            source = before.inputs[0]
            layers.remove(before)
            layers.shapeless.update({node.name} if before.name in layers.shapeless else ())
            if is_stated(layers.tensors[before.outputs[0]]):
                layers.take_range(source, before.outputs[0])
            if layers.shape(source) == layers.shape(node.outputs[0]) and before.name not in layers.shapeless:
                layers.remove(node)
                layers.redirect(node.outputs[0], source)
                layers.take_range(source, node.outputs[0])
            else:
                layers.change(node, inputs=(source,))
            changed = True
        layers.remove_dead()
