"""Which tensors of two sides are the same: by name, else by the name of the node that writes them.

For the nodes between matched tensors: each graph's nodes for one layer, and the comparison of their numbers.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tflq.diagnosis.compare.params import IntegerDifference, WeightFigures, integer_differences, weight_figures
from tflq.diagnosis.compare.sides import Column
from tflq.errors import InputError
from tflq.graph import ABSENT, Graph, Node, Tensor
from tflq.graph.cut import between

_NEAREST = 3


@dataclass(frozen=True)
class Match:
    """Two columns for the same tensor."""

    first: Column
    second: Column


@dataclass(frozen=True)
class Matching:
    """Matched tensors of two sides.

    Attributes:
        matches: Pairs in the order of the first side.
        first_only: names that only the first side has (a target inserted the tensors).
        second_only: names that only the second has.
    """

    matches: tuple[Match, ...]
    first_only: tuple[str, ...]
    second_only: tuple[str, ...]


def match(first: Sequence[Column], second: Sequence[Column]) -> Matching:
    """Match by tensor name, then the remaining tensors by node name; shapes must agree except for axes of size 1.

    If a graph renames its model's tensors, the model's names count.

    A target's graph has additional nodes, for example a ReLU after its convolution. Then the convolution has the name
    of the model's node, and the ReLU's output has the name of the model's tensor. Matching names before nodes therefore
    pairs tensors of the same meaning. The convolution's output before such a ReLU has no counterpart in a graph with
    fused activations.
    """
    by_name = {**{c.source: c for c in second if c.source}, **{c.name: c for c in second}}
    partners: dict[str, Column] = {}
    for c in first:
        named = by_name.get(c.name) or by_name.get(c.source)
        if named is not None and _fits(c, named):
            partners[c.name] = named
    taken = {c.name for c in partners.values()}
    by_node: dict[str, Column] = {}
    inner = _before_activations(first) ^ _before_activations(second)
    for c in second:
        if c.node and c.name not in taken and c.node not in inner:
            by_node.setdefault(_base(c.node), c)
    for c in first:
        other = by_node.get(_base(c.node)) if c.name not in partners and c.node and c.node not in inner else None
        if other is not None and other.name not in taken and _fits(c, other):
            partners[c.name] = other
            taken.add(other.name)
    return Matching(
        tuple(Match(c, partners[c.name]) for c in first if c.name in partners),
        tuple(c.name for c in first if c.name not in partners),
        tuple(c.name for c in second if c.name not in taken),
    )


def nearest(name: str, known: Sequence[str]) -> str:
    """Return the names that look most like one, for messages."""
    return ", ".join(f"'{near}'" for near in difflib.get_close_matches(name, known, _NEAREST, 0.0))


def require_known(names: Sequence[str], known: Sequence[str], where: str) -> None:
    """Refuse names that are not known.

    Raises:
        InputError: all of them, each with the nearest ones.
    """
    unknown = [name for name in names if name not in known]
    if unknown:
        each = "; ".join(f"'{name}' (nearest: {nearest(name, known)})" for name in unknown[:5])
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        raise InputError(f"{where}: no tensor is called {each}{more}")


def _before_activations(columns: Sequence[Column]) -> set[str]:
    """Return the nodes with a separate activation node."""
    return {c.node.removesuffix("_activation") for c in columns if c.node.endswith("_activation")}


def _base(node: str) -> str:
    """Return the operator of the file that a node of a target's graph stems from."""
    return node.removesuffix("_activation").removesuffix("_reshape")


def _fits(a: Column, b: Column) -> bool:
    if a.tensor is None or b.tensor is None:
        return True
    return [n for n in a.tensor.shape if n != 1] == [n for n in b.tensor.shape if n != 1]


@dataclass(frozen=True)
class Segment:
    """Nodes that compute one matched tensor.

    Attributes:
        nodes: Nodes of the first graph, in order; the last writes the tensor.
        inputs: the matched tensors that they read, by index in the first graph.
        main: the node with the weights, or the last one.
        differences: Differences between the integers of both graphs' nodes, if both have the same kinds of nodes.
        multiplier_error: largest relative error of the multipliers against the scales that they approximate; None if
            the integers do not determine it.
        weights: Comparison with the second side's weights; None without weights or if they are equal.
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
    """Return the nodes that compute a tensor, and their differences.

    Args:
        first: graph in question.
        tensor: Tensor of `first`.
        matched: Tensors of `first` with a counterpart -> its index in the other graph.
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
    """Return errors of the multiplier and shift against the ratio of scales, as in MulBias and Multiplier."""
    errors = []
    for value in vars(params).values() if hasattr(params, "__dict__") and depth < 3 else ():
        parts = getattr(value, "__dict__", {})
        ratio = parts.get("ratio", parts.get("scale"))
        multiplier, shift = parts.get("multiplier"), parts.get("shift")
        arrays = all(isinstance(x, np.ndarray) for x in (ratio, multiplier, shift))
        if arrays and "zero_point" not in parts:
            real = np.asarray(ratio, np.float64)
            stands_for = np.asarray(multiplier, np.float64) * np.exp2(-np.asarray(shift, np.float64))
            errors.append(float(np.max(np.abs(stands_for / real - 1.0))))
        elif parts:
            errors += _errors(value, depth + 1)
    return errors
