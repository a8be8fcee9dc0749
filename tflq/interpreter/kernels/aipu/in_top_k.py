"""InTopK: whether the target's code is among the k largest of its row; a tie with the k-th counts (docs/aipu.md, 5).

Source: Compass Optimizer, ops/intopk.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.boxes import together
from tflq.interpreter.kernels.aipu.written import NOTHING, Written


@dataclass(frozen=True, eq=False)
class InTopKParams:
    """What one InTopK does: k, at most the length of a row."""

    k: int
    written: Written = NOTHING


def lower(node: Node, operands: Operands) -> InTopKParams:
    """Take k. Inputs: predictions [N, C], targets int32[N]; output uint8[N]."""
    return InTopKParams(min(node.attributes.integer("k"), operands.input(0).shape[-1]))


def run(params: InTopKParams, predictions: Array, targets: Array) -> tuple[Array, ...]:
    """Run InTopK: codes [S, N, C], [S, N] -> 0 or 1, [S, N]."""
    predictions, targets = together(predictions, targets)
    places = targets.reshape(len(targets), -1, 1).astype(np.int64)
    named = np.take_along_axis(predictions, places, axis=-1)[..., 0]
    limit = np.sort(predictions, axis=-1)[..., -params.k]
    return (np.greater_equal(named, limit).astype(np.uint8),)
