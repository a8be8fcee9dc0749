"""AVERAGE_POOL_2D in GAP9's arithmetic: a truncated reciprocal, padding counted (docs/gap9.md, 10)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.accumulate import Window, window_counts, window_sums
from tflq.interpreter.kernels.gap9.rounding import norm
from tflq.interpreter.numerics.fixed_point import Integers
from tflq.interpreter.operands.windows import window_of_node


@dataclass(frozen=True, eq=False)
class AveragePoolParams:
    """The integers of one pool.

    Attributes:
        window: kernel, stride, padding.
        factor: floor(65536 / taps), so averages come out up to 0.05 % low.
        zero_point: the code outside the image, counted as a tap.
        outside: taps outside the image, int64[OH, OW].
        minimum: smallest code.
        maximum: largest code.
        magnitude: largest |code|.
    """

    window: Window
    factor: int
    zero_point: int
    outside: Integers
    minimum: int
    maximum: int
    magnitude: int


def lower(node: Node, operands: Operands) -> AveragePoolParams:
    """Decide the integers of AVERAGE_POOL_2D; input and output share scale and zero point."""
    x = operands.input(0)
    window = window_of_node(node, x.shape)
    affine = x.affine
    outside = window.taps - window_counts(window, (x.shape[1], x.shape[2]))
    return AveragePoolParams(
        window,
        65536 // window.taps,
        int(affine.zero_point[0]),
        outside,
        affine.minimum_code,
        affine.maximum_code,
        max(-affine.minimum_code, affine.maximum_code),
    )


def run(params: AveragePoolParams, x: Array) -> tuple[Array, ...]:
    """Run AVERAGE_POOL_2D: clip(norm(sum * factor, 16)), codes [S, N, H, W, C] -> [S, N, OH, OW, C]."""
    sums = window_sums(params.window, x, params.magnitude).astype(np.int64)
    sums += params.zero_point * params.outside[:, :, None]
    y = np.clip(norm(sums * params.factor, 16), params.minimum, params.maximum)
    return (y.astype(x.dtype),)
