"""Filter: the slices that a selector keeps move to the front; the code 0 behind them (docs/aipu.md, 5).

Source: Compass Optimizer, ops/filter.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.boxes import first_rows, take_rows, together
from tflq.interpreter.kernels.aipu.written import Written


@dataclass(frozen=True, eq=False)
class FilterRowsParams:
    """What one Filter does: the axis of each input behind the sample axis, the type of the count, the IR's part."""

    axes: tuple[int, ...]
    dtype: np.dtype[np.generic]
    written: Written


def lower(node: Node, operands: Operands) -> FilterRowsParams:
    """Take the axis. Inputs: `num` tensors, then the selector [L], kept where not 0. Outputs: the tensors, the count.

    Raises:
        UnsupportedError: inputs that do not have the selector's length on the axis.
    """
    axis, inputs = node.attributes.integer("axis"), [t for t in operands.inputs if t is not None]
    *data, selector = inputs
    for tensor in data:
        if tensor.shape[axis] != selector.shape[0]:
            raise UnsupportedError(
                f"'{tensor.name}' has {tensor.shape[axis]} slices on axis {axis}; allowed are the selector's "
                f"{selector.shape[0]}"
            )
    axes = tuple(axis % len(t.shape) + 1 for t in data)
    return FilterRowsParams(axes, operands.output(len(data)).dtype.storage, Written(real_offsets=(len(data),)))


def run(params: FilterRowsParams, *inputs: Array) -> tuple[Array, ...]:
    """Run Filter: codes [S, ...], selector [S, L] -> codes [S, ...], count [S]."""
    *data, selector = together(*inputs)
    order, count = first_rows(selector != 0, selector.shape[1])
    found = []
    for values, axis in zip(data, params.axes, strict=True):
        taken = take_rows(np.moveaxis(values, axis, 1), order, count)
        found.append(np.moveaxis(taken, 1, axis).astype(values.dtype))
    return (*found, count.astype(params.dtype))
