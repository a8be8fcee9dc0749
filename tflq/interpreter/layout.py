"""The order of images in memory: samples first or last; the costs of the steps decide.

The shape of an image's array is always [S, N, H, W, C]. Samples last means that it is stored in memory as [N, C, H, W,
S]: neighbors are the same pixel of different samples. Then a channel is one long run, which constants of a channel meet
without being repeated, and the rows that a depthwise convolution reads are one matrix, without a copy. It pays from
SAMPLES_LAST_FROM samples on.

Costs of the steps on the machine that tflq was tuned on: choices of order and blocking weigh them, results do not.

`scripts/bench_interpreter.py --costs` measures the costs of samples first and last, and prints them next to these
numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tflq.graph import ABSENT, Array, Graph

SAMPLES_LAST_FROM = 32
"""Fewer samples make the runs too short."""


def is_samples_last(x: Array) -> bool:
    """Whether an array [S, N, H, W, C] is stored in memory as [N, C, H, W, S]."""
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
    """Return images with samples last; arrays of other ranks or shared by all samples are unchanged."""
    return logical(np.ascontiguousarray(stored(x))) if x.ndim == 5 and x.shape[0] > 1 else x


def to_samples_first(x: Array) -> Array:
    """Return any array with samples first."""
    return np.ascontiguousarray(x) if is_samples_last(x) else x


def nodes_with_samples_last(graph: Graph, gains: Mapping[int, float]) -> frozenset[int]:
    """Return the nodes that run with samples last: all that can, or none if reordering costs more than they gain.

    Args:
        graph: the nodes and tensors.
        gains: Gains of the nodes that can, in nanoseconds for a sample.
    """
    total = sum(gains.values())
    made = {t for i in gains for t in graph.nodes[i].outputs}
    read = {t for i in gains for t in graph.nodes[i].inputs if t != ABSENT and not graph.tensors[t].is_constant}
    elsewhere = {t for i, node in enumerate(graph.nodes) if i not in gains for t in node.inputs} | set(graph.outputs)
    crossing = (read - made) | (made & elsewhere)
    total -= COSTS.reordering * sum(graph.tensors[t].size for t in crossing)
    return frozenset(gains) if total > 0 else frozenset()


@dataclass(frozen=True)
class Dense:
    """Nanoseconds for each product of a dense convolution.

    Attributes:
        channels: Largest number of output channels.
        first: Cost with samples first.
        last: Cost with samples last, for which few output channels make a low matrix.
    """

    channels: float
    first: float
    last: float


@dataclass(frozen=True)
class Costs:
    """Nanoseconds; only their ratios matter.

    Attributes:
        reordering: Cost of each element that is moved to the other order.
        depthwise_output: Cost of each output of a depthwise convolution with samples first,
        depthwise_tap: and for each of its taps.
        band_product: Cost of each product with a band matrix, samples last,
        band_call: and for each call of the BLAS, a sample.
        dense: Costs by number of output channels, ascending.
        patch_product: Cost of each product with patches of few channels,
        narrow: more by this number over the matrix's columns,
        copied_run: Cost of each run of columns that is copied into a patch,
        copied_element: and for each of its elements.
    """

    reordering: float = 0.5
    depthwise_output: float = 0.6
    depthwise_tap: float = 1 / 7
    band_product: float = 1 / 70
    band_call: float = 5
    dense: tuple[Dense, ...] = (
        Dense(16, 1 / 85, 1 / 40),
        Dense(32, 1 / 103, 1 / 73),
        Dense(float("inf"), 1 / 107, 1 / 90),
    )
    patch_product: float = 1 / 55
    narrow: float = 8
    copied_run: float = 4
    copied_element: float = 1 / 20


COSTS = Costs()
