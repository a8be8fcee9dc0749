"""Pools and activations move up to the layer that they belong to, in front of what stands between."""

from __future__ import annotations

from dataclasses import replace

from tflq.converters.gap9.operators import ACTIVATIONS, FILTERS, POOLS, RECTIFIERS, layer_of
from tflq.converters.passes.patterns import branches, leads_to
from tflq.converters.passes.rewrite import derived_tensor, redirect, sorted_nodes, with_attributes
from tflq.graph import Graph, Node, pruned
from tflq.graph.operators import CONVOLUTIONS, RESHAPES

_MOVES = (*RESHAPES, "transpose", "concatenation")
_HOSTS = (*FILTERS, *POOLS, "add", "mul")


def raise_pools(graph: Graph) -> Graph:
    """Return the graph in which conv, ReLU, max pool runs as conv, max pool, ReLU.

    Maxima commute with ReLU and with concatenation along channels, where the pool enters every branch. Done only
    where nobody else reads what stands between.
    """
    result = graph.copy()
    for node in graph.nodes:
        if node.operator == "max_pool_2d":
            _raise_pool(result, node.name)
    constants = {i for i, t in enumerate(result.tensors) if t.is_constant}
    result.nodes = sorted_nodes(result.nodes, constants | set(result.inputs))
    return result


def raise_activations(graph: Graph) -> Graph:
    """Return the graph in which layer, move, activation runs as layer, activation, move.

    Through a concatenation the activation enters every branch, if every branch ends in a filter, pool, Add or Mul.
    Done only where nobody else reads what stands between.
    """
    result = graph.copy()
    for node in graph.nodes:
        if node.operator in ACTIVATIONS and _is_behind_moves(result, node.inputs[0]):
            _raise_activation(result, node)
    return result


def _raise_pool(graph: Graph, name: str) -> None:
    """Move the pool of a name up through ReLUs, and into the branches of the first concatenation."""
    while True:
        pool = _place(graph, name)
        producer = graph.producers().get(graph.nodes[pool].inputs[0])
        if producer is None or not leads_to(graph, graph.nodes[pool].inputs[0], CONVOLUTIONS, _commutes_with_maxima):
            return
        if graph.nodes[producer].operator == "concatenation":
            for branch in _enter_branches(graph, producer, pool):
                _pass_rectifiers(graph, branch)
            return
        if graph.nodes[producer].operator not in RECTIFIERS:
            return
        _swap_with_rectifier(graph, producer, pool)


def _commutes_with_maxima(node: Node) -> bool:
    if node.operator == "concatenation":
        return node.attributes.integer("axis") in (-1, 3)
    return node.operator in RECTIFIERS


def _pass_rectifiers(graph: Graph, name: str) -> None:
    while True:
        pool = _place(graph, name)
        producer = graph.producers().get(graph.nodes[pool].inputs[0])
        if producer is None or graph.nodes[producer].operator not in RECTIFIERS:
            return
        _swap_with_rectifier(graph, producer, pool)


def _swap_with_rectifier(graph: Graph, rectifier: int, pool: int) -> None:
    relu, pooling = graph.nodes[rectifier], graph.nodes[pool]
    shape = graph.tensors[pooling.outputs[0]].shape
    inner = derived_tensor(graph, relu.inputs[0], pooling.name)
    graph.tensors[inner] = replace(graph.tensors[inner], shape=shape)
    last = replace(graph.tensors[pooling.outputs[0]], range=graph.tensors[relu.outputs[0]].range)
    graph.tensors[pooling.outputs[0]] = last
    graph.nodes[rectifier] = replace(pooling, inputs=relu.inputs, outputs=(inner,))
    graph.nodes[pool] = replace(relu, inputs=(inner,), outputs=pooling.outputs)


