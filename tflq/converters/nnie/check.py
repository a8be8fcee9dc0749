"""Which operators compute on quantized values, and which Caffe 1.0 or the mapper cannot take.

All at once, with the way out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tflq.converters.nnie.caffe.network import caffe_network, rule_of
from tflq.converters.nnie.rewrites import PASSES, origin
from tflq.converters.passes.patterns import computed_inputs
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import ABSENT, Graph, Node, pruned
from tflq.graph.operators import LINEAR_OPERATORS
from tflq.graph.rewriting import rewrite_graph
from tflq.schemas.nnie import limits

FILTERS = LINEAR_OPERATORS
WEIGHTED = (*FILTERS, "transpose_conv")
POOLS = ("average_pool_2d", "mean", "sum")
ASSUMED = (
    *("transpose_conv", "sum", "sub", "div", "maximum", "minimum", "squared_difference", "hard_swish"),
    *("neg", "pow", "rsqrt", "sqrt", "square"),
)
"""Operators of whose layers no text says how NNIE quantizes them; ADD and MUL by a constant are such, too."""
QUANTIZING = tuple(dict.fromkeys((*WEIGHTED, *POOLS, "add", "mul", "concatenation", *ASSUMED)))
"""Operators whose inputs become quantized values, all with one z."""


def is_quantizing(node: Node) -> bool:
    """Whether the inputs of a node become logarithmic quantized values."""
    rule = rule_of(node)
    return rule.quantizes if rule else node.operator in QUANTIZING


def layer_inputs(graph: Graph, node: Node) -> tuple[int, ...]:
    """Return the computed inputs of a quantizing layer, without weights, bias and axes."""
    if node.operator == "transpose_conv":
        return node.inputs[2:3]
    if node.operator in (*FILTERS, *POOLS):
        return node.inputs[:1]
    return tuple(t for _, t in computed_inputs(graph, node))


def is_assumed(graph: Graph, node: Node) -> bool:
    """Whether how NNIE quantizes a node's layer is an assumption (docs/rules/nnie.md#layers)."""
    by_constant = node.operator in ("add", "mul") and len(layer_inputs(graph, node)) == 1
    return by_constant or node.operator in ASSUMED


def prepare(graph: Graph) -> Graph:
    """Return the float network that Caffe gets, after all passes.

    Raises:
        GraphError, UnsupportedError: Constants with scales of another shape, windows that do not fit.
    """
    return pruned(rewrite_graph(graph, PASSES, owner="nnie"))


def problems_of(graph: Graph, prepared: Graph | None = None) -> tuple[str, ...]:
    """Return one line for each operator that cannot be mapped, in order of the file.

    Args:
        graph: Graph of the file.
        prepared: Its float network, if `prepare` was called already.
    """
    try:
        view = prepared or prepare(graph)
        network = caffe_network(view)
    except (GraphError, UnsupportedError) as error:
        return (str(error),)
    reasons = dict(network.problems)
    for index, node in enumerate(view.nodes):
        reasons.setdefault(index, _dimensions(view, node))
    numbers = {node.name: i for i, node in enumerate(graph.nodes)}
    idle = [f"output '{view.tensors[t].name}' is a constant; remove it" for t in view.outputs if t not in network.blobs]
    return (
        *idle,
        *(
            f"{graph.where(numbers[origin(view.nodes[index])])}: {reason}"
            for index, reason in sorted(reasons.items())
            if reason
        ),
    )


def is_relu_enough(graph: Graph, t: int, readers: Mapping[int, Sequence[int]]) -> bool:
    """Whether ReLU does for a ReLU6 that writes a tensor.

    It does where its calibrated maximum is below 6, or is 6 and all who read it, perhaps behind layers that move
    values, quantize it alone: their quantized values saturate there. Without a range it does not.
    """
    found = graph.tensors[t].range
    largest = np.inf if found is None else float(found.maximum.max())
    return largest < 6 or (largest == 6 and _saturates(graph, t, readers))


def _saturates(graph: Graph, t: int, readers: Mapping[int, Sequence[int]]) -> bool:
    nodes = [graph.nodes[i] for i in readers.get(t, ())]
    return t not in graph.outputs and all(
        node.operator in (*WEIGHTED, *POOLS)
        or (node.operator in _MOVING and all(_saturates(graph, out, readers) for out in node.outputs))
        for node in nodes
    )


def read_limits(graph: Graph) -> dict[int, float]:
    """Return the largest magnitude that the readers of a tensor keep, by tensor; of a quantized graph.

    A layer that quantizes its input saturates at its clipping value; layers that move values pass them to such layers.
    Tensors with another reader, outputs of the graph and constants are absent.
    """
    limits: dict[int, float] = {}
    readers = graph.consumers()
    for node in reversed(graph.nodes):
        for t in node.outputs:
            nodes = [graph.nodes[i] for i in readers.get(t, ())]
            if nodes and t not in graph.outputs:
                limits[t] = max(_limit(graph, reader, t, limits) for reader in nodes)
    return {t: limit for t, limit in limits.items() if np.isfinite(limit)}


def _limit(graph: Graph, reader: Node, t: int, limits: Mapping[int, float]) -> float:
    if reader.operator in _MOVING:
        return max(limits.get(out, np.inf) for out in reader.outputs)
    is_clipped = is_quantizing(reader) and t in layer_inputs(graph, reader)
    return reader.attributes.real("activation_clipping") if is_clipped else np.inf


_MOVING = ("max_pool_2d", "reshape", "squeeze", "expand_dims", "resize_nearest_neighbor", "slice", "strided_slice")


def _dimensions(graph: Graph, node: Node) -> str:
    largest = limits().dimension
    for t in (*node.inputs[: 1 if is_quantizing(node) else None], *node.outputs):
        shape = graph.tensors[t].shape if t != ABSENT else ()
        if shape and max(shape) > largest:
            return f"tensor '{graph.tensors[t].name}' has shape {shape}; NNIE takes axes up to {largest}: cut it up"
    return ""
