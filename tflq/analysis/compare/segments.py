"""The nodes between matched tensors: what the two graphs do for one layer, and how their numbers compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tflq.analysis.compare.params import IntegerDifference, WeightFigures, integer_differences, weight_figures
from tflq.graph import ABSENT, Graph, Node, Tensor
from tflq.graph.cut import between


@dataclass(frozen=True)
class Segment:
    """What computes one matched tensor.

    Attributes:
        nodes: of the first graph, in order; the last writes the tensor.
        inputs: the matched tensors that they read, by index in the first graph.
        main: the node with the weights, or the last one.
        differences: of the integers of both graphs' nodes, where they are of one kind.
        multiplier_error: largest relative error of the multipliers against the scales that they stand for; None
            where the integers do not say.
        weights: how they stand to the second side's; None without weights or with equal ones.
    """

    nodes: tuple[int, ...]
    inputs: tuple[int, ...]
    main: Node
    differences: tuple[IntegerDifference, ...]
    multiplier_error: float | None
    weights: WeightFigures | None


def segment(
    first: Graph, tensor: int, matched: Mapping[int, int], second: Graph | None, second_matched: Mapping[int, int]
) -> Segment:
    """Find what computes a tensor.

    Args:
        first: graph in question.
        tensor: of it.
        matched: its tensors that the other side has too -> index there.
        second: the other graph; None for a dump.
        second_matched: tensors of the other graph -> index in the first.
    """
    nodes, inputs = _behind(first, tensor, matched)
    main = _main(first, nodes)
    if second is None:
        return Segment(nodes, inputs, main, (), _multiplier_error(first, nodes), None)
    theirs, _ = _behind(second, matched[tensor], second_matched)
    differences: tuple[IntegerDifference, ...] = ()
    if len(nodes) == len(theirs):
        for a, b in zip(nodes, theirs, strict=True):
            differences += integer_differences(first.nodes[a].params, second.nodes[b].params)
    weights = _compared_weights(first, main, second, _main(second, theirs)) if theirs else None
    return Segment(nodes, inputs, main, differences, _multiplier_error(first, nodes), weights)


def _behind(graph: Graph, tensor: int, matched: Mapping[int, int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    nodes, read = between(graph, matched.keys() - {tensor}, [tensor])
    inputs = [t for t in read if t in matched and t != tensor and not graph.tensors[t].is_constant]
    return tuple(sorted(nodes)), tuple(inputs)


def _main(graph: Graph, nodes: tuple[int, ...]) -> Node:
    for i in reversed(nodes):
        if _weights(graph, graph.nodes[i]) is not None:
            return graph.nodes[i]
    return graph.nodes[nodes[-1]]


def _weights(graph: Graph, node: Node) -> Tensor | None:
    if (
        len(node.inputs) < 2
        or node.inputs[1] == ABSENT
        or "conv" not in node.operator + "conv" * (node.operator == "fully_connected")
    ):
        return None
    tensor = graph.tensors[node.inputs[1]]
    return tensor if tensor.data is not None else None


def _compared_weights(first: Graph, a: Node, second: Graph, b: Node) -> WeightFigures | None:
    ours, theirs = _weights(first, a), _weights(second, b)
    if ours is None or theirs is None or ours.shape != theirs.shape:
        return None
    return weight_figures(ours, theirs, len(ours.shape) - 1 if a.operator == "depthwise_conv_2d" else 0)


def _multiplier_error(graph: Graph, nodes: tuple[int, ...]) -> float | None:
    errors = [e for i in nodes for e in _errors(graph.nodes[i].params, 0)]
    return max(errors) if errors else None


def _errors(params: object, depth: int) -> list[float]:
    """Look for multiplier, shift and the ratio of scales that they stand for, as MulBias and Multiplier hold them."""
    found = []
    for value in vars(params).values() if hasattr(params, "__dict__") and depth < 3 else ():
        parts = getattr(value, "__dict__", {})
        ratio = parts.get("ratio", parts.get("scale"))
        multiplier, shift = parts.get("multiplier"), parts.get("shift")
        arrays = all(isinstance(x, np.ndarray) for x in (ratio, multiplier, shift))
        if arrays and "zero_point" not in parts:
            real = np.asarray(ratio, np.float64)
            stands_for = np.asarray(multiplier, np.float64) * np.exp2(-np.asarray(shift, np.float64))
            found.append(float(np.max(np.abs(stands_for / real - 1.0))))
        elif parts:
            found += _errors(value, depth + 1)
    return found
