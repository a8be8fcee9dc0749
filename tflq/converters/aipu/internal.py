"""Ranges of what layers compute within themselves and quantise: coordinates of boxes, squares, logarithms.

A node lists such tensors as its intermediates; they need ranges as outputs do. Each layer's row says how they follow
from its inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from tflq.converters.aipu.operators import LAYERS
from tflq.converters.calibration import StatisticsOptions
from tflq.converters.calibration.statistics import Statistics
from tflq.converters.calibration.strategies import bounds_of
from tflq.errors import UnsupportedError
from tflq.graph import Array, Graph, Node, Operands, Range

_WITH_VALUES = ("lrn", "pow", "detection_output", "proposal")


def internal_names(operator: str, steps: int = 0) -> tuple[str, ...]:
    """Return the names of a layer's intermediates, in order; of a recurrent layer of so many time steps."""
    found = LAYERS[operator].internal
    if found is None:
        return ()
    return (*found.names, *(f"{found.each_step}_{t}" for t in range(steps if found.each_step else 0)))


def internal_values(node: Node, operands: Operands, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """Return the real numbers whose ranges a layer's intermediates get.

    Args:
        node: of a float graph.
        operands: its tensors; constants are real numbers.
        inputs: real[S, *shape] of each input that is no constant.
    """
    found = LAYERS[node.operator].internal
    return () if found is None else found.values(node, operands, inputs)


def with_internal_ranges(
    graph: Graph, layer: str, batches: Iterable[Sequence[Array]], options: StatisticsOptions | None = None
) -> Graph:
    """Return the graph with ranges on a layer's intermediates.

    Args:
        graph: float, of Compass's layers.
        layer: name of the node.
        batches: real[S, *shape] of each input of the layer that is no constant, batch by batch.
        options: the strategy; without, "mean" the Optimizer's default.

    Raises:
        UnsupportedError: no such layer, or one without intermediates; no batch.
    """
    chosen = options or StatisticsOptions("mean")
    found = [i for i, node in enumerate(graph.nodes) if node.name == layer and internal_names(node.operator)]
    if not found:
        raise UnsupportedError(f"no layer '{layer}' with values of its own; allowed are {', '.join(_WITH_VALUES)}")
    node, operands = graph.nodes[found[0]], graph.operands(found[0])
    statistics = [Statistics(chosen) for _ in internal_names(node.operator)]
    for batch in batches:
        for one, values in zip(statistics, internal_values(node, operands, batch), strict=True):
            one.update(np.asarray(values, np.float32))
    if not statistics[0].batches:
        raise UnsupportedError(f"layer '{layer}': there is no batch; give at least one")
    ranged = graph.copy()
    for t, one in zip(node.intermediates or (), statistics, strict=True):
        limits = [np.asarray([bound], np.float32) for bound in bounds_of(one, chosen)]
        ranged.tensors[t] = replace(ranged.tensors[t], range=Range(*limits))
    return ranged
