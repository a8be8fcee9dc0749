"""A constant added behind a filter is part of its bias (docs/gap9.md, 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tflq.arrays import Reals
from tflq.converters.gap9.operators import FILTERS
from tflq.converters.gap9.options import LayerOptions
from tflq.converters.gap9.passes.constants import real_constant
from tflq.converters.passes.patterns import constant_operand, only_reader
from tflq.converters.passes.rewrite import constant, with_attributes
from tflq.graph import ABSENT, Graph, Node, pruned
from tflq.graph.rewriting import fused_activation

_DEPARTURE = "NNTool adds the constant of {add} to the bias and keeps the range in front of it: it clips there (17.13)"


def take_in_biases(graph: Graph, options: Mapping[str, LayerOptions]) -> Graph:
    """Return the graph without additions of one constant, or one a channel, to what only they read of a filter.

    bias' = bias + constant, in real numbers. The filter then writes the sum in the range of the file's sum; NNTool, and
    numerics=nntool, keep the range of the filter.
    """
    result = graph.copy()
    written = {t: i for i, node in enumerate(graph.nodes) for t in node.outputs}
    dropped = set()
    for index, add in enumerate(graph.nodes):
        found = _added(result, add)
        place = None if found is None else written.get(found[0])
        if found is None or place is None or result.nodes[place].operator not in FILTERS:
            continue
        source, summand = found
        if only_reader(result, source) is None or fused_activation(result.nodes[place]) != "none":
            continue
        channels = result.tensors[source].shape[-1]
        if summand.size not in (1, channels) or result.tensors[add.outputs[0]].shape != result.tensors[source].shape:
            continue
        dropped.add(index)
        _add(result, place, summand)
        written[add.outputs[0]] = place
        _write(result, place, add, keeps_range=options[result.nodes[place].name].numerics == "nntool")
    result.nodes = [node for index, node in enumerate(result.nodes) if index not in dropped]
    return pruned(result)


def _added(graph: Graph, node: Node) -> tuple[int, Reals] | None:
    """Return what an addition adds a constant along the last axis to, and the constant."""
    position = constant_operand(graph, node) if node.operator == "add" else None
    if position is None:
        return None
    tensor = graph.tensors[node.inputs[position]]
    if tensor.shape[-1:] != (tensor.size,):
        return None
    return node.inputs[1 - position], real_constant(tensor).reshape(-1)


def _add(graph: Graph, place: int, summand: Reals) -> None:
    node = graph.nodes[place]
    channels = graph.tensors[node.outputs[0]].shape[-1]
    given = node.inputs[2] if len(node.inputs) > 2 else ABSENT
    bias = np.zeros(channels, summand.dtype) if given == ABSENT else real_constant(graph.tensors[given])
    name = f"{node.name}_bias" if given == ABSENT else graph.tensors[given].name
    total = graph.add_tensor(constant(name, np.asarray(bias + summand)))
    graph.nodes[place] = replace(node, inputs=(*node.inputs[:2], total))


def _write(graph: Graph, place: int, add: Node, keeps_range: bool) -> None:
    node = graph.nodes[place]
    before, after = graph.tensors[node.outputs[0]].range, graph.tensors[add.outputs[0]]
    if before is not None and after.range is not None and before != after.range:
        node = with_attributes(node, departure=_DEPARTURE.format(add=add.name))
    if keeps_range:
        graph.tensors[add.outputs[0]] = replace(after, range=before)
    graph.nodes[place] = replace(node, outputs=add.outputs)
