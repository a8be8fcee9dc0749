"""Layers that TensorFlow Lite Micro computes otherwise than TFLite, proven over all accumulators."""

from __future__ import annotations

from dataclasses import replace

from tflq.graph import Graph
from tflq.interpreter.kernels.tflite.rule_difference import compare_layers
from tflq.interpreter.registry import kernel
from tflq.interpreter.runtimes import RUNTIMES


def find_departures(graph: Graph) -> dict[str, str]:
    """Return layer -> number of inputs with another result, of a lowered graph."""
    rules = RUNTIMES["tflm"].rules
    reasons = {}
    for index, node in enumerate(graph.nodes):
        if node.operator in rules and node.arithmetic == "tflm":
            reason = _describe(graph, index, rules[node.operator])
            if reason:
                reasons[node.name] = reason
    return reasons


def _describe(graph: Graph, index: int, rule: str) -> str:
    node, operands = graph.nodes[index], graph.operands(index)
    params = kernel("tflite", node.operator).lower(node, operands)
    difference = compare_layers((replace(node, arithmetic="tflite", params=params), node), operands)
    if isinstance(difference, str):
        return f"{rule}; the number of results that differ is not known: {difference}"
    if not difference.differing:
        return ""
    share = f"{difference.differing} of {difference.reachable} accumulators or inputs"
    return f"{rule}: {share} differ from TFLite's reference kernel, by at most {difference.largest} LSB"
