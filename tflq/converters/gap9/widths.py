"""The widths that NE16's filters can have: weights of 2 to 8 bits (docs/targets/gap9.md, Settings)."""

from __future__ import annotations

from tflq.converters.gap9.operators import FILTERS, LSTM
from tflq.converters.gap9.passes.choose_engines import NE16
from tflq.converters.gap9.quantize import quantize_graph
from tflq.converters.precision import (
    LayerWidths,
    PrecisionPlan,
    Width,
    packed_bytes,
    tensor_bytes,
)
from tflq.converters.settings import Settings
from tflq.graph import ABSENT, Affine, Graph, Node

_KEY = "weight_bits"
_NARROWEST = 2


def precision_plan(graph: Graph, settings: Settings) -> PrecisionPlan:
    """Return the choices for the weights of each filter on NE16.

    A width takes ceil(weights * bits / 8) bytes, the dense stream of hardware.bin. The widest is what `settings` give.
    Filters on SQ8, recurrent layers, and convolutions that become one with others have no choice.
    """
    quantized = quantize_graph(graph, settings)
    places = {node.name: index for index, node in enumerate(graph.nodes)}
    layers, fixed = [], 0
    for node in quantized.nodes:
        index = places.get(node.name)
        found = None if index is None else _layer(quantized, node, index)
        if found is not None and len(found.widths) > 1 and not settings.names(graph, found.index, (_KEY,)):
            layers.append(found)
        else:
            fixed += _fixed_bytes(quantized, node)
    return PrecisionPlan(tuple(layers), fixed, "weights")


def _layer(graph: Graph, node: Node, index: int) -> LayerWidths | None:
    if node.operator not in FILTERS or node.attributes.text("engine") != NE16:
        return None
    weights = graph.tensors[node.inputs[1]]
    every = range(weights.affine.bits, _NARROWEST - 1, -1)
    widths = tuple(Width(bits, packed_bytes(weights.size, bits), {_KEY: bits}) for bits in every)
    return LayerWidths(index, node.name, node.operator, widths)


def _fixed_bytes(graph: Graph, node: Node) -> int:
    if node.operator not in (*FILTERS, LSTM):
        return 0
    read = [graph.tensors[t] for t in node.inputs[1:] if t != ABSENT]
    weights = [t for t in read if t.is_constant and isinstance(t.quantization, Affine) and len(t.shape) > 1]
    return sum(map(tensor_bytes, weights))
