"""RANDOM_UNIFORM and RANDOM_STANDARD_NORMAL: float32[1, *shape] from groups of four words of the Philox generator.

Each invocation goes on where the last one ended, at a whole group.

Normal numbers come by Box and Muller's method: of two uniform numbers, u1 at least 1e-7, r = f32(sqrt(-2 log u1)),
angle = f32(2 pi u2); the results are r sin(angle) and r cos(angle). log, sin and cos are rounded once; TFLite's are the
host's.

Source: TFLite kernels/random_ops.cc, TensorFlow tsl/lib/random/random_distributions_utils.h (BoxMullerFloat).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.numerics.philox import philox, seeds_of, uniform_floats
from tflq.interpreter.numerics.transcendental import cos, log, sin
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.operands.result_size import require_result
from tflq.interpreter.registry import Kernel

GROUP = 4


@dataclass(frozen=True)
class RandomNumbers:
    """What a generator needs.

    Attributes:
        shape: of the output.
        seeds: both.
    """

    shape: tuple[int, ...]
    seeds: tuple[int, int]


def _lower(node: Node, operands: Operands) -> RandomNumbers:
    """Check the operands: the shape int32[rank], and a float32 output.

    Raises:
        UnsupportedError: other types.
        GraphError: a shape of another rank than 1, or a negative size.
        RuntimeOperandError: the shape is computed at run time.
    """
    require_type(operands.output(), (DType.FLOAT32,))
    require_type(operands.input(0), (DType.INT32,))
    sizes = operands.constant(0)
    if sizes.ndim != 1 or (sizes.astype(np.int64) < 0).any():
        raise GraphError(f"the shape is {sizes.tolist()}; it is a list of sizes of 0 or more")
    shape = tuple(int(n) for n in sizes.astype(np.int64))
    require_result(shape, DType.FLOAT32)
    return RandomNumbers(shape, seeds_of(node.attributes))


def _run(
    params: RandomNumbers,
    shape: Array,  # noqa: ARG001
    state: Array | None = None,
    *,
    distribution: Callable[[NDArray[np.float32]], NDArray[np.float32]],
) -> tuple[Array, ...]:
    """Return float32[1, *shape] and the new state int64[1, 1]."""
    position = 0 if state is None else int(state.astype(np.int64)[0, 0])
    count = int(np.prod(params.shape, dtype=np.int64))
    groups = -(-count // GROUP)
    drawn = distribution(uniform_floats(philox(params.seeds, position, groups)))
    return drawn.reshape(-1)[:count].reshape(1, *params.shape), np.array([[position + groups]], np.int64)


def _normal(uniform: NDArray[np.float32]) -> NDArray[np.float32]:
    first, second = uniform.reshape(-1, 2).T
    radius = np.sqrt(np.float32(-2) * log(np.maximum(first, np.float32(1e-7))))
    angle = (2 * np.pi * second.astype(np.float64)).astype(np.float32)
    return np.stack([sin(angle) * radius, cos(angle) * radius], axis=-1)


KERNELS = {
    "random_uniform": Kernel(
        _lower,
        partial(_run, distribution=lambda uniform: uniform),
        "RANDOM_UNIFORM: float32 in [0, 1)",
        "TFLite kernels/random_ops.cc (GenerateRandomUniformNumbers)",
        stateful=True,
    ),
    "random_standard_normal": Kernel(
        _lower,
        partial(_run, distribution=_normal),
        "RANDOM_STANDARD_NORMAL: float32 by Box and Muller's method",
        "TFLite kernels/random_ops.cc, TensorFlow tsl/lib/random/random_distributions_utils.h (BoxMullerFloat)",
        stateful=True,
    ),
}
