"""Kernel of RFFT2D.

The half of the last axis that is not redundant: complex64[..., H, W // 2 + 1]. Computed in float64 and rounded once, as
TFLite does with another algorithm: within 1 ULP of the largest element of a transform.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import lower_unary
from tflq.interpreter.operands.checks import require_result, require_type
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True)
class Rfft2d:
    """Height and width of the transform."""

    height: int
    width: int


def lower(node: Node, operands: Operands) -> Rfft2d:  # noqa: ARG001
    """Read the lengths from input 1.

    Raises:
        UnsupportedError: other types.
        GraphError: fewer than two axes, or lengths that are no powers of two or computed at run time. TFLite runs a
            width of 1 too, with numbers that are no transform of the input.
    """
    lower_unary(operands, (DType.FLOAT32,), DType.COMPLEX64)
    require_type(operands.input(1), (DType.INT32,))
    lengths = operands.constant(1)
    shape = operands.input(0).shape
    if len(shape) < 2 or lengths.shape != (2,):
        raise GraphError(f"input {shape} and lengths {lengths.shape}; rfft2d takes two axes or more and two lengths")
    height, width = (int(length) for length in lengths)
    if height < 1 or width < 2 or any(length & (length - 1) for length in (height, width)):
        raise GraphError(f"lengths {height}, {width}; rfft2d takes powers of two: heights from 1, widths from 2 on")
    require_result((*shape[:-2], height, width), DType.COMPLEX64)
    return Rfft2d(height, width)


def run(params: Rfft2d, x: Array, *_lengths: Array) -> tuple[Array, ...]:
    """Run RFFT2D: float32[S, ..., H, W] -> complex64[S, ..., height, width // 2 + 1]."""
    size = (params.height, params.width)
    return (np.fft.rfft2(x.astype(np.float64), s=size, axes=(-2, -1)).astype(np.complex64),)


KERNELS = {
    "rfft2d": Kernel(lower, run,
        "the discrete Fourier transform of the last two axes, which are cut or padded with zeros to powers of two",
        "TFLite kernels/rfft2d.cc"),
}  # fmt: skip
