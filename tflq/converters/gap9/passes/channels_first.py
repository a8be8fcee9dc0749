"""Maps that NNTool holds channels first where a fully connected layer flattens them (docs/gap9.md, 17.15)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tflq.converters.gap9.operators import ACTIVATIONS, FILTERS, GLOBAL_POOLS, POOLS, RESIZES, departing, layer_of
from tflq.converters.gap9.options import LayerOptions
from tflq.converters.gap9.passes.columns import permute
from tflq.converters.gap9.passes.global_pools import reduces_image
from tflq.converters.passes.patterns import TO_FIRST, joined
from tflq.converters.passes.rewrite import constant, derived_tensor
from tflq.graph import Attributes, Graph, Node
from tflq.graph.operators import CONVOLUTIONS

_DENSE, _FLATTENING = "fully_connected", ("reshape", "squeeze")
_JOINED = ("add", "quantize", *ACTIVATIONS)
_TURNED = "NNTool permutes its columns: what it flattens stands channels first for an operator beside it (17.15)"


def channels_first(graph: Graph) -> dict[str, bool]:
    """Return name of a fully connected layer -> whether NNTool takes the map's shape for [W, C, H].

    It names those whose map [1, H, W, C] NNTool holds as [C, H, W]: of a resize, through what changes single elements
    and sums of such; of a filter or pool that else only means over height and width and graph outputs read. A
    convolution, pool or mean beside the layer behind a resize, or a mean beside it behind a graph input, turns it.

    Args:
        graph: typed, with Quantize nodes.
    """
    found = {}
    for node in graph.nodes:
        flat = _flattened(graph, node) if node.operator == _DENSE else None
        if flat is not None and (turned := _is_turned(graph, graph.nodes[flat].inputs[0])) is not None:
            found[node.name] = turned
    return found


def stand_channels_first(graph: Graph, options: Mapping[str, LayerOptions], found: Mapping[str, bool]) -> Graph:
    """Return the graph with [N, H, W, C] -> [N, C, H, W] transposes in front of these layers, columns in that order.

    With numerics=nntool they are in the order that NNTool's wrong shape gives.

    Args:
        graph: typed, with Quantize nodes.
        options: of each layer.
        found: what `channels_first` says of it.
    """
    result, moved = graph.copy(), set[int]()
    for index, node in enumerate(graph.nodes):
        if node.name not in found:
            continue
        flat = _flattened(graph, node)
        assert flat is not None
        _, height, width, channels = graph.tensors[graph.nodes[flat].inputs[0]].shape
        as_vendor = found[node.name] and options[layer_of(node)].numerics == "nntool"
        order = np.arange(height * width * channels)
        shape = (width, channels, height) if as_vendor else (height, width, channels)
        permute(result, index, order.reshape(shape).transpose(2, 0, 1).reshape(-1))
        if found[node.name]:
            result.nodes[index] = departing(result.nodes[index], _TURNED)
        moved.add(flat)
    result.nodes = [made for i, node in enumerate(result.nodes) for made in _in_front(result, node, i in moved)]
    return result


def _in_front(graph: Graph, node: Node, moves: bool) -> list[Node]:
    if not moves:
        return [node]
    name = f"{node.name}_trans_in0"
    n, h, w, c = graph.tensors[node.inputs[0]].shape
    turned = derived_tensor(graph, node.inputs[0], name)
    graph.tensors[turned] = replace(graph.tensors[turned], shape=(n, c, h, w))
    order = graph.add_tensor(constant(f"{name}_order", np.array(TO_FIRST, np.int32)))
    attributes = Attributes({"layer": layer_of(node), "engine": "", "engine_reason": "moves data: channels first"})
    first = Node("transpose", (node.inputs[0], order), (turned,), attributes, name)
    return [first, replace(node, inputs=(turned, *node.inputs[1:]))]


def _flattened(graph: Graph, node: Node) -> int | None:
    """Return the operator that flattens a map [1, H, W, C] for the layer, whose readers are all such layers."""
    tensor, producers = node.inputs[0], graph.producers()
    while (index := producers.get(tensor)) is not None and graph.nodes[index].operator == "quantize":
        tensor = graph.nodes[index].inputs[0]
    if index is None or not _is_flattening(graph, index):
        return None
    shape = graph.tensors[graph.nodes[index].inputs[0]].shape
    return index if sum(n > 1 for n in shape) > 1 else None


def _is_flattening(graph: Graph, index: int) -> bool:
    node = graph.nodes[index]
    if node.operator not in _FLATTENING or node.outputs[0] in graph.outputs:
        return False
    before, after = graph.tensors[node.inputs[0]].shape, graph.tensors[node.outputs[0]].shape
    return len(before) == 4 and before[0] == 1 and len(after) == 2 and after[0] == 1 and _goes_to_dense(graph, index)


def _goes_to_dense(graph: Graph, index: int) -> bool:
    readers = [graph.nodes[i] for t in graph.nodes[index].outputs for i in graph.consumers().get(t, ())]
    followed = (n.operator == _DENSE or (n.operator == "quantize" and _all_dense(graph, n)) for n in readers)
    return bool(readers) and all(followed)


def _all_dense(graph: Graph, node: Node) -> bool:
    return all(graph.nodes[i].operator == _DENSE for i in graph.consumers().get(node.outputs[0], ()))


def _is_turned(graph: Graph, tensor: int) -> bool | None:
    """Whether NNTool turns the map; None where it holds it channels last, or that is not known."""
    writer = graph.producers().get(tensor)
    if writer is not None and _is_of_filter(graph, graph.nodes[writer]):
        kinds = _readers(graph, tensor)
        return False if "mean" in kinds and kinds <= {"mean", "dense"} else None
    sources, kinds = _joined(graph, tensor)
    if "other" in kinds or not sources:
        return None
    if sources <= set(RESIZES):
        return bool(kinds & {"mean", "ordered"})
    return True if sources == {"input"} and "mean" in kinds else None


def _joined(graph: Graph, tensor: int) -> tuple[set[str], set[str]]:
    """What all that is joined with a tensor element by element comes from, and what kinds of operators read it."""
    producers, sources, kinds = graph.producers(), set[str](), set[str]()
    for t in joined(graph, tensor, _JOINED):
        kinds |= _readers(graph, t)
        writer = graph.nodes[producers[t]].operator if t in producers else "input"
        sources |= {writer} - {*_JOINED}
    return sources, kinds


def _is_of_filter(graph: Graph, node: Node) -> bool:
    fused = node.attributes.text("fusion", "")
    first = next((n for n in graph.nodes if fused and n.attributes.text("fusion", "") == fused), node)
    return first.operator in (*FILTERS, *POOLS)


def _readers(graph: Graph, tensor: int) -> set[str]:
    """What reads a tensor, by kind; what is element-wise is none."""
    found = set()
    for index in graph.consumers().get(tensor, ()):
        node = graph.nodes[index]
        if node.operator in GLOBAL_POOLS and reduces_image(graph, node):
            found.add("mean")
        elif _is_flattening(graph, index):
            found.add("dense")
        elif node.operator in (*CONVOLUTIONS, *POOLS):
            found.add("ordered")
        elif node.operator not in _JOINED:
            found.add("other")
    return found
