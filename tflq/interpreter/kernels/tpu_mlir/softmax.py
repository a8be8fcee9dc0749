"""SOFTMAX and LAYER_NORMALIZATION over the last axis.

SOFTMAX: E[k] = f32(exp(-k * Sx)), k = max(q) - q; p = E / sum(E) in float32; y = sat(rha(p / f32(1/255))).

LAYER_NORMALIZATION: y = (x - m) * (1 / sqrt(v + epsilon)) * gamma + beta, m and v mean and variance of a row, gamma and
beta in float16; sums in order, each step rounded to float32.

SOFTMAX: a float32 table of exponentials, float32 sums, uint8 with S = 1/255. Source: docs/tpu_mlir.md, 7.
LAYER_NORMALIZATION: LAYER_NORMALIZATION over the last axis: float16 in, float32 inside, its result not rounded
(docs/tpu_mlir.md, 5). Source: docs/tpu_mlir.md, 5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.tpu_mlir.multiplier import saturate
from tflq.interpreter.numerics.fixed_point import round_half_away
from tflq.interpreter.operands.checks import EIGHT_BITS, require_type
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True, eq=False)
class SoftmaxParams:
    """The params of one SOFTMAX.

    Attributes:
        table: E, float32[256].
        scale: of the output, float32.
        dtype: of the output.
    """

    table: NDArray[np.float32]
    scale: np.float32
    dtype: DType


def _lower_softmax(node: Node, operands: Operands) -> SoftmaxParams:
    """Make the table.

    Raises:
        UnsupportedError: other types, or beta other than 1.
    """
    source, output = operands.input(0), operands.output()
    require_type(source, EIGHT_BITS)
    require_type(output, EIGHT_BITS)
    beta = node.attributes.real("beta", 1.0)
    if beta != 1.0:
        raise UnsupportedError(f"beta is {beta}; ONNX has a softmax with 1 only: multiply in front of it")
    table = np.exp(-np.arange(256) * np.float64(source.affine.scale[0])).astype(np.float32)
    table.setflags(write=False)
    return SoftmaxParams(table, np.float32(output.affine.scale[0]), output.dtype)


def _run_softmax(params: SoftmaxParams, x: Array) -> tuple[Array, ...]:
    """Run SOFTMAX along the last axis: quantized [S, *shape, C] -> uint8 [S, *shape, C]."""
    codes = x.astype(np.int16)
    powers = params.table[codes.max(axis=-1, keepdims=True) - codes]
    total = np.add.accumulate(powers, axis=-1, dtype=np.float32)[..., -1:]  # one by one, as TPU-MLIR adds
    return (saturate(round_half_away(powers / total / params.scale), params.dtype),)


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


def _lower_layer_normalization(node: Node, operands: Operands) -> NormalizationParams:
    """Round the constants to float16 where the input is; raises UnsupportedError for other types than reals."""
    kind = require_type(operands.input(0), (DType.FLOAT16, DType.FLOAT32)).storage
    gamma, beta = (operands.constant(p).astype(kind).astype(np.float32) for p in (1, 2))
    return NormalizationParams(gamma, beta, np.float32(node.attributes.real("epsilon")))


def _run_layer_normalization(params: NormalizationParams, x: Array, _gamma: Array, _beta: Array) -> tuple[Array, ...]:
    """Run it: reals [S, ..., C] -> float32 [S, ..., C]."""
    real = x.astype(np.float32)
    centred = real - _mean(real)
    inverse = np.float32(1) / np.sqrt(_mean(centred * centred) + params.epsilon)
    return (centred * inverse * params.gamma + params.beta,)


def _mean(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the mean of each row, one element added after the other: [..., C] -> [..., 1]."""
    total = np.add.accumulate(rows, axis=-1)[..., -1:]
    return np.asarray(total / np.float32(rows.shape[-1]))


KERNELS = {
    "softmax": Kernel(_lower_softmax, _run_softmax),
    "layer_normalization": Kernel(_lower_layer_normalization, _run_layer_normalization),
}
