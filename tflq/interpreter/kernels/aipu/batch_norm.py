"""BatchNorm: one weight and bias a channel, r = s_y / (s_x * s_w) (docs/aipu.md, 3).

Source: Compass Optimizer, ops/bn.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.filter import FilterParams, lower_filter
from tflq.interpreter.kernels.aipu.written import Written


@dataclass(frozen=True, eq=False)
class BatchNormParams:
    """The integers of one batch normalisation, the channel last."""

    filter: FilterParams

    @property
    def written(self) -> Written:
        """What stands in the IR."""
        return self.filter.written


def lower(node: Node, operands: Operands) -> BatchNormParams:
    """Decide M and N.

    Raises:
        UnsupportedError: another axis than the last.
    """
    rank = len(operands.input(0).shape)
    axis = node.attributes.integer("axis", -1)
    if axis % rank != rank - 1:
        raise UnsupportedError(f"axis={axis}; allowed is the last, {rank - 1}")
    found = lower_filter(node, operands)
    if node.attributes.boolean("is_merged", False):
        added = {"axis": axis, "epsilon": node.attributes.integer("epsilon")}
        found = replace(found, written=replace(found.written, added=added))
    return BatchNormParams(found)


def run(params: BatchNormParams, x: Array, *_constants: Array) -> tuple[Array, ...]:
    """Run BatchNorm: codes [S, ..., C] -> codes [S, ..., C]."""
    return (params.filter.finish(x.astype(np.int64) * params.filter.weights),)
