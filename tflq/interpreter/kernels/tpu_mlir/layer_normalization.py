"""LAYER_NORMALIZATION over the last axis: float16 in, float32 inside, its result not rounded (docs/tpu_mlir.md, 5).

y = (x - m) * (1 / sqrt(v + epsilon)) * gamma + beta, m and v mean and variance of a row, gamma and beta in float16;
sums in order, each step rounded to float32.

Source: docs/tpu_mlir.md, 5
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_type


@dataclass(frozen=True, eq=False)
class NormalizationParams:
    """The params of one normalisation.

    Attributes:
        gamma: float32[C].
        beta: float32[C].
        epsilon: float32.
    """

    gamma: NDArray[np.float32]
    beta: NDArray[np.float32]
    epsilon: np.float32


def lower(node: Node, operands: Operands) -> NormalizationParams:
    """Round the constants to float16 where the input is; raises UnsupportedError for other types than reals."""
    kind = require_type(operands.input(0), (DType.FLOAT16, DType.FLOAT32)).storage
    gamma, beta = (operands.constant(p).astype(kind).astype(np.float32) for p in (1, 2))
    return NormalizationParams(gamma, beta, np.float32(node.attributes.real("epsilon")))


def run(params: NormalizationParams, x: Array, _gamma: Array, _beta: Array) -> tuple[Array, ...]:
    """Run it: reals [S, ..., C] -> float32 [S, ..., C]."""
    real = x.astype(np.float32)
    centred = real - _mean(real)
    inverse = np.float32(1) / np.sqrt(_mean(centred * centred) + params.epsilon)
    return (centred * inverse * params.gamma + params.beta,)


def _mean(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the mean of each row, one element added after the other: [..., C] -> [..., 1]."""
    total = np.add.accumulate(rows, axis=-1)[..., -1:]
    return np.asarray(total / np.float32(rows.shape[-1]))
