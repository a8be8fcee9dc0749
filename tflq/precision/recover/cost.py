"""What a recovery takes, told before it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tflq.graph import Graph
from tflq.graph.arena import macs
from tflq.precision.recover.areas import Areas

_COPIES = 3
"""Of a layer's windows: as gathered, as float64, and turned for the product."""

_MATRICES = 4
"""K x K matrices of a group that are held at a time."""

_JUDGINGS = 3
"""Runs of the samples kept aside for each layer: as it was, with a new bias, with new weights."""


@dataclass(frozen=True)
class Cost:
    """Upper bounds.

    Attributes:
        layers: filters that may be recovered.
        macs: multiply-accumulates of all runs, in floating point and in the target's integers.
        peak_bytes: of what the largest layer is fitted to, beside the tensors of the samples that run.
    """

    layers: int
    macs: int
    peak_bytes: int


def cost_of(graph: Graph, areas: Mapping[int, tuple[Areas, ...]], samples: tuple[int, int]) -> Cost:
    """Return what a recovery takes.

    Args:
        graph: the float network.
        areas: node of a filter -> what it is fitted to.
        samples: how many it is fitted to, and how many are kept aside.
    """
    fitted, aside = samples
    whole = sum(macs(graph, index) for index in range(len(graph.nodes)))
    runs = (fitted + aside) + len(areas) * (fitted + _JUDGINGS * aside)
    kept = sum(4 * len(part.chosen) * part.of.channels for parts in areas.values() for part in parts)
    return Cost(len(areas), whole * runs, kept + max((_layer_bytes(parts) for parts in areas.values()), default=0))


def _layer_bytes(parts: tuple[Areas, ...]) -> int:
    of = parts[0].of
    depth = int(np.prod(of.shape)) // of.channels
    windows = sum(len(part.chosen) for part in parts) * of.groups * depth
    return 8 * (_COPIES * windows + _MATRICES * of.groups * depth * depth)
