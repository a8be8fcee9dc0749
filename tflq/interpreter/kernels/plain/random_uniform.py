"""RANDOM_UNIFORM: float32 in [0, 1) from the Philox generator.

Source: TFLite kernels/random_ops.cc (GenerateRandomUniformNumbers).
"""

from __future__ import annotations

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.plain.random_numbers import RandomNumbers, draw, lower_random, shaped
from tflq.interpreter.numerics.philox import uniform_floats

STATEFUL = True


def lower(node: Node, operands: Operands) -> RandomNumbers:
    """Decide shape and seeds; raises as `lower_random`."""
    return lower_random(node, operands)


def run(params: RandomNumbers, shape: Array, state: Array | None = None) -> tuple[Array, ...]:  # noqa: ARG001
    """Run it: float32[1, *shape] and the new state."""
    words, new = draw(params, state)
    return shaped(uniform_floats(words), params.shape), new
