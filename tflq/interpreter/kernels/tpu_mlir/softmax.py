"""SOFTMAX: a float32 table of exponentials, float32 sums, uint8 with S = 1/255.

E[k] = f32(exp(-k * Sx)), k = max(q) - q; p = E / sum(E) in float32; y = sat(rha(p / f32(1/255))).

Source: docs/tpu_mlir.md, 7
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.tpu_mlir.rounding import saturate
from tflq.interpreter.numerics.fixed_point import round_half_away
from tflq.interpreter.operands.checks import EIGHT_BITS, require_type


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


def lower(node: Node, operands: Operands) -> SoftmaxParams:
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


def run(params: SoftmaxParams, x: Array) -> tuple[Array, ...]:
    """Run SOFTMAX along the last axis: quantized [S, *shape, C] -> uint8 [S, *shape, C]."""
    codes = x.astype(np.int16)
    powers = params.table[codes.max(axis=-1, keepdims=True) - codes]
    total = np.add.accumulate(powers, axis=-1, dtype=np.float32)[..., -1:]  # one by one, as TPU-MLIR adds
    return (saturate(round_half_away(powers / total / params.scale), params.dtype),)
