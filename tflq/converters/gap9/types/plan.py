"""The plan: a type for every computed tensor, and the edges where a Quantize node must stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tflq.converters.gap9.operators import layer_of
from tflq.converters.gap9.options import LayerOptions
from tflq.converters.gap9.passes.constants import quantise_layer
from tflq.converters.gap9.types.choice import INT8, Choice
from tflq.converters.gap9.types.network import GRAPH_INPUT, GRAPH_OUTPUT, Edge, Network
from tflq.converters.gap9.types.procedure import eliminate, resolve_forward
from tflq.converters.gap9.types.resolve import Resolved, range_of, resolver_of
from tflq.converters.gap9.units import Unit, units_of
from tflq.graph import ABSENT, Affine, Graph
from tflq.graph.quantisation import FloatArray

InputPlace = tuple[int, int]
"""(node, input position)."""


@dataclass(frozen=True)
class TypePlan:
    """The decision.

    Attributes:
        units: the units that it was made for.
        types: computed tensor -> type, those inside fusions included.
        conversions: input of a node -> type that a Quantize node in front of it writes.
    """

    units: tuple[Unit, ...]
    types: Mapping[int, Affine]
    conversions: Mapping[InputPlace, Affine]


def choose_types(graph: Graph, options: Mapping[str, LayerOptions]) -> TypePlan:
    """Decide every type of a graph with ranges, fusions and engines.

    Raises:
        UnsupportedError: a fusion whose members NNTool cannot type together.
    """
    units = units_of(graph)
    network = _network(graph, units, options)
    decided = network.resolved
    order = resolve_forward(network, graph.inputs, lambda u: _open_constants(graph, units[u], decided[u], options))
    eliminate(network, order)
    types: dict[int, Affine] = {}
    conversions: dict[InputPlace, Affine] = {}
    for edge in network.edges():
        assert edge.state.written is not None
        types[edge.tensor] = edge.state.written.affine
        if edge.in_conflict and edge.consumer != GRAPH_OUTPUT:
            unit = units[edge.consumer]
            assert edge.state.wanted is not None
            conversions[unit.nodes[0], unit.inputs[edge.position][0]] = edge.state.wanted.affine
    for number, found in network.resolved.items():
        for index, member in zip(units[number].nodes, found.members, strict=True):
            types.update(zip(graph.nodes[index].outputs, (c.affine for c in member.outputs), strict=True))
    return TypePlan(tuple(units), types, conversions)


def _network(graph: Graph, units: list[Unit], options: Mapping[str, LayerOptions]) -> Network:
    first = next(iter(options.values()), None)
    bits, allow = (first.feature_bits, first.allow_asymmetric_out) if first else (8, False)
    producers = dict.fromkeys(graph.inputs, GRAPH_INPUT)
    producers.update({t: number for number, unit in enumerate(units) for t in unit.outputs})
    edges_out: dict[int, list[Edge]] = {t: [] for t in producers}
    edges_in: list[list[Edge]] = []
    for number, unit in enumerate(units):
        edges_in.append([Edge(t, producers[t], number, place) for place, (_, t) in enumerate(unit.inputs)])
        for edge in edges_in[-1]:
            edges_out[edge.tensor].append(edge)
    for t in graph.outputs:
        if t in producers:
            edges_out[t].append(Edge(t, producers[t], GRAPH_OUTPUT, 0))

    def of_input(tensor: int) -> Choice:
        stated = range_of(graph, tensor)
        return Choice.made(stated, INT8, bool(stated.minimum[0] != 0) and not allow)

    def of_output(arrived: Choice) -> Choice:
        return arrived if allow else arrived.symmetric() or arrived

    return Network(
        [resolver_of(graph, u, bits, options[layer_of(graph.nodes[u.nodes[0]])].softmax_out_8bits) for u in units],
        edges_in,
        edges_out,
        [unit.outputs for unit in units],
        {},
        {},
        {t: range_of(graph, t) for t in producers},
        of_input,
        of_output,
    )


def _open_constants(graph: Graph, unit: Unit, found: Resolved, options: Mapping[str, LayerOptions]) -> int:
    """How many constants of a filter are not what the file holds: weights, and the bias with its folded zero points.

    Weights are in conflict on NE16, and where a scale changes; a bias is, where a scale changes or zero points fold.
    """
    node, decision = graph.nodes[unit.nodes[0]], found.members[0]
    x, y = decision.inputs[0].affine, decision.outputs[0].affine
    made = quantise_layer(graph, node, x.scale, options[layer_of(node)])
    weights = graph.tensors[node.inputs[1]]
    count = int(unit.on_ne16 or not _same_scales(made.weights.scale, weights.quantisation))
    bias = graph.tensors[node.inputs[2]] if len(node.inputs) > 2 and node.inputs[2] != ABSENT else None
    folds = bool(x.zero_point[0] or y.zero_point[0])
    agrees = bias is not None and _same_scales(made.bias_scale, bias.quantisation) and not folds
    return count + (not agrees)


def _same_scales(scale: FloatArray, stated: object) -> bool:
    if not isinstance(stated, Affine) or stated.scale.size != scale.size:
        return False
    return bool(np.all(np.abs(scale - stated.scale) <= 1e-8 + 1e-5 * np.abs(stated.scale)))
