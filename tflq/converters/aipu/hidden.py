"""What layers compute within themselves and quantise by its own range: the coordinates and deltas of box layers.

A node lists such tensors as its intermediates; they need ranges as outputs do. Source: Compass Optimizer,
ops/proposal.py and detectionoutput.py, placeholders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tflq.converters.aipu.box_values import detection_values, proposal_values
from tflq.converters.calibration import CalibrationOptions
from tflq.converters.calibration.statistics import Statistics
from tflq.converters.calibration.strategies import bounds_of
from tflq.errors import UnsupportedError
from tflq.graph import Array, Graph, Node, Operands, Range

HIDDEN: Mapping[str, tuple[str, ...]] = {
    "detection_output": ("coords", "box", "txty"),
    "proposal": ("coords", "box"),
}
"""Operator -> the names of its intermediates, in order."""

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
    graph: Graph, layer: str, batches: Iterable[Sequence[Array]], options: CalibrationOptions | None = None
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
    chosen = options or CalibrationOptions("mean")
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


_RULES: dict[str, _Rule] = {"detection_output": detection_values, "proposal": proposal_values}
