"""What goes into a layer: the PAD in front of a convolution or a pool, the activation behind."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from tflq.converters.passes.patterns import Readers, only_reader
from tflq.converters.passes.rewrite import with_attributes, without_nodes
from tflq.errors import GraphError
from tflq.graph import Graph, Node, pruned
from tflq.graph.rewriting import fused_activation
from tflq.interpreter.operands.sliding_windows import window_of

_FILTERS = ("conv_2d", "depthwise_conv_2d")


def fold_pad(graph: Graph) -> Graph:
    """Return the graph with explicit padding (top, bottom, left, right) on convolutions behind a PAD of zeros."""
    return pruned(with_padding(graph, _FILTERS))


def with_padding(graph: Graph, readers: Sequence[str]) -> Graph:
    """As `fold_pad`, for operators that are named; tensors keep their numbers."""
    result, gone = graph.copy(), set[int]()
    for index, node in enumerate(graph.nodes):
        if node.operator not in ("pad", "padv2"):
            continue
        reader = only_reader(result, node.outputs[0])
        amounts = foldable_padding(graph, index)
        if reader is None or amounts is None or result.nodes[reader].operator not in readers:
            continue
        consumer = result.nodes[reader]
        inner = _own_padding(result, consumer)
        total = tuple(a + b for a, b in zip(amounts, inner, strict=True))
        inputs = (result.nodes[index].inputs[0], *consumer.inputs[1:])
        result.nodes[reader] = replace(with_attributes(consumer, explicit_padding=total), inputs=inputs)
        gone.add(index)
    return without_nodes(result, gone)


def foldable_padding(graph: Graph, index: int) -> tuple[int, int, int, int] | None:
    """Return (top, bottom, left, right) of a PAD of zeros on height and width, None for any other."""
    operands = graph.operands(index)
    try:
        amounts = operands.constant(1)
    except GraphError:
        return None
    if graph.nodes[index].operator == "padv2" and not _is_zero(graph, index):
        return None
    if amounts.shape != (4, 2) or amounts[0].any() or amounts[3].any():
        return None
    (top, bottom), (left, right) = amounts[1:3].tolist()
    return int(top), int(bottom), int(left), int(right)


def _is_zero(graph: Graph, index: int) -> bool:
    value = graph.operands(index).input(2)
    zero_point = int(value.affine.zero_point[0]) if value.dtype.is_integer else 0
    return value.data is not None and bool((value.data == zero_point).all())


def _own_padding(graph: Graph, node: Node) -> tuple[int, int, int, int]:
    _, height, width, _ = graph.tensors[node.inputs[0]].shape
    if node.operator in _FILTERS:
        kernel = graph.tensors[node.inputs[1]].shape[1:3]
    else:
        kernel = (node.attributes.integer("filter_height"), node.attributes.integer("filter_width"))
    return window_of(node.attributes, (height, width), (kernel[0], kernel[1])).padding


def fusable_activation(
    graph: Graph, index: int, into: Collection[str], activations: Collection[str], readers: Readers | None = None
) -> int | None:
    """Return the activation that alone reads what node `index` writes and can go into it; None where there is none.

    Args:
        graph: with the node.
        index: of the node.
        into: operators that take an activation and have none yet.
        activations: operators that can go into them.
        readers: `graph.consumers()`, where it is at hand.
    """
    node = graph.nodes[index]
    if node.operator not in into or fused_activation(node) != "none":
        return None
    reader = only_reader(graph, node.outputs[0], readers)
    return reader if reader is not None and graph.nodes[reader].operator in activations else None


def fuse_activations(graph: Graph, into: Collection[str], activations: Collection[str]) -> Graph:
    """Return the graph with each activation of `fusable_activation` in the layer in front of it.

    The layer then writes the activation's tensor; its own tensor is written by nobody.
    """
    result, readers, gone = graph.copy(), graph.consumers(), set[int]()
    for index, node in enumerate(graph.nodes):
        reader = fusable_activation(graph, index, into, activations, readers)
        if reader is not None:
            activation = graph.nodes[reader]
            fused = with_attributes(node, fused_activation_function=activation.operator)
            result.nodes[index] = replace(fused, outputs=activation.outputs)
            gone.add(reader)
    return without_nodes(result, gone)
