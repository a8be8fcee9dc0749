"""Ranges of functions of one input that nothing states: what they give of their input's range.

A model with float outputs behind its last quantised operator has no range there (docs/aipu.md, 6).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.converters.aipu.ranges import range_of
from tflq.graph import Graph, Node, Range
from tflq.interpreter.kernels.aipu.curve import METHODS, OPERATORS, function_of

_POINTS = 1024


def with_function_ranges(graph: Graph) -> Graph:
    """Return the graph with the range of each function that has none and whose input has one."""
    result = graph
    for node in graph.nodes:
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
            limits = Range(np.array([found.min()], np.float32), np.array([found.max()], np.float32))
            result = result.copy() if result is graph else result
            result.tensors[node.outputs[0]] = replace(result.tensors[node.outputs[0]], range=limits)
    return result


def _is_function(node: Node) -> bool:
    return node.operator in OPERATORS or (node.operator == "activation" and node.attributes.get("method") in METHODS)
