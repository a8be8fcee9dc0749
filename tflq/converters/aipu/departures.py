"""Layers whose results on the device are not those of the model: what `convert` says of each in a line."""

from __future__ import annotations

from collections.abc import Mapping

from tflq.converters.aipu.parser_faults import faults_of
from tflq.graph import Affine, Graph
from tflq.interpreter.kernels.aipu.eltwise import forgets_scale, method_of
from tflq.interpreter.kernels.aipu.scales import scale_of

_OF_TWO = ("eltwise", "sub", "maximum", "minimum")


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
        tensors = [graph.tensors[t] for t in (*node.inputs[:2], node.outputs[0])]
        if node.operator not in _OF_TWO or not all(isinstance(t.quantisation, Affine) for t in tensors):
            continue
        a, b, output = tensors
        factor = float(scale_of(a)) / float(scale_of(output))
        if factor != 1 and method_of(node) != "MUL" and forgets_scale(method_of(node), a, b):
            found[node.name] = (
                f"both inputs have one type, at which the Optimizer forgets the output's scale: results are "
                f"{factor:.3g} times what they should be; give one input another range (--ranges)"
            )
    return found
