"""Reduce MEAN by the whitepaper (4.53): the input's scale and zero point pass, y = clamp(RNE(mean of codes))."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.codes import OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.written import NOTHING, Written


@dataclass(frozen=True, eq=False)
class MeanParams:
    """The axes behind the sample axis, the number of codes that are averaged, and how they are stored."""

    axes: tuple[int, ...]
    count: int
    codes: OutputCodes
    written: Written = NOTHING


def lower(node: Node, operands: Operands) -> MeanParams:
    """Decide the axes."""
    shape, codes = operands.input(0).shape, codes_of(operands.output())
    axes = tuple(axis % len(shape) for axis in node.attributes.integers("axis"))
    # Codes are averaged as they are: their zero point stays in them.
    plain = OutputCodes(0, codes.minimum, codes.maximum, codes.dtype)
    return MeanParams(tuple(a + 1 for a in axes), int(np.prod([shape[a] for a in axes])), plain)


def run(params: MeanParams, x: Array) -> tuple[Array, ...]:
    """Run MEAN: codes [S, ...] -> codes [S, ...] with axes of length 1."""
    total = x.astype(np.int64).sum(axis=params.axes, keepdims=True)
    return (params.codes.store(np.rint(total / params.count)),)
