"""MULTINOMIAL: draws classes by their logits, float32 [B, C] -> int32 or int64 [B, N].

Cumulative sums of exp(logit - largest) in float64, classes that are not finite left out; a class is the first whose sum
exceeds u * total, u from two words of the Philox generator. One invocation uses up 512 groups for every four samples.

Source: TFLite kernels/random_ops.cc (GenerateMultinomialNumbers).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.numerics.philox import Words, philox, seeds_of, uniform_doubles
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.operands.result_size import require_result

STATEFUL = True

_RESERVED = 2 * 256


@dataclass(frozen=True)
class Multinomial:
    """What MULTINOMIAL needs.

    Attributes:
        count: N.
        dtype: of the output.
        seeds: both.
    """

    count: int
    dtype: DType
    seeds: tuple[int, int]


def lower(node: Node, operands: Operands) -> Multinomial:
    """Check the operands.

    Raises:
        UnsupportedError: other types.
        GraphError: logits that are no matrix, or a count that is no number of 0 or more.
        RuntimeOperandError: the count is computed at run time.
    """
    logits, count = operands.input(0), operands.input(1)
    require_type(logits, (DType.FLOAT32,))
    require_type(count, (DType.INT32,))
    dtype = require_type(operands.output(), (DType.INT32, DType.INT64))
    samples = operands.constant(1).astype(np.int64)
    if len(logits.shape) != 2 or logits.shape[1] < 1 or samples.shape or samples < 0:
        raise GraphError(f"logits {logits.shape} and a count of {samples.tolist()}; a matrix and a number are needed")
    require_result((logits.shape[0], int(samples)), dtype)
    return Multinomial(int(samples), dtype, seeds_of(node.attributes))


def run(
    params: Multinomial,
    logits: Array,
    count: Array,  # noqa: ARG001
    state: Array | None = None,
) -> tuple[Array, ...]:
    """Run it: float32[1, B, C] -> int[1, B, N] and the new state."""
    position = 0 if state is None else int(state.astype(np.int64)[0, 0])
    rows = cast(NDArray[np.float32], logits)[0]
    drawn = params.count * len(rows)
    words: Words = philox(params.seeds, position, -(-drawn // 2)).reshape(-1, 2)[:drawn]
    u = uniform_doubles(np.ascontiguousarray(words[:, 0]), words[:, 1]).reshape(len(rows), params.count)
    result = np.empty((1, len(rows), params.count), params.dtype.storage)
    for b, row in enumerate(rows):
        finite = np.isfinite(row)
        largest = row[finite].max(initial=np.finfo(np.float32).min).astype(np.float64)
        odds = np.where(finite, np.exp(np.where(finite, row, 0).astype(np.float64) - largest), 0.0)
        sums = np.add.accumulate(odds)
        result[0, b] = np.searchsorted(sums, u[b] * sums[-1], side="right")
    used = len(rows) * -(-params.count // 4) * 4 * _RESERVED
    return result, np.array([[position + used]], np.int64)
