"""BATCH_MATMUL, FULLY_CONNECTED and TRANSPOSE_CONV of float32: ordered sums. Equal to TFLite bit for bit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from tflq.arrays import Singles
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.accumulate import sequential_product
from tflq.interpreter.accumulate.products import sequential_products
from tflq.interpreter.accumulate.transposed import TransposedWindow, sequential_transposed
from tflq.interpreter.kernels.float.convolution import Clamped, finish, float_bounds
from tflq.interpreter.operands.checks import require_bias_size, require_same_type, require_type
from tflq.interpreter.operands.products import (
    Adjoints,
    check_shapes,
    require_clipping,
    require_default_layout,
    require_product,
)
from tflq.interpreter.operands.windows import transposed_window
from tflq.interpreter.registry import Kernel


def _lower_batch_matmul(node: Node, operands: Operands) -> Adjoints:
    """Check the operands.

    Raises:
        UnsupportedError: a type other than float32.
        GraphError: shapes that do not multiply.
    """
    require_type(operands.input(0), (DType.FLOAT32,))
    require_same_type(operands.input(0), operands.input(1), operands.output())
    return Adjoints(*require_product(node, operands)[:2])


def _run_batch_matmul(params: Adjoints, x: Array, y: Array) -> tuple[Array, ...]:
    """Run BATCH_MATMUL: float32[S or 1, ..., A, K], float32[S or 1, ..., K, B] -> float32[S, ..., A, B]."""
    left, right = params.factors(x, y)
    return (sequential_products(left.astype(np.float32), right.astype(np.float32)),)


@dataclass(frozen=True, eq=False)
class FloatFullyConnected(Clamped):
    """The params of FULLY_CONNECTED of float32.

    Attributes:
        keep_dimensions: whether the output keeps the input's axes; else it is [rows, O].
        constant: weights [O, K] that are known before the run.
    """

    keep_dimensions: bool
    constant: Singles | None

    @cached_property
    def packed_weights(self) -> Singles | None:
        """The constant weights [O, K] with one after the other column in memory, as the sums take them."""
        return None if self.constant is None else np.asfortranarray(self.constant)


def lower_fully_connected(node: Node, operands: Operands) -> FloatFullyConnected:
    """Check the operands.

    Raises:
        UnsupportedError: a type other than float32, shuffled weights, or an activation that does not clip.
        GraphError: an input that does not fall into rows, or a bias of another size.
    """
    for tensor in (*operands.inputs, operands.output()):
        if tensor is not None:
            require_type(tensor, (DType.FLOAT32,))
    require_default_layout(node)
    require_clipping(node)
    keep = check_shapes(node, operands.input(0), operands.input(1))
    require_bias_size(operands.optional(2), operands.input(1).shape[0])
    return FloatFullyConnected(*float_bounds(node), keep, cast(Singles | None, operands.input(1).data))


def run_fully_connected(
    params: FloatFullyConnected, x: Singles, weights: Singles, bias: Singles | None = None
) -> tuple[Array, ...]:
    """Run it: [S, ..., K], weights [O, K], bias [O] -> [S, rows, O], or [S, ..., O] with axes kept."""
    _, outputs, depth = weights.shape
    with np.errstate(over="ignore", invalid="ignore"):
        if len(weights) == 1:
            packed = weights[0] if params.packed_weights is None else params.packed_weights
            total = sequential_product(x.reshape(-1, depth), packed)
        else:
            rows = x.reshape(len(x), -1, depth)
            total = np.concatenate([sequential_product(rows[s % len(rows)], w) for s, w in enumerate(weights)])
        samples = max(len(x), len(weights))
        total = total.reshape(samples, *(x.shape[1:-1] if params.keep_dimensions else (-1,)), outputs)
        return (finish(total, bias, params.minimum, params.maximum),)


@dataclass(frozen=True)
class FloatTransposeConv(Clamped):
    """The params of TRANSPOSE_CONV of float32.

    Attributes:
        place: window and output size.
    """

    place: TransposedWindow


def lower_transpose_conv(node: Node, operands: Operands) -> FloatTransposeConv:
    """Check the operands.

    Raises:
        UnsupportedError: a type other than float32.
        GraphError: shapes that contradict each other, or an output shape computed at run time.
    """
    for tensor in (*operands.inputs[1:], operands.output()):
        if tensor is not None:
            require_type(tensor, (DType.FLOAT32,))
    return FloatTransposeConv(*float_bounds(node), TransposedWindow(*transposed_window(node, operands)))


def run_transpose_conv(
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


KERNELS = {
    "batch_matmul": Kernel(_lower_batch_matmul, _run_batch_matmul,
        "BATCH_MATMUL of float32: products of matrices, each sum in the order of k. Equal to TFLite bit for bit",
        "TFLite kernels/batch_matmul.cc, internal/reference/batch_matmul.h"),
    "fully_connected": Kernel(lower_fully_connected, run_fully_connected,
        "FULLY_CONNECTED of float32: ordered sums, then the bias, then the clamp. Equal to TFLite bit for bit",
        "TFLite kernels/fully_connected.cc, internal/reference/fully_connected.h"),
    "transpose_conv": Kernel(lower_transpose_conv, run_transpose_conv,
        "TRANSPOSE_CONV of float32: ordered sums, then the bias, then the clamp. Equal to TFLite bit for bit",
        "TFLite kernels/internal/reference/transpose_conv.h; the sums are in accumulate/transposed.py"),
}  # fmt: skip
