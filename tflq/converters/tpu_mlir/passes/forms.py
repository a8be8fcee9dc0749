"""TPU-MLIR's view of an operator: the kind of its constant operand, and the axes that it reduces.

Source: docs/rules/tpu_mlir.md, docs/rules/tpu_mlir_operators.md.
"""

from __future__ import annotations

from enum import Enum

import numpy as np
from numpy.typing import NDArray

from tflq.converters.exchange.emitter import CLAMPS
from tflq.converters.passes.patterns import axis_first, constant_operand, shape_first
from tflq.graph import Graph, Node
from tflq.graph.operators import Trait, with_traits
from tflq.graph.rewriting import GraphEditor

CHANNELS_LAST = "channels_last"
"""Attribute of a node whose tensors of 4 axes have the model's own order in TPU-MLIR, too, not [N, C, H, W]."""

PAIRS = ("add", "sub", "mul", "div", "maximum", "minimum")
RECTIFIER_LIMITS = {name: np.inf if high is None else float(high) for name, (low, high) in CLAMPS.items() if low == 0}
"""Upper bound of each rectifier; the lower one is 0."""
COMPARISONS = with_traits(Trait.COMPARISON) - {"not_equal"}


class Form(Enum):
    """The operands of an operator of two tensors."""

    TWO = "two activations"
    SCALAR = "one number"  # also a constant whose values are all equal
    CHANNEL = "one number for each place along the second axis, of an image the channels"
    FULL = "any other constant"


def form_of(graph: Graph | GraphEditor, node: Node) -> Form:
    """Return what the constant operand of an operator of two tensors is."""
    found = constant_of(graph, node)
    if found is None:
        return Form.TWO
    value, other = found
    if value.size and np.all(value == value.reshape(-1)[0]):
        return Form.SCALAR
    shape = (1,) * (len(other) - value.ndim) + value.shape
    if len(other) != 4 or len(shape) != 4:
        return Form.FULL
    shape, other = (s if is_channels_last(node) else shape_first(s) for s in (shape, other))
    is_channel = shape[1] == other[1] == value.size and not (node.operator == "add" and shape == other)
    return Form.CHANNEL if is_channel else Form.FULL


def is_channels_last(node: Node) -> bool:
    """Whether TPU-MLIR, too, has the tensors of a node with channels last."""
    return node.attributes.boolean(CHANNELS_LAST, False)


def seen_axis(node: Node, axis: int, rank: int) -> int:
    """Return which axis TPU-MLIR calls that one; negative ones count from the back."""
    return axis % rank if is_channels_last(node) else axis_first(axis, rank)


def constant_of(graph: Graph | GraphEditor, node: Node) -> tuple[NDArray[np.float32], tuple[int, ...]] | None:
    """Return the constant operand, float32, and the shape of the other one; None where both are computed."""
    position = constant_operand(graph, node)
    if position is None:
        return None
    value, other = (graph.tensors[node.inputs[p]] for p in (position, 1 - position))
    assert value.data is not None
    return value.data.astype(np.float32), other.shape


def scalar_of(graph: Graph | GraphEditor, node: Node) -> float:
    """Return the one number of a scalar operand."""
    found = constant_of(graph, node)
    assert found is not None
    return float(found[0].reshape(-1)[0])


def is_constant_first(graph: Graph | GraphEditor, node: Node) -> bool:
    """Whether the constant stands in front: c - x, c / x."""
    return constant_operand(graph, node) == 0


def reduced_axes(graph: Graph | GraphEditor, node: Node) -> tuple[int, ...]:
    """Return the axes that a reduction removes, counted from the front; all of them where they are not known."""
    rank, data = len(graph.tensors[node.inputs[0]].shape), graph.tensors[node.inputs[1]].data
    return tuple(range(rank)) if data is None else tuple(sorted({int(a) % rank for a in data.reshape(-1)}))


def is_pool(graph: Graph | GraphEditor, node: Node) -> bool:
    """Whether a mean or maximum is a pool over the whole image: axes 1 and 2 of [N, H, W, C]."""
    if node.operator not in ("mean", "reduce_max"):
        return False
    images = len(graph.tensors[node.inputs[0]].shape) == 4 and not is_channels_last(node)
    return images and reduced_axes(graph, node) == (1, 2)


def is_mean(graph: Graph | GraphEditor, node: Node) -> bool:
    """Whether a mean is an average pool over the whole image."""
    return node.operator == "mean" and is_pool(graph, node)
