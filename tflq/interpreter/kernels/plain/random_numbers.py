"""What RANDOM_UNIFORM and RANDOM_STANDARD_NORMAL share: a shape, seeds, and groups of four numbers.

Each invocation goes on where the last one ended, at a whole group.

Source: TFLite kernels/random_ops.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.numerics.philox import Words, philox, seeds_of
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.operands.result_size import require_result

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


def lower_random(node: Node, operands: Operands) -> RandomNumbers:
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


def draw(params: RandomNumbers, state: Array | None) -> tuple[Words, Array]:
    """Return words enough for the shape, uint64[groups, 4], and the new state int64[1, 1]."""
    position = 0 if state is None else int(state.astype(np.int64)[0, 0])
    groups = -(-int(np.prod(params.shape, dtype=np.int64)) // GROUP)
    return philox(params.seeds, position, groups), np.array([[position + groups]], np.int64)


def shaped(numbers: Array, shape: tuple[int, ...]) -> Array:
    """Cut numbers to a shape, with the sample axis in front."""
    return numbers.reshape(-1)[: int(np.prod(shape, dtype=np.int64))].reshape(1, *shape)
