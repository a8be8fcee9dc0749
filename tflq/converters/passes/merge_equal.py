"""Identical operations on the same tensors are made once."""

from __future__ import annotations

from collections.abc import Collection

from tflq.converters.passes.rewrite import redirect
from tflq.graph import Graph, Node, pruned


def merge_equal(graph: Graph, commutative: Collection[str] = ()) -> Graph:
    """Return the graph in which equal operators with the same inputs and equal output ranges are one.

    Args:
        graph: with ranges.
        commutative: operators whose inputs may stand in any order.
    """
    result = graph.copy()
    seen: dict[tuple[str, tuple[int, ...]], list[Node]] = {}
    for index in range(len(graph.nodes)):
        node = result.nodes[index]
        inputs = tuple(sorted(node.inputs)) if node.operator in commutative else node.inputs
        twins = seen.setdefault((node.operator, inputs), [])
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
    results = set(graph.outputs)
    if results.intersection(b.outputs) and results.intersection(a.outputs):
        return False
    pairs = [(graph.tensors[x], graph.tensors[y]) for x, y in zip(a.outputs, b.outputs, strict=True)]
    return all(x.range == y.range and x.shape == y.shape for x, y in pairs)