def _enter_branches(graph: Graph, concatenation: int, pool: int) -> list[str]:
    """Put a copy of the pool into each branch of a concatenation; return their names."""
    joined, pooling = graph.nodes[concatenation], graph.nodes[pool]
    height, width = graph.tensors[pooling.outputs[0]].shape[1:3]
    inputs: list[int] = []
    copies: list[Node] = []
    for number, tensor in enumerate(joined.inputs):
        name = f"{pooling.name}_{number}" if number else pooling.name
        branch = derived_tensor(graph, tensor, name)
        batch, _, _, channels = graph.tensors[tensor].shape
        graph.tensors[branch] = replace(graph.tensors[branch], shape=(batch, height, width, channels))
        inputs.append(branch)
        copy = with_attributes(pooling, layer=layer_of(pooling))
        copies.append(replace(copy, inputs=(tensor,), outputs=(branch,), name=name))
    graph.nodes[pool : pool + 1] = [replace(joined, inputs=tuple(inputs), outputs=pooling.outputs)]
    graph.nodes[concatenation : concatenation + 1] = copies
    return [copy.name for copy in copies]


def _is_behind_moves(graph: Graph, tensor: int) -> bool:
    """Whether a tensor is written by a move, and everything behind it leads to layers that take an activation."""
    producer = graph.producers().get(tensor)
    is_moved = producer is not None and _moves(graph.nodes[producer])
    return is_moved and leads_to(graph, tensor, _HOSTS, _moves)


def _moves(node: Node) -> bool:
    return node.operator in _MOVES


def _raise_activation(graph: Graph, activation: Node) -> None:
    """Take the activation off the end and put it behind each host."""
    inner, outer = activation.inputs[0], activation.outputs[0]
    hosts = _hosts(graph, inner)
    del graph.nodes[_place(graph, activation.name)]
    last = graph.producers()[inner]
    graph.nodes[last] = replace(graph.nodes[last], outputs=(outer,))
    for number, tensor in enumerate(hosts):
        name = activation.name if len(hosts) == 1 else f"{activation.name}_{number}"
        written = derived_tensor(graph, outer, name)
        graph.tensors[written] = replace(graph.tensors[written], shape=graph.tensors[tensor].shape)
        reader = graph.consumers()[tensor][0]
        moved = tuple(written if t == tensor else t for t in graph.nodes[reader].inputs)
        graph.nodes[reader] = replace(graph.nodes[reader], inputs=moved)
        copy = with_attributes(activation, layer=layer_of(activation))
        graph.nodes.insert(reader, replace(copy, inputs=(tensor,), outputs=(written,), name=name))
    _spread_range(graph, outer)


def _hosts(graph: Graph, tensor: int) -> list[int]:
    """Return the tensors that hosts write, in order of the branches."""
    node = graph.nodes[graph.producers()[tensor]]
    if node.operator in _HOSTS:
        return [tensor]
    return [host for branch in branches(node) for host in _hosts(graph, branch)]


def _spread_range(graph: Graph, tensor: int) -> None:
    """Give the moves between the activation and `tensor` the range behind the activation."""
    producer = graph.producers().get(tensor)
    if producer is None or not _moves(graph.nodes[producer]):
        return
    for t in branches(graph.nodes[producer]):
        graph.tensors[t] = replace(graph.tensors[t], range=graph.tensors[tensor].range)
        _spread_range(graph, t)


def _place(graph: Graph, name: str) -> int:
    return next(i for i, n in enumerate(graph.nodes) if n.name == name)


def remove_undone_reshapes(graph: Graph) -> Graph:
    """Return the graph without pairs of reshapes whose first reads the shape that the second writes."""
    result = graph.copy()
    reshapes = {node.outputs[0]: i for i, node in enumerate(graph.nodes) if node.operator in RESHAPES}
    for written, index in reshapes.items():
        first = reshapes.get(result.nodes[index].inputs[0])
        if first is None or written in graph.outputs:
            continue
        origin = result.nodes[first].inputs[0]
        if graph.tensors[origin].shape == graph.tensors[written].shape:
            redirect(result, written, origin)
    return pruned(result)
