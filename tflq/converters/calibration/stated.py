"""Ranges that a quantised graph states already."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.graph import ABSENT, Affine, Graph, Range, Tensor


def computed_tensors(graph: Graph) -> tuple[int, ...]:
    """Return the graph's inputs and all that its nodes write, in order."""
    written = (t for node in graph.nodes for t in node.outputs if t != ABSENT)
    return tuple(dict.fromkeys([*graph.inputs, *written]))


def ranges_from_quantisation(graph: Graph) -> Graph:
    """Return the graph with a float32 `range` of one minimum and maximum on each computed tensor that states one.

    The file's own range comes first; else scale * (lowest code - zero point) and scale * (highest code - zero point),
    computed in float64 and rounded once. Tensors that state neither stay as they are.
    """
    result = graph.copy()
    for t in computed_tensors(graph):
        found = stated_range(graph.tensors[t])
        if found is not None:
            result.tensors[t] = replace(graph.tensors[t], range=found)
    return result


def stated_range(tensor: Tensor) -> Range | None:
    """Return the range that a tensor states, by itself or by its quantisation; None where it states none."""
    if tensor.range is not None and tensor.range.minimum.size:
        return range_of(float(tensor.range.minimum.min()), float(tensor.range.maximum.max()))
    affine = tensor.quantisation
    if not isinstance(affine, Affine):
        return None
    scale, zero_point = affine.scale.astype(np.float64), affine.zero_point
    low, high = scale * (affine.minimum_code - zero_point), scale * (affine.maximum_code - zero_point)
    return range_of(float(low.min()), float(high.max()))


def range_of(minimum: float, maximum: float) -> Range:
    """Return a range of two float32 numbers."""
    return Range(np.array([minimum], np.float32), np.array([maximum], np.float32))
