"""How a network is recovered, and what was done to it.

What a layer's constants are fitted to, and which of them may move: tflq's own way, and objectives of vendors' tools.

The engine is one: moments of a filter's windows, and descent over its quantized weights. An objective of a tool says
what is summed and what may move; the tool's training, random and by gradients, is not repeated.

What a recovery takes, told before it starts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tflq.converters.precision import GLOBAL_CALIBRATION
from tflq.converters.settings import Settings
from tflq.graph import Graph, Model
from tflq.graph.arena import macs
from tflq.parallel.executions import Execution
from tflq.precision.recover.areas import Areas


@dataclass(frozen=True)
class Objective:
    """How the constants of a filter are found.

    Attributes:
        reads_float: the filter reads the float network's values in the target's own type of its input; else what the
            target's earlier layers wrote.
        rounds: each weight becomes one of the two quantized values around it, single output positions alone count, and
            nothing draws towards the model's own weights; at any width.
        moves_scale: scales of weights move.
        moves_bias: biases move.
    """

    reads_float: bool = False
    rounds: bool = False
    moves_scale: bool = True
    moves_bias: bool = True


RECOVERY = Objective()
"""tflq's own (docs/guides/recover.md)."""

_OBJECTIVES = {
    "none": RECOVERY,
    "adaround": Objective(rounds=True, moves_scale=False, moves_bias=False),
    "adaquant_zy": Objective(reads_float=True, rounds=True),
}
"""Source: Compass Optimizer, features/calibration/global_calibration, as docs/targets/aipu.md has them."""


def objective_of(settings: Settings) -> Objective:
    """Return the objective that complete settings name; tflq's own for targets without that key."""
    return _OBJECTIVES[str(settings.values.get(GLOBAL_CALIBRATION, "none"))]


NOTHING, BIAS, WEIGHTS, ALL = "nothing", "bias", "weights", "weights and bias"
WORSE = "nothing was nearer to float on the samples kept aside"


@dataclass(frozen=True)
class RecoverySettings:
    """How layers are recovered.

    Attributes:
        rows: output positions of a filter that are fitted to.
        seed: of their choice.
        bias_only: leave all weights as they are.
        most_bits: find new quantized weights up to these bits; wider layers get a new bias only.
        jobs: threads that run samples; results do not depend on them.
    """

    rows: int = 8000
    seed: int = 0
    bias_only: bool = False
    most_bits: int = 6
    jobs: int = 1


@dataclass(frozen=True)
class LayerRecovery:
    """What was done to one filter.

    Attributes:
        index: of its node in the float network.
        name: of that node.
        operator: of that node.
        bits: of its weights under the target; None where they were not found there.
        kept: of what was found: "weights and bias", "weights", "bias", or "nothing".
        reason: why nothing, or no weights; else empty.
        fit_db: of the filter's own result on the samples that it was fitted to, before and after: SQNR, in dB.
        bias_db: of the layer's result on the samples kept aside with its new bias alone, in dB.
        held_out_db: of the layer's result in the target's integers on the samples kept aside, before and after.
        changed: share of the quantized weights that are others now.
        bias_steps: largest change of a bias, in quantized values of the result; NaN where they are not known.
    """

    index: int
    name: str
    operator: str
    bits: int | None
    kept: str
    reason: str
    fit_db: tuple[float, float] = (math.nan, math.nan)
    bias_db: float = math.nan
    held_out_db: tuple[float, float] = (math.nan, math.nan)
    changed: float = 0.0
    bias_steps: float = math.nan


@dataclass(frozen=True)
class Recovery:
    """A network that was recovered.

    Attributes:
        network: the float network with the new weights and biases, and its ranges.
        plain: the same with the model's own.
        layers: its filters in order of execution.
        execution: the network under the target.
        plain_execution: the plain one.
        reason: why the whole network was left as it was; else empty.
    """

    network: Model
    plain: Model
    layers: tuple[LayerRecovery, ...]
    execution: Execution
    plain_execution: Execution
    reason: str = ""


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
