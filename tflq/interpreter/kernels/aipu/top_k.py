"""TopK: the k largest or smallest codes along an axis, and their indices (docs/aipu.md, 5).

Equal codes: the first place wins, or the last one with select_index=last. Codes pass their type, indices are uint16.

Source: Compass Optimizer, ops/topk.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.written import NOTHING, Written

CHOICES = ("first", "last")


@dataclass(frozen=True, eq=False)
class TopKParams:
    """The axis behind the sample axis, k, which end of the order, which place on ties, the indices' type."""

    axis: int
    count: int
    is_largest: bool
    is_last: bool
    index: np.dtype[np.generic]
    written: Written = NOTHING


def lower(node: Node, operands: Operands) -> TopKParams:
    """Take axis and k.

    Raises:
        UnsupportedError: another choice among equal codes.
    """
    choice = node.attributes.text("select_index", "last")
    if choice not in CHOICES:
        raise UnsupportedError(f"select_index={choice}; allowed is {', '.join(CHOICES)}")
    shape = operands.input(0).shape
    axis = node.attributes.integer("axis") % len(shape)
    count = min(node.attributes.integer("k"), shape[axis])
    is_largest = node.attributes.boolean("largest", True)
    return TopKParams(axis + 1, count, is_largest, choice == "last", operands.output(1).dtype.storage)


def run(params: TopKParams, x: Array) -> tuple[Array, ...]:
    """Run TopK: codes [S, ...] -> codes and indices, `count` of them along the axis."""
    seen = np.flip(x, params.axis) if params.is_last else x
    key = seen.astype(np.int64)
    order = np.argsort(-key if params.is_largest else key, axis=params.axis, kind="stable")
    order = np.take(order, np.arange(params.count), axis=params.axis)
    codes = np.take_along_axis(seen, order, axis=params.axis)
    places = x.shape[params.axis] - 1 - order if params.is_last else order
    return codes, places.astype(params.index)
