"""16-bit features: an input gives up bits where the accumulator of its filter could overflow (docs/gap9.md, 12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tflq.converters.gap9.affine_types import nearly_equal
from tflq.converters.gap9.operators import layer_of
from tflq.converters.gap9.options import LayerOptions
from tflq.converters.gap9.passes.constants import quantise_layer
from tflq.converters.gap9.types.plan import InputPlace, TypePlan
from tflq.converters.gap9.types.resolve import range_of
from tflq.graph import Affine, Graph

_ACCUMULATOR_BITS = 31


def reduce_precision(graph: Graph, plan: TypePlan, options: Mapping[str, LayerOptions]) -> TypePlan:
    """Return the plan with wider scales of 16-bit inputs.

    bits = ceil(log2(max|output range| / min_c(S_x * S_w[c]))) + 1, with S_x as planned; where that exceeds 31, S_x is
    multiplied by 2^min(bits - 31, max_precision_limit). Zero points stay; the producer writes the wider type. Of
    several readers the one that needs most decides.
    """
    types, conversions = dict(plan.types), dict(plan.conversions)
    wider: dict[int, int] = {}
    for unit in plan.units:
        position, tensor = unit.inputs[0] if unit.inputs else (0, -1)
        if not unit.is_filter or not unit.on_ne16:
            continue
        edge: InputPlace = (unit.nodes[0], position)
        given = conversions.get(edge, types[tensor])
        if given.bits != 16:
            continue
        lost = _lost_bits(graph, unit.nodes[0], given, options)
        if lost and edge in conversions:
            conversions[edge] = _widened(given, lost)
        elif lost:
            wider[tensor] = max(wider.get(tensor, 0), lost)
    for tensor, lost in wider.items():
        types.update(dict.fromkeys(_sharing(graph, plan, tensor), _widened(plan.types[tensor], lost)))
    return replace(plan, types=types, conversions=conversions)


def _sharing(graph: Graph, plan: TypePlan, tensor: int) -> set[int]:
    """Return the tensors of one type: those that moves connect, and those inside the fusions that write them."""
    affine = plan.types[tensor]
    found = {t for t, other in plan.types.items() if other is affine}
    for unit in plan.units:
        if found.intersection(unit.outputs):
            inner = [t for index in unit.nodes for t in graph.nodes[index].outputs]
            found.update(t for t in inner if nearly_equal(plan.types[t], affine))
    return found


def _lost_bits(graph: Graph, index: int, given: Affine, options: Mapping[str, LayerOptions]) -> int:
    node = graph.nodes[index]
    layer = options[layer_of(node)]
    scale = quantise_layer(graph, node, given.scale, layer).bias_scale
    stated = range_of(graph, node.outputs[0])
    largest = max(abs(float(stated.minimum[0])), abs(float(stated.maximum[0])))
    bits = int(np.ceil(np.log2(largest / float(scale.min())))) + 1
    return min(max(bits - _ACCUMULATOR_BITS, 0), layer.max_precision_limit)


def _widened(affine: Affine, lost: int) -> Affine:
    return replace(affine, scale=affine.scale * affine.scale.dtype.type(1 << lost))
