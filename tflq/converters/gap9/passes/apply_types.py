"""The chosen types go onto the tensors, those inside fusions too, and Quantize nodes onto the edges that need one."""

from __future__ import annotations

from dataclasses import replace

from tflq.converters.gap9.passes.choose_engines import SQ8
from tflq.converters.gap9.types.plan import TypePlan
from tflq.converters.passes.conversions import Conversions
from tflq.converters.passes.rewrite import with_input
from tflq.graph import Affine, Attributes, Graph, Node, Tensor
from tflq.interpreter.kernels.gap9.rounding import code_type


def apply_types(graph: Graph, plan: TypePlan) -> Graph:
    """Return the graph with GAP9's types on all computed tensors and a node for each conversion of the plan."""
    result = graph.copy()
    for tensor, affine in plan.types.items():
        result.tensors[tensor] = _typed(result.tensors[tensor], affine)
    _insert_conversions(result, plan)
    return result


def _typed(tensor: Tensor, affine: Affine) -> Tensor:
    return replace(tensor, dtype=code_type(affine), quantisation=affine)


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
