"""RANDOM_STANDARD_NORMAL: float32 by Box and Muller's method from the Philox generator.

Of two uniform numbers, u1 at least 1e-7: r = f32(sqrt(-2 log u1)), angle = f32(2 pi u2); the results are r sin(angle)
and r cos(angle). log, sin and cos are rounded once; TFLite's are the host's.

Source: TFLite kernels/random_ops.cc, TensorFlow tsl/lib/random/random_distributions_utils.h (BoxMullerFloat).
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.plain.random_numbers import RandomNumbers, draw, lower_random, shaped
from tflq.interpreter.numerics.philox import uniform_floats
from tflq.interpreter.numerics.transcendental import cos, log, sin

STATEFUL = True


def lower(node: Node, operands: Operands) -> RandomNumbers:
    """Decide shape and seeds; raises as `lower_random`."""
    return lower_random(node, operands)


def run(params: RandomNumbers, shape: Array, state: Array | None = None) -> tuple[Array, ...]:  # noqa: ARG001
    """Run it: float32[1, *shape] and the new state."""
    words, new = draw(params, state)
    uniform = uniform_floats(words).reshape(-1, 2)
    radius = np.sqrt(np.float32(-2) * log(np.maximum(uniform[:, 0], np.float32(1e-7))))
    angle = (2 * np.pi * uniform[:, 1].astype(np.float64)).astype(np.float32)
    pairs = np.stack([sin(angle) * radius, cos(angle) * radius], axis=-1)
    return shaped(pairs, params.shape), new
