"""A custom operator in a file: `tflq run model.tflite --kernels mish.py`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True)
class Mish:
    """No params."""


def lower(node: Node, operands: Operands) -> Mish:
    """Decide nothing."""
    return Mish()


def run(params: Mish, x: Array) -> tuple[Array, ...]:
    """Run Mish: x * tanh(ln(1 + e^x)), float32 [S, *shape] -> float32 [S, *shape]."""
    real = x.astype(np.float64)
    return ((real * np.tanh(np.logaddexp(0, real))).astype(np.float32),)


KERNELS = {"float": {"Mish": Kernel(lower, run, "x * tanh(ln(1 + e^x))", "Misra, 2019")}}
