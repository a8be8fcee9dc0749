"""RELU and RELU6 in GAP9's arithmetic: the lower clamp; the upper one is the end of the type (docs/gap9.md, 1.4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.gap9.rounding import code_type


@dataclass(frozen=True)
class ReluIntegers:
    """The clamp.

    Attributes:
        lower_bound: the code of 0.
        idle: whether no code lies below it.
    """

    lower_bound: int
    idle: bool


def lower(node: Node, operands: Operands) -> ReluIntegers:  # noqa: ARG001
    """Decide the clamp.

    Raises:
        UnsupportedError: input and output differ in type; scales may differ as the tool's rule of equality allows.
    """
    x, y = operands.input(0).affine, operands.output().affine
    equal = np.allclose(x.scale, y.scale) and np.array_equal(x.zero_point, y.zero_point)
    if code_type(x) is not code_type(y) or not equal:
        raise UnsupportedError(
            f"input '{operands.input(0).name}' and output '{operands.output().name}' differ in scale or zero point; "
            "a ReLU keeps them"
        )
    bound = int(y.zero_point[0])
    return ReluIntegers(bound, bound <= y.minimum_code)


def run(integers: ReluIntegers, x: Array) -> tuple[Array, ...]:
    """Run RELU: max(x, lower_bound), codes [S, *shape]."""
    return (x if integers.idle else np.maximum(x, x.dtype.type(integers.lower_bound)),)
