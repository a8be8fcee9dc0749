"""Layers in reals: float16 or float32 in, float32 inside, their results not rounded.

Source: docs/rules/tpu_mlir_operators.md#elementwise-operators.

LAYER_NORMALIZATION: y = (x - m) * (1 / sqrt(v + epsilon)) * gamma + beta, m and v mean and variance of a row, gamma and
beta in float16; sums in order, each step rounded to float32.

RESIZE_BILINEAR: along each axis scale = f32(in / out), or f32((in - 1) / (out - 1)) with align_corners;
position = i * scale with align_corners, else (i + 0.5) * scale - 0.5, clamped to 0..in - 1 (also if the model has
neither option: TPU-MLIR knows no other); low = floor(position), part = position - low;
first along the height, then along the width: y = a + part * (b - a), a and b the elements at low and low + 1, each
step rounded to float32.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.numerics.bilinear import Positions, ResizeBilinear, options
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.operands.movable import resized_shape
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True, eq=False)
class NormalizationParams:
    """The params of one normalization.

    Attributes:
        gamma: float32[C].
        beta: float32[C].
        epsilon: float32.
    """

    gamma: NDArray[np.float32]
    beta: NDArray[np.float32]
    epsilon: np.float32


def _lower_layer_normalization(node: Node, operands: Operands) -> NormalizationParams:
    """Round the constants to float16 if the input is; raises UnsupportedError for other types than reals."""
    kind = require_type(operands.input(0), (DType.FLOAT16, DType.FLOAT32)).storage
    gamma, beta = (operands.constant(p).astype(kind).astype(np.float32) for p in (1, 2))
    return NormalizationParams(gamma, beta, np.float32(node.attributes.real("epsilon")))


def _run_layer_normalization(params: NormalizationParams, x: Array, _gamma: Array, _beta: Array) -> tuple[Array, ...]:
    """Run it: reals [S, ..., C] -> float32 [S, ..., C]."""
    real = x.astype(np.float32)
    centered = real - _mean(real)
    inverse = np.float32(1) / np.sqrt(_mean(centered * centered) + params.epsilon)
    return (centered * inverse * params.gamma + params.beta,)


def _mean(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the mean of each row, one element added after the other: [..., C] -> [..., 1]."""
    total = np.add.accumulate(rows, axis=-1)[..., -1:]
    return np.asarray(total / np.float32(rows.shape[-1]))


def _lower_resize(node: Node, operands: Operands) -> ResizeBilinear:
    """Decide positions in float32.

    Raises:
        GraphError: another rank than 4, a size below 1 or computed at run time.
        UnsupportedError: both options at once, or types other than reals.
    """
    require_type(operands.input(0), (DType.FLOAT16, DType.FLOAT32))
    align, _ = options(node)
    shape, sizes = operands.input(0).shape, resized_shape(operands)
    return ResizeBilinear(*(_steps(shape[1 + axis], sizes[axis], align) for axis in range(2)))


def _steps(old: int, new: int, align: bool) -> Positions:
    places = np.arange(new, dtype=np.float32)
    if align:
        position = places * (np.float32(old - 1) / np.float32(max(new - 1, 1)))
    else:
        half = np.float32(0.5)
        position = (places + half) * (np.float32(old) / np.float32(new)) - half
    position = np.clip(position, np.float32(0), np.float32(old - 1))
    low = np.floor(position).astype(np.int64)
    return Positions(low, np.minimum(low + 1, old - 1), position - low.astype(np.float32))


def _run_resize(params: ResizeBilinear, x: Array, _size: Array) -> tuple[Array, ...]:
    """Run it: reals [S, N, H, W, C] -> float32 [S, N, rows, columns, C]."""
    down = _between(x.astype(np.float32), params.rows, 2)
    return (_between(down, params.columns, 3),)


def _between(x: NDArray[np.float32], steps: Positions, axis: int) -> NDArray[np.float32]:
    low, high = np.take(x, steps.low, axis), np.take(x, steps.high, axis)
    return np.asarray(low + steps.part.reshape(-1, *(1,) * (x.ndim - 1 - axis)) * (high - low))


_RULE, _SOURCE = (
    "float16 or float32 in, float32 inside, its result not rounded",
    "docs/rules/tpu_mlir_operators.md#elementwise-operators",
)
KERNELS = {
    "layer_normalization": Kernel(_lower_layer_normalization, _run_layer_normalization, f"over the last axis: {_RULE}",
        _SOURCE),
    "resize_bilinear": Kernel(_lower_resize, _run_resize, _RULE, _SOURCE),
}  # fmt: skip
