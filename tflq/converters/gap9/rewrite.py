"""Small steps that rewriting passes share. All take a graph whose lists may change (a copy)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tflq.graph import ABSENT, Attribute, Graph, Node, Tensor

FILTERS = ("conv_2d", "depthwise_conv_2d", "fully_connected")
POOLS = ("max_pool_2d", "average_pool_2d")
RECTIFIERS = ("relu", "relu6")
CURVES = ("leaky_relu", "hard_swish", "logistic", "tanh")
"""Activations in front of which a filter writes 32 bits."""
ACTIVATIONS = (*RECTIFIERS, *CURVES)
GLOBAL_POOLS = ("mean", "sum", "reduce_max")
MOVES = (
    "batch_to_space_nd",
    "concatenation",
    "expand_dims",
    "gather",
    "pack",
    "pad",
    "reshape",
    "resize_nearest_neighbor",
    "reverse_v2",
    "slice",
    "space_to_batch_nd",
    "split",
    "split_v",
    "squeeze",
    "strided_slice",
    "tile",
    "transpose",
    "unpack",
)
"""Operators that move codes: inputs and outputs have one type."""


def layer_of(node: Node) -> str:
    """Return the name of the file's operator that a node comes from: its own, or what made it."""
    return node.attributes.text("layer", node.name)


def with_attributes(node: Node, **changes: Attribute) -> Node:
    """Return the node with some attributes replaced or added."""
    return replace(node, attributes=node.attributes.updated(**changes))


def redirect(graph: Graph, old: int, new: int) -> None:
    """Let every reader of tensor `old`, and the graph's outputs, read `new`."""
    for i, node in enumerate(graph.nodes):
        if old in node.inputs:
            graph.nodes[i] = replace(node, inputs=tuple(new if t == old else t for t in node.inputs))
    graph.outputs = tuple(new if t == old else t for t in graph.outputs)


def only_reader(graph: Graph, tensor: int) -> int | None:
    """Return the node that alone reads a tensor, once; None where several read it, or it is an output."""
    readers = graph.consumers().get(tensor, [])
    return readers[0] if len(readers) == 1 and tensor not in graph.outputs else None


def derived_tensor(graph: Graph, like: int, name: str) -> int:
    """Add a computed tensor that is like another one, under a new name."""
    return graph.add_tensor(replace(graph.tensors[like], name=name, data=None))


def computed_inputs(graph: Graph, node: Node) -> list[tuple[int, int]]:
    """Return (position, tensor) of the inputs that are neither absent nor constant."""
    return [(p, t) for p, t in enumerate(node.inputs) if t != ABSENT and not graph.tensors[t].is_constant]


def sorted_nodes(nodes: Sequence[Node], known: set[int]) -> list[Node]:
    """Return nodes in an order in which each reads what is known or written before; equal ones keep their order."""
    ready: list[Node] = []
    waiting, written = list(nodes), set(known)
    while waiting:
        turn = [n for n in waiting if all(t == ABSENT or t in written for t in n.inputs)]
        if not turn:
            return ready + waiting
        first = turn[0]
        ready.append(first)
        waiting.remove(first)
        written.update(first.outputs)
    return ready


def pruned(graph: Graph) -> Graph:
    """Return the graph without nodes that nobody reads and tensors that nobody uses; tensors are numbered anew."""
    needed = set(graph.outputs)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if needed.intersection(node.outputs):
            kept.append(node)
            needed.update(t for t in node.inputs if t != ABSENT)
    used = needed | set(graph.inputs) | {t for node in kept for t in node.outputs}
    number = {old: new for new, old in enumerate(sorted(used))}
    number[ABSENT] = ABSENT
    tensors: list[Tensor] = [graph.tensors[t] for t in sorted(used)]
    nodes = [
        replace(
            n,
            inputs=tuple(number[t] for t in n.inputs),
            outputs=tuple(number[t] for t in n.outputs),
            intermediates=None,
        )
        for n in reversed(kept)
    ]
    inputs, outputs = tuple(number[t] for t in graph.inputs), tuple(number[t] for t in graph.outputs)
    return replace(graph, tensors=tensors, nodes=nodes, inputs=inputs, outputs=outputs)
