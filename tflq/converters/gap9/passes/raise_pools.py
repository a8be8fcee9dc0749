"""A max pool moves in front of the ReLUs and concatenations that separate it from its convolution."""

from __future__ import annotations

from dataclasses import replace

from tflq.converters.gap9.rewrite import RECTIFIERS, derived_tensor, only_reader, sorted_nodes, with_attributes
from tflq.graph import Graph, Node

_CONVOLUTIONS = ("conv_2d", "depthwise_conv_2d")


def raise_pools(graph: Graph) -> Graph:
    """Return the graph in which conv, ReLU, max pool runs as conv, max pool, ReLU.

    Maxima commute with ReLU and with concatenation along channels, where the pool enters every branch. Done only
    where nobody else reads what stands between.
    """
    result = graph.copy()
    for node in graph.nodes:
        if node.operator != "max_pool_2d":
            continue
        while True:
            pool = next(i for i, n in enumerate(result.nodes) if n.name == node.name)
            producer = result.producers().get(result.nodes[pool].inputs[0])
            if producer is None or not _leads_to_convolution(result, producer):
                break
            if result.nodes[producer].operator in RECTIFIERS:
                _swap_with_rectifier(result, producer, pool)
            elif result.nodes[producer].operator == "concatenation":
                _enter_branches(result, producer, pool)
                break
            else:
                break
    constants = {i for i, t in enumerate(result.tensors) if t.is_constant}
    result.nodes = sorted_nodes(result.nodes, constants | set(result.inputs))
    return result


def _leads_to_convolution(graph: Graph, index: int) -> bool:
    """Whether everything behind a node, through ReLUs and concatenations with one reader each, is convolutions."""
    node = graph.nodes[index]
    if only_reader(graph, node.outputs[0]) is None:
        return False
    if node.operator in _CONVOLUTIONS:
        return True
    if node.operator not in (*RECTIFIERS, "concatenation"):
        return False
    if node.operator == "concatenation" and node.attributes.integer("axis") not in (-1, 3):
        return False
    producers = graph.producers()
    return all(t in producers and _leads_to_convolution(graph, producers[t]) for t in node.inputs)


def _swap_with_rectifier(graph: Graph, rectifier: int, pool: int) -> None:
    relu, pooling = graph.nodes[rectifier], graph.nodes[pool]
    shape = graph.tensors[pooling.outputs[0]].shape
    inner = derived_tensor(graph, relu.inputs[0], pooling.name)
    graph.tensors[inner] = replace(graph.tensors[inner], shape=shape)
    last = replace(graph.tensors[pooling.outputs[0]], range=graph.tensors[relu.outputs[0]].range)
    graph.tensors[pooling.outputs[0]] = last
    graph.nodes[rectifier] = replace(pooling, inputs=relu.inputs, outputs=(inner,))
    graph.nodes[pool] = replace(relu, inputs=(inner,), outputs=pooling.outputs)


def _enter_branches(graph: Graph, concatenation: int, pool: int) -> None:
    joined, pooling = graph.nodes[concatenation], graph.nodes[pool]
    height, width = graph.tensors[pooling.outputs[0]].shape[1:3]
    branches: list[int] = []
    copies: list[Node] = []
    for number, tensor in enumerate(joined.inputs):
        name = f"{pooling.name}_{number}"
        branch = derived_tensor(graph, tensor, name)
        batch, _, _, channels = graph.tensors[tensor].shape
        graph.tensors[branch] = replace(graph.tensors[branch], shape=(batch, height, width, channels))
        branches.append(branch)
        copy = with_attributes(pooling, layer=pooling.name)
        copies.append(replace(copy, inputs=(tensor,), outputs=(branch,), name=name))
    moved = replace(joined, inputs=tuple(branches), outputs=pooling.outputs)
    graph.nodes[pool : pool + 1] = [moved]
    graph.nodes[concatenation : concatenation + 1] = copies
    for copy in copies:
        _pass_rectifiers(graph, copy.name)


def _pass_rectifiers(graph: Graph, name: str) -> None:
    while True:
        pool = next(i for i, n in enumerate(graph.nodes) if n.name == name)
        producer = graph.producers().get(graph.nodes[pool].inputs[0])
        if producer is None or graph.nodes[producer].operator not in RECTIFIERS:
            return
        _swap_with_rectifier(graph, producer, pool)
