"""The chosen types go onto the tensors, those inside fusions too, and Quantize nodes onto the edges that need one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.converters.gap9.affine_types import nearly_equal
from tflq.converters.gap9.choose_types import TypePlan
from tflq.converters.gap9.operators import CURVES
from tflq.converters.gap9.passes.choose_engines import SQ8
from tflq.converters.gap9.type_rules import Codes, range_of
from tflq.converters.gap9.units import Unit
from tflq.converters.passes.conversions import Conversions
from tflq.converters.passes.rewrite import with_input
from tflq.graph import Affine, Attributes, Graph, Node, Tensor
from tflq.interpreter.kernels.gap9.rounding import code_type

Q12 = 2.0**-12


def apply_types(graph: Graph, plan: TypePlan) -> Graph:
    """Return the graph with GAP9's types on all computed tensors and a node for each conversion of the plan."""
    result = graph.copy()
    for tensor, affine in plan.types.items():
        result.tensors[tensor] = _typed(result.tensors[tensor], affine)
    for unit in plan.units:
        _type_inside(result, unit, plan)
    _insert_conversions(result, plan)
    return result


def _typed(tensor: Tensor, affine: Affine) -> Tensor:
    return replace(tensor, dtype=code_type(affine), quantisation=affine)


def _type_inside(graph: Graph, unit: Unit, plan: TypePlan) -> None:
    """Give the tensors between the nodes of a fusion their types.

    In front of a curve: 32 bits in the curve's input scale. Else the filter's own choice, if NNTool takes it as
    equal to what the fusion writes (then the two scales differ in their last bits), or what the fusion writes.
    """
    if len(unit.nodes) == 1:
        return
    written = plan.types[unit.outputs[0]]
    head = graph.nodes[unit.nodes[0]]
    stated = range_of(graph, head.outputs[0])
    inner = written
    if unit.has_curve:
        inner = _curve_input(graph, unit, written)
    elif unit.is_filter and unit.rectifies:
        first = Codes.of(written).quantised(stated, False)
        inner = first if nearly_equal(first, written) else written
    for index in unit.nodes[:-1]:
        if graph.nodes[index].operator in CURVES:
            inner = written
        t = graph.nodes[index].outputs[0]
        graph.tensors[t] = _typed(graph.tensors[t], inner)


def _curve_input(graph: Graph, unit: Unit, written: Affine) -> Affine:
    scale = np.full(1, Q12)
    if unit.activation == "leaky_relu":
        scale = written.scale
    elif unit.activation == "hard_swish":
        stated = range_of(graph, graph.nodes[unit.nodes[0]].outputs[0])
        widest = max(abs(float(stated.maximum[0])) / ((1 << 31) - 1), abs(float(stated.minimum[0])) / (1 << 31))
        scale = np.full(1, max(widest, 6.0 / ((1 << (written.bits - 1)) - 1)))
    return Affine(scale, np.zeros(1, np.int64), None, 32, True)


def _insert_conversions(graph: Graph, plan: TypePlan) -> None:
    """Put one Quantize node for each tensor and type, in front of its first reader; named after it."""
    nodes, graph.nodes = graph.nodes, []
    conversions = Conversions(graph)
    for index, reader in enumerate(nodes):
        first, node = len(graph.nodes), reader
        for position, source in enumerate(reader.inputs):
            affine = plan.conversions.get((index, position))
            if affine is not None:
                name = f"{reader.attributes.text('fusion', '') or reader.name}_qin{position}"
                wanted = replace(_typed(graph.tensors[source], affine), name=name, data=None)
                attributes = Attributes({"layer": reader.name, "engine": SQ8, "engine_reason": "changes the type"})
                made = conversions.convert(source, wanted, Node("quantize", (), (), attributes, name))
                node = with_input(node, position, made)
        # Of several in front of one node, that of the last operand runs first, as in NNTool's graphs.
        graph.nodes[first:] = [*reversed(graph.nodes[first:]), node]
