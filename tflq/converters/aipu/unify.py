"""One scale for all branches of a Concat (docs/aipu.md, 9).

Source: whitepaper ACN-AWP-1002A, 4.12; Compass Optimizer, unify_scales_for_multi_inputs_operator.py, method "out".
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from tflq.converters.aipu.operators import LAYERS
from tflq.graph import Graph, Range
from tflq.interpreter.kernels.aipu.scales import bits_of, code_limits, scale_of


def with_unified_branches(graph: Graph, quantised: Graph, names: Collection[str]) -> Graph:
    """Return the graph with the ranges that give branches the scale of their Concat; the graph itself without any.

    In each branch it is the nearest tensor with a range of its own that changes, found through layers that pass their
    input's type. A Concat whose branches differ in their type, or one of which has no such tensor of as many bits as
    the output, stays as it is. Symmetric activations then need no multiplier; asymmetric ones may still.

    Args:
        graph: float, with ranges.
        quantised: made of it; its nodes stand in the same order.
        names: of the Concat layers.
    """
    result = graph
    for node in graph.nodes:
        if node.operator != "concat" or node.name not in names:
            continue
        output = quantised.tensors[node.outputs[0]]
        owners = [_owner(graph, t) for t in node.inputs]
        found = [quantised.tensors[t] for t in owners if t is not None]
        is_alike = len({quantised.tensors[t].dtype for t in node.inputs}) == 1
        if len(found) < len(owners) or not is_alike or any(bits_of(t) != bits_of(output) for t in found):
            continue
        result = result.copy() if result is graph else result
        for t in owners:
            if t is not None:
                low, high = code_limits(quantised.tensors[t])
                width = np.float32(high - low) / scale_of(output)
                limits = (-width / 2, width / 2) if low < 0 else (np.float32(0), width)
                found_range = Range(*(np.array([limit], np.float32) for limit in limits))
                result.tensors[t] = replace(graph.tensors[t], range=found_range)
    return result


def _owner(graph: Graph, t: int) -> int | None:
    """Return the tensor whose range decides the scale of a tensor; None where no range does."""
    writers = graph.producers()
    while t in writers:
        node = graph.nodes[writers[t]]
        layer = LAYERS[node.operator]
        if layer.signed is not None:
            return t if graph.tensors[t].range is not None else None
        if not layer.passes:
            return None
        t = node.inputs[0]
    return t if t in graph.inputs and graph.tensors[t].range is not None else None
