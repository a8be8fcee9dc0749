"""FULLY_CONNECTED of float32: ordered sums, then the bias, then the clamp. Equal to TFLite bit for bit.

Source: TFLite kernels/fully_connected.cc, internal/reference/fully_connected.h.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from tflq.arrays import Singles
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.accumulate import sequential_product
from tflq.interpreter.kernels.float.convolution import Clamped, finish, float_bounds
from tflq.interpreter.operands.checks import require_bias_size, require_type
from tflq.interpreter.operands.fully_connected import (
    check_shapes,
    require_clipping,
    require_default_layout,
)


@dataclass(frozen=True, eq=False)
class FloatFullyConnected(Clamped):
    """What FULLY_CONNECTED of float32 needs beside its operands.

    Attributes:
        keep_dimensions: whether the output keeps the input's axes; else it is [rows, O].
        constant: weights [O, K] that are known before the run.
    """

    keep_dimensions: bool
    constant: Singles | None

    @cached_property
    def packed(self) -> Singles | None:
        """The constant weights [O, K] with one after the other column in memory, as the sums take them."""
        return None if self.constant is None else np.asfortranarray(self.constant)


def lower(node: Node, operands: Operands) -> FloatFullyConnected:
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


def run(params: FloatFullyConnected, x: Singles, weights: Singles, bias: Singles | None = None) -> tuple[Array, ...]:
    """Run it: [S, ..., K], weights [O, K], bias [O] -> [S, rows, O], or [S, ..., O] with axes kept."""
    _, outputs, depth = weights.shape
    with np.errstate(over="ignore", invalid="ignore"):
        if len(weights) == 1:
            packed = weights[0] if params.packed is None else params.packed
            total = sequential_product(x.reshape(-1, depth), packed)
        else:
            rows = x.reshape(len(x), -1, depth)
            total = np.concatenate([sequential_product(rows[s % len(rows)], w) for s, w in enumerate(weights)])
        samples = max(len(x), len(weights))
        total = total.reshape(samples, *(x.shape[1:-1] if params.keep_dimensions else (-1,)), outputs)
        return (finish(total, bias, params.minimum, params.maximum),)
