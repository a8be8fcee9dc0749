"""The order of images in memory: samples first, as numpy has it by default, or samples last (docs/performance.md).

The shape of an image's array is always [S, N, H, W, C]. Samples last means that it lies in memory as [N, C, H, W, S]:
neighbours are the same pixel of different samples. Then a channel is one long run, which constants of a channel meet
without being repeated, and the rows that a depthwise convolution reads are one matrix, without a copy. It pays from
SAMPLES_LAST_FROM samples on.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tflq.graph import ABSENT, Array, Graph
from tflq.interpreter.execution.costs import COSTS

SAMPLES_LAST_FROM = 32
"""Fewer samples make the runs too short."""


def is_samples_last(x: Array) -> bool:
    """Whether an array [S, N, H, W, C] lies in memory as [N, C, H, W, S]."""
    return x.ndim == 5 and x.shape[0] > 1 and x.strides[0] == x.itemsize and stored(x).flags.c_contiguous


def stored(x: Array) -> Array:
    """See [S, N, H, W, C] as [N, C, H, W, S]; no copy."""
    seen: Array = x.transpose(1, 4, 2, 3, 0)
    return seen


def logical(x: Array) -> Array:
    """See [N, C, H, W, S] as [S, N, H, W, C]; no copy."""
    seen: Array = x.transpose(4, 0, 2, 3, 1)
    return seen


def to_samples_last(x: Array) -> Array:
    """Return images with samples last; arrays of other ranks and those shared by all samples as they are."""
    return logical(np.ascontiguousarray(stored(x))) if x.ndim == 5 and x.shape[0] > 1 else x


def to_samples_first(x: Array) -> Array:
    """Return any array with samples first."""
    return np.ascontiguousarray(x) if is_samples_last(x) else x


def nodes_with_samples_last(graph: Graph, gains: Mapping[int, float]) -> frozenset[int]:
    """Return the nodes that run with samples last: all that can, or none where reordering costs more than they gain.

    Args:
        graph: the nodes and tensors.
        gains: of the nodes that can, in nanoseconds for a sample.
    """
    total = sum(gains.values())
    made = {t for i in gains for t in graph.nodes[i].outputs}
    read = {t for i in gains for t in graph.nodes[i].inputs if t != ABSENT and not graph.tensors[t].is_constant}
    elsewhere = {t for i, node in enumerate(graph.nodes) if i not in gains for t in node.inputs} | set(graph.outputs)
    crossing = (read - made) | (made & elsewhere)
    total -= COSTS.reordering * sum(graph.tensors[t].size for t in crossing)
    return frozenset(gains) if total > 0 else frozenset()
