"""TRANSPOSE_CONV of float32: ordered sums, then the bias, then the clamp. Equal to TFLite bit for bit.

Source: TFLite kernels/internal/reference/transpose_conv.h; the sums are in accumulate/transposed.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.accumulate.transposed import TransposedWindow, sequential_transposed
from tflq.interpreter.kernels.float.convolution import Clamped, finish, float_bounds
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.operands.windows import transposed_window


@dataclass(frozen=True)
class FloatTransposeConv(Clamped):
    """What TRANSPOSE_CONV of float32 needs beside its operands.

    Attributes:
        place: window and output size.
    """

    place: TransposedWindow


def lower(node: Node, operands: Operands) -> FloatTransposeConv:
    """Check the operands.

    Raises:
        UnsupportedError: a type other than float32.
        GraphError: shapes that contradict each other, or an output shape computed at run time.
    """
    for tensor in (*operands.inputs[1:], operands.output()):
        if tensor is not None:
            require_type(tensor, (DType.FLOAT32,))
    return FloatTransposeConv(*float_bounds(node), transposed_window(node, operands))


def run(
    params: FloatTransposeConv, _shape: Array, weights: Array, x: Array, bias: Array | None = None
) -> tuple[Array, ...]:
    """Run TRANSPOSE_CONV: weights [S or 1, O, KH, KW, C], x [S, N, H, W, C], bias [S or 1, O] -> [S, N, OH, OW, O]."""
    kernels, images = np.asarray(weights, np.float32), np.asarray(x, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        if weights.shape[0] == 1:
            total = sequential_transposed(images, kernels[0], params.place)
        else:
            each = [sequential_transposed(images[s % len(x)][None], w, params.place) for s, w in enumerate(kernels)]
            total = np.concatenate(each)
        return (finish(total, None if bias is None else np.asarray(bias, np.float32), params.minimum, params.maximum),)
