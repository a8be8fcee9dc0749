"""The chosen types go onto the tensors, those inside fusions too, and Quantize nodes onto the edges that need one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.converters.gap9.affine_types import nearly_equal
from tflq.converters.gap9.choose_types import TypePlan
from tflq.converters.gap9.passes.choose_engines import SQ8
from tflq.converters.gap9.rewrite import CURVES, derived_tensor
from tflq.converters.gap9.type_rules import Codes, range_of
from tflq.converters.gap9.units import Unit
from tflq.graph import Affine, Attributes, Graph, Node
from tflq.interpreter.kernels.gap9.rounding import code_type

Q12 = 2.0**-12


def apply_types(graph: Graph, plan: TypePlan) -> Graph:
    """Return the graph with GAP9's types on all computed tensors and a node for each conversion of the plan."""
    result = graph.copy()
    for tensor, affine in plan.types.items():
        set_type(result, tensor, affine)
    for unit in plan.units:
        _type_inside(result, unit, plan)
    _insert_conversions(result, plan)
    return result


def set_type(graph: Graph, tensor: int, affine: Affine) -> None:
    """Give a tensor a type."""
    graph.tensors[tensor] = replace(graph.tensors[tensor], dtype=code_type(affine), quantisation=affine)


def _type_inside(graph: Graph, unit: Unit, plan: TypePlan) -> None:
    """Give the tensors between the nodes of a fusion their types.

    In front of a curve: 32 bits in the curve's input scale. Else the filter's own choice, if the tool takes it as
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
        set_type(graph, graph.nodes[index].outputs[0], inner)


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
    made: list[tuple[int, Affine, int]] = []
    insertions: list[tuple[int, Node]] = []
    for (index, position), affine in plan.conversions.items():
        reader = graph.nodes[index]
        source = reader.inputs[position]
        found = next((t for s, a, t in made if s == source and a == affine), None)
        if found is None:
            name = f"{reader.attributes.text('fusion', '') or reader.name}_qin{position}"
            found = derived_tensor(graph, source, name)
            set_type(graph, found, affine)
            made.append((source, affine, found))
            attributes = Attributes({"layer": reader.name, "engine": SQ8, "engine_reason": "changes the type"})
            insertions.append((index, Node("quantize", (source,), (found,), attributes, name)))
        inputs = tuple(found if p == position else t for p, t in enumerate(reader.inputs))
        graph.nodes[index] = replace(reader, inputs=inputs)
    for index, node in sorted(insertions, key=lambda item: -item[0]):
        graph.nodes.insert(index, node)
