"""Layers whose results on the device are not those of the model: what `convert` says of each in a line."""

from __future__ import annotations

from collections.abc import Mapping

from tflq.converters.aipu.parser_faults import faults_of
from tflq.graph import Graph
from tflq.interpreter.kernels.aipu.eltwise import EltwiseParams, forgets_scale
from tflq.interpreter.kernels.aipu.scales import scale_of


def departures(graph: Graph) -> Mapping[str, str]:
    """Return the layers of a lowered graph that depart: name -> what the Compass tools make of it, and the way out."""
    found = dict(faults_of(graph))
    for name, words in _forgotten_scales(graph).items():
        found[name] = f"{found[name]}; {words}" if name in found else words
    return found


def _forgotten_scales(graph: Graph) -> Mapping[str, str]:
    """Name the differences and extremes whose results have another scale than the file says (specs: Eltwise)."""
    found = {}
    for node in graph.nodes:
        if not isinstance(node.params, EltwiseParams) or node.params.method == "MUL":
            continue
        a, b, output = (graph.tensors[t] for t in (*node.inputs[:2], node.outputs[0]))
        factor = float(scale_of(a)) / float(scale_of(output))
        if factor != 1 and forgets_scale(node.params.method, a, b):
            found[node.name] = (
                f"both inputs have one type, at which the Optimizer forgets the output's scale: results are "
                f"{factor:.3g} times what they should be; give one input another range (--ranges)"
            )
    return found
