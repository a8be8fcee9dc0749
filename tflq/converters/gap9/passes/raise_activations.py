"""An activation moves up through reshapes, transposes and concatenations to the layer that it belongs to."""

from __future__ import annotations

from dataclasses import replace

from tflq.converters.gap9.rewrite import ACTIVATIONS, FILTERS, POOLS, derived_tensor, only_reader, with_attributes
from tflq.graph import Graph, Node

_THROUGH = ("reshape", "squeeze", "expand_dims", "transpose", "concatenation")
_HOSTS = (*FILTERS, *POOLS, "add", "mul")


def raise_activations(graph: Graph) -> Graph:
    """Return the graph in which layer, move, activation runs as layer, activation, move.

    Through a concatenation the activation enters every branch, if every branch ends in a filter, pool, Add or Mul.
    Done only where nobody else reads what stands between.
    """
    result = graph.copy()
    for node in graph.nodes:
        if node.operator in ACTIVATIONS and _can_rise(result, node.inputs[0]):
            _raise(result, node)
    return result


def _can_rise(graph: Graph, tensor: int) -> bool:
    """Whether a tensor is written by a move, and everything behind it leads to layers that take an activation."""
    producer = graph.producers().get(tensor)
    return producer is not None and graph.nodes[producer].operator in _THROUGH and _leads_to_hosts(graph, tensor)


def _leads_to_hosts(graph: Graph, tensor: int) -> bool:
    producer = graph.producers().get(tensor)
    if producer is None or only_reader(graph, tensor) is None:
        return False
    node = graph.nodes[producer]
    if node.operator in _HOSTS:
        return True
    branches = node.inputs if node.operator == "concatenation" else node.inputs[:1]
    return node.operator in _THROUGH and all(_leads_to_hosts(graph, t) for t in branches)


def _raise(graph: Graph, activation: Node) -> None:
    """Take the activation off the end and put it behind each host."""
    inner, outer = activation.inputs[0], activation.outputs[0]
    hosts = _hosts(graph, inner)
    index = next(i for i, n in enumerate(graph.nodes) if n.name == activation.name)
    del graph.nodes[index]
    last = graph.producers()[inner]
    graph.nodes[last] = replace(graph.nodes[last], outputs=(outer,))
    for number, tensor in enumerate(hosts):
        name = activation.name if len(hosts) == 1 else f"{activation.name}_{number}"
        written = derived_tensor(graph, outer, name)
        graph.tensors[written] = replace(graph.tensors[written], shape=graph.tensors[tensor].shape)
        reader = graph.consumers()[tensor][0]
        moved = tuple(written if t == tensor else t for t in graph.nodes[reader].inputs)
        graph.nodes[reader] = replace(graph.nodes[reader], inputs=moved)
        copy = with_attributes(activation, layer=activation.name)
        graph.nodes.insert(reader, replace(copy, inputs=(tensor,), outputs=(written,), name=name))
    _spread_range(graph, outer)


def _hosts(graph: Graph, tensor: int) -> list[int]:
    """Return the tensors that hosts write, in order of the branches."""
    node = graph.nodes[graph.producers()[tensor]]
    if node.operator in _HOSTS:
        return [tensor]
    branches = node.inputs if node.operator == "concatenation" else node.inputs[:1]
    return [host for branch in branches for host in _hosts(graph, branch)]


def _spread_range(graph: Graph, tensor: int) -> None:
    """Give the moves between the activation and `tensor` the range behind the activation."""
    producer = graph.producers().get(tensor)
    if producer is None or graph.nodes[producer].operator not in _THROUGH:
        return
    node = graph.nodes[producer]
    for t in node.inputs if node.operator == "concatenation" else node.inputs[:1]:
        graph.tensors[t] = replace(graph.tensors[t], range=graph.tensors[tensor].range)
        _spread_range(graph, t)
