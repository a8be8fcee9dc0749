"""Constant: the codes of its weights."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.written import NOTHING, Written


@dataclass(frozen=True, eq=False)
class ConstantParams:
    """Nothing to decide."""

    written: Written = NOTHING


def lower(_node: Node, _operands: Operands) -> ConstantParams:
    """Decide nothing: the quantiser made the codes."""
    return ConstantParams()


def run(_integers: ConstantParams, weights: Array) -> tuple[Array, ...]:
    """Return the codes."""
    return (weights,)
