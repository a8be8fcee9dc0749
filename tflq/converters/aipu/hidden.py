"""What layers compute within themselves and quantise by its own range.

The coordinates and deltas of box layers, the squares of LRN, the logarithms of Pow.
A node lists such tensors as its intermediates; they need ranges as outputs do. Source: Compass Optimizer,
ops/proposal.py, detectionoutput.py, LRN.py and pow.py, placeholders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tflq.converters.aipu.box_values import detection_values, proposal_values
from tflq.converters.calibration import StatisticsOptions
from tflq.converters.calibration.statistics import Statistics
from tflq.converters.calibration.strategies import bounds_of
from tflq.errors import UnsupportedError
from tflq.graph import Array, Graph, Node, Operands, Range

HIDDEN: Mapping[str, tuple[str, ...]] = {
    "lrn": ("square_sum",),
    "pow": ("log_outputs", "power_outputs", "exp_outputs"),
    "detection_output": ("coords", "box", "txty"),
    "proposal": ("coords", "box"),
}
"""Operator -> the names of its intermediates, in order."""

UNSIGNED = ("lrn",)
"""Operators whose intermediates are never below 0."""

Single = NDArray[np.float32]
_Rule = Callable[[Node, Operands, Sequence[Array]], tuple[Single, ...]]


def hidden_values(node: Node, operands: Operands, inputs: Sequence[Array]) -> tuple[Single, ...]:
    """Return the real numbers whose ranges a layer's intermediates get.

    Args:
        node: of a float graph.
        operands: its tensors; constants are real numbers.
        inputs: real[S, *shape] of each input that is no constant.
    """
    return _RULES[node.operator](node, operands, inputs)


def with_hidden_ranges(
    graph: Graph, layer: str, batches: Iterable[Sequence[Array]], options: StatisticsOptions | None = None
) -> Graph:
    """Return the graph with ranges on a layer's intermediates.

    Args:
        graph: float, of Compass's layers.
        layer: name of the node.
        batches: real[S, *shape] of each input of the layer that is no constant, batch by batch.
        options: the strategy; without, "mean" as the tool's default.

    Raises:
        UnsupportedError: no such layer, or one without intermediates; no batch.
    """
    chosen = options or StatisticsOptions("mean")
    found = [i for i, node in enumerate(graph.nodes) if node.name == layer and node.operator in HIDDEN]
    if not found:
        raise UnsupportedError(f"no layer '{layer}' with values of its own; allowed are {', '.join(HIDDEN)}")
    node, operands = graph.nodes[found[0]], graph.operands(found[0])
    statistics = [Statistics(chosen) for _ in HIDDEN[node.operator]]
    for batch in batches:
        for one, values in zip(statistics, hidden_values(node, operands, batch), strict=True):
            one.update(values)
    if not statistics[0].batches:
        raise UnsupportedError(f"layer '{layer}': there is no batch; give at least one")
    ranged = graph.copy()
    for t, one in zip(node.intermediates or (), statistics, strict=True):
        limits = [np.asarray([bound], np.float32) for bound in bounds_of(one, chosen)]
        ranged.tensors[t] = replace(ranged.tensors[t], range=Range(*limits))
    return ranged


def _lrn(node: Node, _operands: Operands, inputs: Sequence[Array]) -> tuple[Single, ...]:
    """Return the mean of the squares over each window of channels."""
    size = node.attributes.integer("size")
    squares = np.square(np.asarray(inputs[0], np.float32))
    padded = np.pad(squares, [(0, 0)] * (squares.ndim - 1) + [(size // 2, (size - 1) // 2)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, size, axis=-1)
    return ((windows.sum(axis=-1, dtype=np.float32) / np.float32(size)).astype(np.float32),)


def _pow(_node: Node, _operands: Operands, inputs: Sequence[Array]) -> tuple[Single, ...]:
    """Return log(|x| + eps), p times it, and its exponential, each rounded to float32."""
    x, p = (np.asarray(v, np.float32) for v in inputs)
    logarithm = np.log((np.abs(x) + _EPSILON).astype(np.float64)).astype(np.float32)
    product = (logarithm * p).astype(np.float32)
    return logarithm, product, np.exp(product.astype(np.float64)).astype(np.float32)


_EPSILON = np.finfo(np.float32).eps
_RULES: dict[str, _Rule] = {
    "detection_output": detection_values,
    "lrn": _lrn,
    "pow": _pow,
    "proposal": proposal_values,
}
