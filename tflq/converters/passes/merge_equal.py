"""Identical operations on the same tensors are made once."""

from __future__ import annotations

from tflq.converters.passes.rewrite import redirect
from tflq.graph import Graph, Node, pruned


def merge_equal(graph: Graph) -> Graph:
    """Return the graph in which equal operators with the same inputs and equal output ranges are one."""
    result = graph.copy()
    seen: dict[tuple[str, tuple[int, ...]], list[Node]] = {}
    for index in range(len(graph.nodes)):
        node = result.nodes[index]
        twins = seen.setdefault((node.operator, node.inputs), [])
        twin = next((t for t in twins if _is_twin(result, t, node)), None)
        if twin is None:
            twins.append(node)
            continue
        for old, new in zip(node.outputs, twin.outputs, strict=True):
            redirect(result, old, new)
    return pruned(result)


def _is_twin(graph: Graph, a: Node, b: Node) -> bool:
    if a.attributes != b.attributes or len(a.outputs) != len(b.outputs):
        return False
    if set(b.outputs) & set(graph.outputs):
        return False
    pairs = [(graph.tensors[x], graph.tensors[y]) for x, y in zip(a.outputs, b.outputs, strict=True)]
    return all(x.range == y.range and x.shape == y.shape for x, y in pairs)
