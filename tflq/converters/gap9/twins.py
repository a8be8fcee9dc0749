"""Sums and products that NNTool takes for another one (docs/gap9.md, 17.16)."""

from __future__ import annotations

from tflq.converters.gap9.operators import ACTIVATIONS
from tflq.graph import Graph, Node

THIN = ("quantize", "reshape", "squeeze", *ACTIVATIONS)
"""Element-wise in one operand, or not even that."""


def taken_for_another(graph: Graph, node: Node) -> str:
    """Say where NNTool takes x + x, or x * x, for an earlier sum, or product, of x and something else; else ""."""
    if node.operator not in ("add", "mul"):
        return ""
    sources = [behind_thin(graph, t)[-1] for t in node.inputs]
    for other in graph.nodes[: graph.nodes.index(node)] if sources[0] == sources[1] else ():
        if other.operator == node.operator:
            read = {behind_thin(graph, t)[-1] for t in other.inputs}
            if sources[0] in read and len(read) > 1:
                return f"NNTool takes it for '{other.name}', which reads its operand, too, or fails (17.16)"
    return ""


def behind_thin(graph: Graph, tensor: int) -> list[int]:
    """Return the tensor and those in front of it, up to what is not element-wise in one operand."""
    found = [tensor]
    while (index := graph.producers().get(found[-1])) is not None and graph.nodes[index].operator in THIN:
        found.append(graph.nodes[index].inputs[0])
    return found
