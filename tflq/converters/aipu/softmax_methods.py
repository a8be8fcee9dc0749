"""Which Softmax is made of a table and which of powers of two (docs/aipu.md, 5).

Source: Compass Optimizer, passes/tune_op_extra_params_s1.py, for targets below X3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tflq.converters.aipu.options import AUTO, LUT, LayerOptions
from tflq.graph import Attributes, Graph, Node, Range
from tflq.interpreter.kernels.aipu.softmax_fast import ADJUST, FAST_EXP, METHOD

RANKING = ("arg_min_max", "in_top_k", "nms", "sort", "top_k")
"""Layers that need more than powers of two, directly behind a Softmax or further on."""


def with_softmax_methods(graph: Graph, options: Mapping[str, LayerOptions]) -> Graph:
    """Return the graph with the method of each Softmax that uses powers of two; its output then reaches up to 1.

    Left to itself, a Softmax uses its table where nothing reads it, or where a ranking layer follows.
    """
    result = graph.copy()
    for index, node in enumerate(graph.nodes):
        requested = options[node.name]
        if node.operator != "softmax" or requested.softmax == LUT or requested.by_whitepaper:
            continue
        if requested.softmax == AUTO and _needs_table(graph, index):
            continue
        attributes = Attributes({**node.attributes, METHOD: FAST_EXP, ADJUST: requested.adjust_q})
        result.nodes[index] = replace(node, attributes=attributes)
        full = Range(np.zeros(1, np.float32), np.ones(1, np.float32))
        for t in node.outputs:
            result.tensors[t] = replace(graph.tensors[t], range=full)
    return result


def _needs_table(graph: Graph, index: int) -> bool:
    reached, readers = set(graph.nodes[index].outputs), list[Node]()
    for node in graph.nodes[index + 1 :]:
        if reached.intersection(node.inputs):
            reached.update(node.outputs)
            readers.append(node)
    return not readers or any(node.operator in RANKING for node in readers)
