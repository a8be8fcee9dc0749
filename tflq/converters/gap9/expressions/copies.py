"""Quantize nodes that NNTool's loader has put in front of readers, and that its matcher then takes into expressions.

Where a softmax or a hard swish, which want a symmetric type, and an operator of an expression read one asymmetric
tensor, the softmax becomes a reader of the expression, which hands the tensor on in the type that softmax wants.
"""

from __future__ import annotations

from tflq.converters.gap9.expressions.groups import CANDIDATES, COPY
from tflq.converters.gap9.operators import FILTERS, MOVES, POOLS, RECTIFIERS, departing, layer_of
from tflq.converters.passes.rewrite import derived_tensor, redirect, with_input, without_nodes
from tflq.graph import Attributes, Graph, Node

_OTHERWISE = "NNTool's matcher may take the Quantize node in front of it into an expression in another way (22)"
_WANT_SYMMETRIC = ("softmax", "hard_swish")


def with_copies(graph: Graph) -> Graph:
    """Return the graph with a COPY in front of these readers, which takes part in groups.

    NNTool may do otherwise where what is moved into the tensor has such a reader, too; the reader says so.
    """
    result = graph.copy()
    result.nodes = []
    readers = graph.consumers()
    for node in graph.nodes:
        source = node.inputs[0] if node.inputs else -1
        beside = any(_is_free(graph.nodes[i]) for i in readers.get(source, ()))
        wants = node.operator in _WANT_SYMMETRIC and "fusion" not in node.attributes
        if not (wants and beside and _is_asymmetric(graph, source)):
            result.nodes.append(node)
            continue
        made = derived_tensor(result, source, f"{node.name}_qin0")
        attributes = Attributes({"layer": layer_of(node)})
        result.nodes.append(Node(COPY, (source,), (made,), attributes, f"{node.name}_qin0"))
        reader = with_input(node, 0, made)
        result.nodes.append(departing(reader, _OTHERWISE) if _asked_above(graph, source) else reader)
    return result


def without_copies(graph: Graph) -> Graph:
    """Return the graph without the copies that no expression has taken.

    Their readers say that NNTool may have taken them.
    """
    left = [index for index, node in enumerate(graph.nodes) if node.operator == COPY]
    alone = {graph.nodes[index].outputs[0] for index in left}
    for index, node in enumerate(graph.nodes):
        if alone.intersection(node.inputs):
            graph.nodes[index] = departing(node, _OTHERWISE)
    for index in left:
        redirect(graph, graph.nodes[index].outputs[0], graph.nodes[index].inputs[0])
    return without_nodes(graph, left)


def _asked_above(graph: Graph, tensor: int) -> bool:
    """Whether a softmax or a hard swish reads what is moved into the tensor."""
    producer = graph.producers().get(tensor)
    if producer is None or graph.nodes[producer].operator not in MOVES:
        return False
    moved = graph.nodes[producer].inputs
    readers = (graph.nodes[i].operator for t in moved for i in graph.consumers().get(t, ()))
    return not set(_WANT_SYMMETRIC).isdisjoint(readers) or any(_asked_above(graph, t) for t in moved)


def _is_free(node: Node) -> bool:
    return node.operator in CANDIDATES and "fusion" not in node.attributes


def _is_asymmetric(graph: Graph, tensor: int) -> bool:
    """Whether the tensor's own type has a zero point: of a filter, with its ReLU or pool, and of an input from 0 on."""
    stated = graph.tensors[tensor].range
    producer = graph.producers().get(tensor)
    if producer is None:
        return stated is not None and bool(stated.minimum[0] == 0)
    node = graph.nodes[producer]
    if node.operator in FILTERS:
        return True
    return node.operator in (*POOLS, *RECTIFIERS, *MOVES) and _is_asymmetric(graph, node.inputs[0])
