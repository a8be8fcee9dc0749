"""Leaves out what does not reach a graph's outputs."""

from __future__ import annotations

from dataclasses import replace

from tflq.graph.graph import ABSENT, Graph, Node
from tflq.graph.quantisation import Blockwise


def pruned(graph: Graph) -> Graph:
    """Return the graph without nodes that nobody reads and tensors that nobody uses; tensors are numbered anew.

    The graph's inputs stay, and nodes that write no tensor (they change state) with all that they read.
    """
    needed = set(graph.outputs)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if not node.outputs or needed.intersection(node.outputs):
            kept.append(node)
            needed.update(node.inputs, node.intermediates or ())
    used = needed.union(graph.inputs, *(node.outputs for node in kept)) - {ABSENT}
    used = _with_block_scales(graph, used)
    number = {old: new for new, old in enumerate(sorted(used))}
    number[ABSENT] = ABSENT
    tensors = []
    for t in sorted(used):
        tensor = graph.tensors[t]
        if isinstance(tensor.quantisation, Blockwise):
            blocks = tensor.quantisation
            zero_points = number.get(blocks.zero_points, ABSENT)
            moved = replace(blocks, scales=number[blocks.scales], zero_points=zero_points)
            tensor = replace(tensor, quantisation=moved)
        tensors.append(tensor)
    nodes = [
        replace(
            node,
            inputs=tuple(number[t] for t in node.inputs),
            outputs=tuple(number[t] for t in node.outputs),
            intermediates=None if node.intermediates is None else tuple(number[t] for t in node.intermediates),
        )
        for node in reversed(kept)
    ]
    inputs, outputs = tuple(number[t] for t in graph.inputs), tuple(number[t] for t in graph.outputs)
    return replace(graph, tensors=tensors, nodes=nodes, inputs=inputs, outputs=outputs)


def _with_block_scales(graph: Graph, used: set[int]) -> set[int]:
    """Add the tensors that hold the scales of weights quantised in blocks."""
    found = set(used)
    for t in used:
        blocks = graph.tensors[t].quantisation
        if isinstance(blocks, Blockwise):
            found.update(s for s in (blocks.scales, blocks.zero_points) if s > 0 or s == blocks.scales)
    return found
