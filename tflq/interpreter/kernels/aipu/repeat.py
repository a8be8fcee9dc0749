"""Repeat: each slice as often as told, in a row; the code 0 behind them (docs/aipu.md, 5).

Source: Compass Optimizer, ops/repeat.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import InputError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.boxes import together
from tflq.interpreter.kernels.aipu.written import NOTHING, Written


@dataclass(frozen=True, eq=False)
class RepeatParams:
    """What one Repeat does: the axis, None for the flattened input; the output's shape; words for errors."""

    axis: int | None
    shape: tuple[int, ...]
    where: str
    written: Written = NOTHING


def lower(node: Node, operands: Operands) -> RepeatParams:
    """Take the axis. Inputs: data, repeats int32, one for each slice."""
    rank = len(operands.input(0).shape)
    axis = node.attributes.integer("axis") % rank if "axis" in node.attributes else None
    return RepeatParams(axis, operands.output().shape, operands.where)


def run(params: RepeatParams, x: Array, repeats: Array) -> tuple[Array, ...]:
    """Run Repeat: codes [S, ...], [S, L] -> codes [S, *shape].

    Raises:
        InputError: more slices than the output has.
    """
    x, repeats = together(x, repeats)
    found = np.zeros((len(x), *params.shape), x.dtype)
    room = params.shape[params.axis or 0]
    for s, values in enumerate(x):
        counts = repeats[s].reshape(-1).astype(np.int64)
        if counts.sum() > room:
            raise InputError(f"{params.where}: {counts.sum()} slices in sample {s}; allowed are {room}")
        part = np.repeat(values, counts, axis=params.axis)
        found[s][tuple(slice(n) for n in part.shape)] = part
    return (found,)
