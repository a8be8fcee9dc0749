"""ArgMinMax: index of the smallest or largest code, the first on ties; uint16, scale 1 (docs/aipu.md, 5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.written import NOTHING, Written


@dataclass(frozen=True, eq=False)
class ArgParams:
    """The axis behind the sample axis, which extreme, and whether the last one counts on ties."""

    axis: int
    is_maximum: bool
    is_last: bool
    dtype: np.dtype[np.generic]
    written: Written = NOTHING


def lower(node: Node, operands: Operands) -> ArgParams:
    """Take the axis.

    Raises:
        UnsupportedError: another method than MIN or MAX.
    """
    method = node.attributes.text("method")
    if method not in ("MIN", "MAX"):
        raise UnsupportedError(f"method={method}; allowed is MIN, MAX")
    axis = node.attributes.integer("axis") % len(operands.input(0).shape) + 1
    is_last = node.attributes.boolean("select_last_index", False)
    return ArgParams(axis, method == "MAX", is_last, operands.output().dtype.storage)


def run(params: ArgParams, x: Array) -> tuple[Array, ...]:
    """Run ArgMinMax: codes [S, ...] -> indices with an axis of length 1."""
    seen = np.flip(x, params.axis) if params.is_last else x
    find = np.argmax if params.is_maximum else np.argmin
    found = np.expand_dims(find(seen, axis=params.axis), params.axis)
    if params.is_last:
        found = x.shape[params.axis] - 1 - found
    return (found.astype(params.dtype),)
