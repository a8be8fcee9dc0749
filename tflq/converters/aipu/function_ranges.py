"""Ranges of functions of one input that nothing states: what they give of their input's range.

A model with float outputs behind its last quantised operator has no range there (docs/aipu.md, 6).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tflq.converters.aipu.options import LayerOptions
from tflq.converters.aipu.ranges import range_of
from tflq.graph import Graph, Node, Range
from tflq.interpreter.kernels.aipu.curve import METHODS, OPERATORS, function_of

_POINTS = 1024


_FLAT = {"SIGMOID": 6.0, "TANH": 3.0}
"""Where a function is nearly flat. Source: whitepaper ACN-AWP-1002A, hints for ranges."""


def with_function_ranges(graph: Graph, options: Mapping[str, LayerOptions]) -> Graph:
    """Return the graph with the range of each function that has none and whose input has one.

    Where `cut_inputs` is requested, what a SIGMOID or TANH reads has no wider range than the part where it is not flat.
    """
    result = graph
    for node in graph.nodes:
        limit = _FLAT.get(str(node.attributes.get("method"))) if options[node.name].cut_inputs else None
        if limit is not None and graph.tensors[node.inputs[0]].range is not None:
            result = result.copy() if result is graph else result
            low, high = np.clip(range_of(graph.tensors[node.inputs[0]]), -limit, limit)
            result.tensors[node.inputs[0]] = replace(graph.tensors[node.inputs[0]], range=_range(low, high))
        if not _is_function(node) or result.tensors[node.outputs[0]].range is not None:
            continue
        x = result.tensors[node.inputs[0]]
        if x.range is None:
            continue
        low, high = range_of(x)
        with np.errstate(all="ignore"):
            values = function_of(node)(np.linspace(min(low, 0.0), max(high, 0.0), _POINTS))
        found = values[np.isfinite(values)]
        if found.size:
            result = result.copy() if result is graph else result
            limits = _range(found.min(), found.max())
            result.tensors[node.outputs[0]] = replace(result.tensors[node.outputs[0]], range=limits)
    return result


def _range(low: float, high: float) -> Range:
    return Range(np.array([low], np.float32), np.array([high], np.float32))


def _is_function(node: Node) -> bool:
    return node.operator in OPERATORS or (node.operator == "activation" and node.attributes.get("method") in METHODS)
